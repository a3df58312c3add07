"""Parameterizations of the depth beside muP in the width: powers of L in blocks and updates."""

from __future__ import annotations

from tpcalc import checks
from tpcalc.networks.depth_powers import DepthPowers
from tpcalc.sources import Source
from tpcalc.training.parameterization import Argument, ParameterizationFamily, exponent
from tpcalc.training.parameterizations.widths import mup, mup_entrywise

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
    name: str, alpha: str, gamma: str, text: str, source: Source = TABLE, *aliases: str
) -> ParameterizationFamily:
    """An entry with these powers in the depth."""
    return ParameterizationFamily(
        name,
        make=lambda base=1: mup,
        text=f"alpha = {alpha}, gamma = {gamma} in the depth: {text}",
        source=source,
        parameters=(BASE,),
        entrywise=lambda base=1: mup_entrywise,
        aliases=aliases,
        deep=lambda base=1: powers(alpha, gamma, base),
        by_updates=True,
    )


FAMILIES = (
    ("depth-standard", "0", "0", "nothing is scaled; the stream explodes at large depth"),
    (
        "depth-standard-slow", "0", "1",
        "updates of 1/L, blocks are not scaled; the stream explodes at large depth",
    ),
    (
        "depth-only-multiplier", "1/2", "0",
        "branches are scaled, rates of Adam are not; training explodes at large depth",
    ),
    ("depth-mup", "1/2", "1/2", "blocks learn, and differ from each other"),
)  # fmt: skip
ENTRIES = (
    ParameterizationFamily(
        "depth",
        make=lambda alpha, gamma, base=1: mup,
        text="muP in the width, L^(-alpha) in front of blocks, updates of L^(-gamma)",
        source=TABLE,
        parameters=(
            Argument("alpha", "the power of 1/L in front of a block", required=True),
            Argument("gamma", "the power of 1/L in updates", required=True),
            BASE,
        ),
        entrywise=lambda alpha, gamma, base=1: mup_entrywise,
        deep=powers,
        by_updates=True,
    ),
    *(deep_family(*row) for row in FAMILIES),
    deep_family(
        "complete-p",
        "1",
        "0",
        "blocks learn and are not linear in their updates; features are redundant",
        Source(
            "Dey and others, Don't be lazy: CompleteP enables compute-efficient deep transformers",
            "Table 1; the (1, 0) of Tensor Programs VI, section 7",
            "2505.01618",
        ),
        "depth-ode",
    ),
)
