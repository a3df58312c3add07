"""Gauges: parameterizations that are written differently and train the same network.

Moving a power of n from the multiplier of a layer to the initial scale of its weights, and the
learning rate with it, changes nothing: theta_l in a_l += theta_l, b_l -= theta_l and, for SGD,
c_l -= 2 theta_l; for Adam, whose steps do not feel the size of a gradient, c_l -= theta_l.
"""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc import checks
from tpcalc.exponents import Ex
from tpcalc.training.optimizers import Optimizer
from tpcalc.training.optimizers import lookup as find_optimizer
from tpcalc.training.parameterizations import Exponents, Parameterization, lookup
from tpcalc.training.parameterizations.custom import table

__all__ = ["Gauge", "equivalent_gauge"]

STEPS = 8  # tables of the catalogue change after step 0 only; written ones have a row for each step


@dataclass(frozen=True, slots=True)
class Gauge:
    """How one parameterization is turned into another.

    Args:
        same: Whether they train the same network.
        theta: For each layer the exponent that moves from its initial scale to its multiplier;
            empty if they are not the same.
        text: The same in words.
    """

    same: bool
    theta: tuple[Ex, ...]
    text: str

    def __bool__(self) -> bool:
        return self.same


def equivalent_gauge(
    a: Parameterization | str,
    b: Parameterization | str,
    depth: int,
    optimizer: str | Optimizer = "sgd",
    biases: bool = False,
) -> Gauge:
    """Whether two parameterizations are the same up to the gauge, and the change between them.

    Args:
        a: A catalogue name or a parameterization.
        b: Another.
        depth: Number of hidden layers L.
        optimizer: A catalogue name or an optimizer: whether steps grow with the gradient.
        biases: Whether the networks have biases, whose exponents count then.

    Raises:
        UnknownName: No such optimizer.
        StudyError: A depth that makes no sense, tables for another depth, or a parameterization
            that is not defined for such optimizers.

    Source: Yang and Hu, Feature learning in infinite-width neural networks, section 3 (symmetries
        of abc-parametrizations).

    Example:
        >>> mine = "abc:-1/2,0,1/2;1/2,1/2,1/2;0,0,0"
        >>> found = equivalent_gauge(mine, "mup", 3)
        >>> found.same, [str(theta) for theta in found.theta]
        (True, ['1/2', '1/2', '1/2', '1/2'])
    """
    degree = find_optimizer(optimizer).degree
    first, second = (lookup(own).layered().under(degree) for own in (a, b))
    depth = checks.whole(depth, "depth", least=1, hint="It counts the hidden layers.")
    scales = _scales(first, depth), _scales(second, depth)
    for step in range(STEPS):
        tables = [
            _invariants(found.exponents(depth, step), degree, biases) for found in (first, second)
        ]
        if tables[0] != tables[1]:
            place = _difference(tables[0], tables[1])
            return Gauge(False, (), f"they differ at step {step}: {place}")
    theta = tuple(x - y for x, y in zip(*scales, strict=True))
    return Gauge(True, theta, _words(theta, degree))


def _mean(row: Exponents) -> tuple[object, ...]:
    return tuple(row.mean) if any(mean != 0 for mean in row.mean) else ()


def _kept(row: Exponents) -> tuple[Ex | None, ...]:
    return row.kept or (Ex(),) * len(row.a)


def _scales(found: Parameterization, depth: int) -> tuple[Ex, ...]:
    """The exponents b of the initial scales as they were written; 0 for ac tables."""
    written = dict(found.values).get("b") if found.name == "abc" else None
    if written is None:
        return (Ex(),) * (depth + 1)
    return table(written.strip("()"), "b")(depth, 0)


def _invariants(row: Exponents, degree: int, biases: bool) -> list[tuple[str, tuple[object, ...]]]:
    """What no change of gauge moves: a + b, and c - 2 b or, for Adam, c - b."""
    found: list[tuple[str, tuple[object, ...]]] = []
    kept = "c - 2 b" if degree else "c - b"
    parts = [("", row.a, row.c), (" of biases", row.bias_a, row.bias_c)]
    for what, weights, rates in parts[: 1 + biases]:
        found += [(f"a + b{what}", weights), (f"{kept}{what}", rates)]
    left = ("what is left of the initial weights", _kept(row))
    return [*found, ("the mean of the weights", _mean(row)), left]


def _difference(
    first: list[tuple[str, tuple[object, ...]]], second: list[tuple[str, tuple[object, ...]]]
) -> str:
    for (what, x), (_, y) in zip(first, second, strict=True):
        for layer, (left, right) in enumerate(zip(x, y, strict=False), start=1):
            if left != right:
                return f"{what} in layer {layer} is {left} and {right}"
        if x != y:
            return f"{what} is given in one of them only"
    return "nothing"


def _words(theta: tuple[Ex, ...], degree: int) -> str:
    if all(t == Ex() for t in theta):
        return "the tables are the same"
    moved = "c_l -= 2 theta_l" if degree else "c_l -= theta_l"
    values = ", ".join(str(t) for t in theta)
    return f"a_l += theta_l, b_l -= theta_l, {moved} with theta = ({values})"
