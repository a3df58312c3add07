"""``recipe``: the multiplier and the rates of a network of L blocks, tuned at a base depth."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from tpcalc import checks
from tpcalc.errors import UsageError
from tpcalc.exponents import Ex
from tpcalc.networks.depth_powers import DepthPowers, one_base
from tpcalc.registry.values import exponent
from tpcalc.results import Recipe, RecipeRow
from tpcalc.training.optimizer import Optimizer
from tpcalc.training.optimizers import lookup as find_optimizer
from tpcalc.training.parameterizations import REGISTRY, Parameterization
from tpcalc.training.parameterizations import lookup as find_parameterization
from tpcalc.training.parameterizations.depth import powers

FRONT = "number in front of a block"
RATE = "learning rate of the weights of a block"
ENDS = "learning rate of input map and readout"
EPS = "eps of the weights of a block"
CAUTION = (
    "That a limit exists, or that features are learned, does not imply that the best numbers stay "
    "where they are: tp.transfer compares them."
)


def recipe(
    parameterization: Parameterization | str | None = None,
    depth: int = 64,
    *,
    base: int | None = None,
    optimizer: str | Optimizer = "adam",
    lr: Any = 1,
    multiplier: Any = 1,
    alpha: Any = None,
    raw: Any = None,
) -> Recipe:
    """What to type in a training script of L blocks, from numbers tuned at a base depth.

    Or the reverse: alpha and the power ``raw`` that a script gives its learning rate tell the
    gamma of its updates, which depends on the optimizer.

    Args:
        parameterization: One with powers of the depth, ``"depth-mup"`` or ``"depth:1;0"``; None
            where alpha and raw are given.
        depth: The number of blocks L.
        base: The number of blocks at which the numbers were tuned; None: that of the
            parameterization (``"depth-mup:8"``), or 1.
        optimizer: A catalogue name or an optimizer.
        lr: The learning rate at the base depth.
        multiplier: The number in front of a block there.
        alpha: The power of 1/L that a script has in front of a block.
        raw: The power of L that its learning rate has: 0 of a rate that does not depend on L.

    Returns:
        The numbers at this depth, with their powers of L / L0.

    Raises:
        UsageError: A parameterization without powers of the depth, or both ways at once.
        StudyError: Numbers that make no sense, exponents with symbols.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, Table 1, Definition 6.1, section 10.2.

    Example:
        >>> for row in recipe("depth-mup:8", 512, lr="1/1000", multiplier=2).rows:
        ...     print(row.what, row.at_base, row.value)
        number in front of a block 2.0 0.25
        learning rate of the weights of a block 0.001 0.000125
        learning rate of input map and readout 0.001 0.001
        >>> recipe(alpha=1, raw=1, optimizer="sgd").name
        'complete-p'
    """
    own = find_optimizer(optimizer)
    scripted = alpha is not None or raw is not None
    if scripted and (parameterization is not None or alpha is None or raw is None):
        raise UsageError(
            "a recipe is of a parameterization, or of alpha and raw together.",
            hint="Write tp.recipe('depth-mup', 64), or tp.recipe(alpha='1/2', raw=0).",
        )
    blocks = checks.whole(depth, "depth", least=1, hint="It counts the blocks.")
    if scripted:
        read = exponent(alpha, what="alpha"), exponent(raw, what="raw")
        deep = DepthPowers.of_raw(*read, own.degree)
        name = _named(deep)
    else:
        name, deep = _powers(parameterization or "depth-mup")
    deep = replace(deep, base=one_base(deep.base, base, name))
    front = checks.real(multiplier, "multiplier", above=0)
    eta = checks.real(lr, "lr", above=0)
    rows = [
        _row(FRONT, -deep.alpha, front, deep, blocks),
        _row(RATE, deep.raw(own.degree), eta, deep, blocks),
        _row(ENDS, Ex(), eta, deep, blocks),
    ]
    eps, _ = own.settings.get("eps", (Fraction(0), Ex()))
    if eps:
        rows.append(_row(EPS, -deep.alpha, eps, deep, blocks))
    said = str(deep.alpha), str(deep.gamma)
    return Recipe(name, *said, blocks, deep.base, own.name, tuple(rows), (CAUTION,))


def _powers(parameterization: Parameterization | str) -> tuple[str, DepthPowers]:
    found = find_parameterization(parameterization)
    if found.deep is None:
        raise UsageError(
            f"{found.text} has no powers of the depth.",
            hint="Take 'depth-mup', 'complete-p', or 'depth:ALPHA;GAMMA'.",
        )
    return found.name if found.name != "depth" else found.text, found.deep


def _named(deep: DepthPowers) -> str:
    """The entry of the catalogue that has these powers, or the powers."""
    for name, family in REGISTRY.items():
        free = family.deep is not None and all(not one.required for one in family.parameters)
        if free and family().deep == powers(deep.alpha, deep.gamma):
            return name
    return f"depth:{deep.alpha};{deep.gamma}"


def _row(what: str, power: Ex, number: Any, deep: DepthPowers, depth: int) -> RecipeRow:
    value = float(number * deep.power(depth, power))
    return RecipeRow(what, str(power), float(number), value)
