"""``deep_family``: a parameterization of the depth beside muP in the width."""

from __future__ import annotations

from tpcalc import checks
from tpcalc.networks.depth_powers import DepthPowers
from tpcalc.sources import Source
from tpcalc.training.parameterization import Argument, ParameterizationFamily, Rule, exponent

BASE = Argument("base", "the number of blocks L0 that counts as one (1): powers are of L / L0")
TABLE = Source(
    "Yang, Yu, Zhu, Hayou, Tensor Programs VI: Feature Learning in Infinite-Depth Neural Networks",
    "Table 1, section 10.2",
    "2310.02244",
)


def powers(alpha: object, gamma: object, base: object = 1) -> DepthPowers:
    """The powers of the depth, read."""
    number = int(base) if isinstance(base, str) and base.isdigit() else base
    whole = checks.whole(number, "base", least=1, hint="A number of blocks, as in 'depth-mup:8'.")
    return DepthPowers(exponent(alpha, what="alpha"), exponent(gamma, what="gamma"), whole)


def deep_family(
    name: str,
    alpha: str,
    gamma: str,
    text: str,
    *,
    width: tuple[Rule, Rule],
    source: Source = TABLE,
    aliases: tuple[str, ...] = (),
) -> ParameterizationFamily:
    """An entry with these powers in the depth."""
    exponents, entrywise = width

    return ParameterizationFamily(
        name,
        make=lambda base=1: exponents,
        text=f"alpha = {alpha}, gamma = {gamma} in the depth: {text}",
        source=source,
        parameters=(BASE,),
        entrywise=lambda base=1: entrywise,
        aliases=aliases,
        deep=lambda base=1: powers(alpha, gamma, base),
    )
