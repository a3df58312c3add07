"""The conditions of the Master theorem: what it asks of the program of a layer graph."""

from __future__ import annotations

from fractions import Fraction
from math import inf

from tpcalc.activations.entries.exp import EXP
from tpcalc.errors import NotDifferentiable
from tpcalc.functions import Call, Expr, Var
from tpcalc.functions.expr import Add, Mul, Pow
from tpcalc.functions.fn import derivative
from tpcalc.functions.form import least
from tpcalc.integrals.bounded import EPS
from tpcalc.limit.degrees import degree_of
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.operations import Activation, Dense, LayerNorm
from tpcalc.meanfield.recursion import spread
from tpcalc.meanfield.state import State
from tpcalc.program.base import Table
from tpcalc.results.nonlinearity import Condition

GAUSSIAN = 2  # of exp(c |z|^2): averages under Gaussians exist for small c alone


def order(expr: Expr) -> float:
    """The p of an exp(c |z|^p) that bounds a function of ``Var(0)``, as its form shows.

    0: a power of z bounds it; infinity: its form shows no bound.

    Source: Schoenherr, The nonlinearity coefficient, section 5.1.2 (C^E2).

    Example:
        >>> z = Var(0)
        >>> order(z**3), order(z * EXP(2 * z)), order(EXP(z**2 / 8)), order(EXP(-(z**2)))
        (0.0, 1.0, 2.0, 0.0)
    """
    power = _power(expr)
    if power < inf:
        return 0.0
    match expr:
        case Add(terms=parts) | Mul(factors=parts):
            return max(map(order, parts))
        case Pow(base=base, exponent=exponent):
            return order(base) if exponent > 0 else inf
        case Call(atom=atom, arg=arg) if atom == EXP:
            return 0.0 if least(-1 * arg) > -inf else _power(arg)
        case Call(atom=atom, arg=arg) if atom.facts.growth is not None:
            return order(arg)
    return inf


def _power(expr: Expr) -> float:
    """The degree of a polynomial that bounds a function; infinity where none is seen."""
    found = degree_of(expr, (Fraction(1),), ())
    return inf if found is None else float(found)


def growth(operation: Activation) -> tuple[float, str]:
    """The larger order of an activation and of its slope, and what follows for the theorem."""
    try:
        found = max(order(operation.expr), order(derivative(operation.expr, Var(0))))
    except NotDifferentiable:
        return inf, "its slope is not known"
    if found == inf:
        return inf, "their form shows no bound exp(c |z|^p)"
    return found, f"exp(c |z|^{found:g}) bounds them" if found else "powers bound them"


def conditions(graph: LayerGraph, states: tuple[State, ...]) -> tuple[Condition, ...]:
    """The conditions of the Master theorem at what the layers are in the limit.

    Source: Schoenherr, The nonlinearity coefficient, section 5.1.2 (Definitions 8 to 11).
    """
    read = {p for own in graph.layers if own.operation.matrix for p in own.parents}
    apart = min((states[k].gap.value / states[k].square.value, k) for k in read)
    grown = [found for own in graph.layers if (found := _grown(own.operation)) is not None]
    steep, how, name = max(grown, default=(0.0, "there is none", "no activation"))
    least = min((_divisor(own.operation, states[own.parents[0]]), k)
                for k, own in enumerate(graph.layers) if own.operation.reads)  # fmt: skip
    averaged, even = least[0] < inf, "no function reads an average over coordinates"
    rank = even
    if averaged:
        rank = "at inputs that are alike the Gram matrix of what a matrix reads has full rank in "
        rank += f"the limit where v > 0; the smallest v / q is {apart[0]:.3g} (layer {apart[1]})"
        even = f"layer norm divides by the root of a limit that is above 0 (layer {least[1]}: "
        even += f"{least[0]:.6g}), and is continuous there"
    laws = sorted({law for own in graph.layers if (law := _law(own.operation))})
    return (
        Condition("Gaussian weights", laws == ["gaussian"], f"they are {', '.join(laws)}"),
        Condition("rank stability", not averaged or apart[0] > EPS, rank),
        Condition("control (C^E2)", steep < GAUSSIAN, f"{name} and slope: {how}"),
        Condition("parameter-control", least[0] > 0, even),
    )


_divisor: Table[float] = Table(
    {LayerNorm: lambda own, read: spread(own, read).value + float(own.epsilon)},
    lambda own, read: inf,
)
"""What a layer divides by the root of; infinity where it reads no average over coordinates."""
_law: Table[str] = Table({Dense: lambda own: own.family}, lambda own: "")
_grown: Table[tuple[float, str, str] | None] = Table(
    {Activation: lambda own: (*growth(own), own.name)}, lambda own: None
)
