"""Phase diagrams beside closed rules: Yang and Hu's classification, and the two MLP slices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

import pytest

import tpcalc as tp
from tpcalc.questions.phases import phases
from tpcalc.results import PhaseCell, PhaseDiagram

HALF, ONE = Fraction(1, 2), Fraction(1)
BOX = {"a": (Fraction(1, 4), Fraction(5, 4)), "c": (Fraction(-3, 2), HALF)}

Point = Mapping[str, Fraction]


def diagram(act: str, word: str, box: Mapping[str, tuple[Fraction, Fraction]]) -> PhaseDiagram:
    found = phases(tp.MLP(3, act), word, box)
    assert found.complete
    assert math.isclose(
        sum(area(cell) for cell in found.cells), math.prod(map(length, box.values()))
    )
    return found


def length(side: tuple[Fraction, Fraction]) -> float:
    return float(side[1] - side[0])


def area(cell: PhaseCell) -> float:
    corners = [(float(x), float(y)) for x, y in cell.vertices]
    pairs = zip(corners, corners[1:] + corners[:1], strict=True)
    return abs(sum(x * v - u * y for (x, y), (u, v) in pairs)) / 2 if cell.dimension == 2 else 0.0


def sample(cell: PhaseCell) -> Point:
    return {name: Fraction(value) for name, value in cell.sample}


def check(found: PhaseDiagram, rule: Callable[[Point], str]) -> None:
    """Every cell has the verdict of a closed rule at its sample and around its middle."""
    wrong = [cell for cell in found.cells if cell.verdict != rule(sample(cell))]
    assert not wrong
    for cell in found.cells:
        count = len(cell.vertices)
        middle = [sum((corner[k] for corner in cell.vertices), Fraction(0)) for k in (0, 1)]
        point = {name: total / count for name, total in zip(found.symbols, middle, strict=True)}
        assert cell.verdict == rule(point), cell


def yang_hu(a: tuple[Fraction, ...], b: tuple[Fraction, ...], c: Fraction) -> str:
    """Feature Learning in Infinite-Width Neural Networks, Theorem 3.6, for one rate c."""
    hidden = min(2 * power + (k == 0) for k, power in enumerate(a[:-1]))
    last = a[-1] + b[-1]
    r = min(last, 2 * a[-1] + c) + c - 1 + hidden
    start = a[0] + b[0] == 0 and all(x + y == HALF for x, y in zip(a[1:-1], b[1:-1], strict=True))
    if not (start and last >= HALF and r >= 0 and 2 * a[-1] + c >= 1 and last + r >= 1):
        return "unstable"
    if last + r > 1 and 2 * a[-1] + c > 1:
        return "trivial"
    return "feature-learning" if r == 0 else "kernel"


def output_slice(point: Point) -> str:
    """a = (0, 1/2, 1/2, a), one c: the abc form with b_l = 0."""
    a, c = point["a"], point["c"]
    return yang_hu((Fraction(0), HALF, HALF, a), (Fraction(0),) * 4, c)


@pytest.mark.parametrize("act", ["tanh", pytest.param("relu", marks=pytest.mark.slow)])
def test_orders_case9(act: str) -> None:
    """(a_out, c): NTK and muP are vertices, the edge between them the kernel regime."""
    found = diagram(act, "ac:0,1/2,1/2,a;c", BOX)
    check(found, output_slice)
    learning = [cell for cell in found.cells if cell.verdict == "feature-learning"]
    assert [cell.vertices for cell in learning] == [((1, -1),)]
    kernel = [cell for cell in found.cells if cell.verdict == "kernel"]
    assert {cell.dimension for cell in kernel} == {0, 1}
    assert all(a * 2 + c == 1 for a, c in map(_pair, kernel))
    corners = {corner for cell in kernel for corner in cell.vertices}
    assert {(Fraction(1, 2), 0), (1, -1)} <= corners  # from NTK, which belongs to it, to muP
    assert ((Fraction(1, 2), 0),) in [cell.vertices for cell in kernel]
    tested = [note for note in found.notes if "tested with the particle engine" in note]
    assert tested
    assert not [note for note in found.notes if note.startswith("assumed")]


def _pair(cell: PhaseCell) -> tuple[Fraction, Fraction]:
    point = sample(cell)
    return point["a"], point["c"]


def hidden_slice(point: Point) -> str:
    """a = (0, a, a, 1), one c."""
    a, c = point["a"], point["c"]
    if a < HALF or 2 * a + c < 0:
        return "unstable"
    return "feature-learning" if (a, c) == (HALF, -ONE) else "trivial"


@pytest.mark.parametrize("act", ["tanh", "relu", "gelu"])
def test_orders_case10(act: str) -> None:
    """(a_hidden, c): one point learns features; nothing else in the integrable range does."""
    check(diagram(act, "ac:0,a,a,1;c", BOX), hidden_slice)


@pytest.mark.slow
def test_the_slice_of_an_activation_with_a_degree() -> None:
    """ReLU^2: the same stability as for degree 1 where the initial sizes are of order one."""
    check(diagram("relu^2", "ac:0,1/2,1/2,a;c", BOX), output_slice)


@pytest.mark.slow
def test_S0_19_constant_rates_never_learn_everywhere() -> None:
    """IP with ReLU, rates (c, d, d, c) at all steps: no point is stable with all layers moving.

    Theorem 3.2 asks c = -2, d = -5/2 at the first step and c = -1, d = -2 at all others.
    """
    box = {"c": (Fraction(-3), Fraction(0)), "d": (Fraction(-3), Fraction(0))}
    found = diagram("relu", "ac:0,1,1,1;c,d,d,c", box)
    first = {"c": Fraction(-2), "d": Fraction(-5, 2)}
    later = {"c": Fraction(-1), "d": Fraction(-2)}
    assert _verdict(found, first) == "unstable"
    assert _verdict(found, later) == "trivial"


def _verdict(found: PhaseDiagram, point: Point) -> str:
    from tpcalc.exponents import parse_ex

    def holds(line: str) -> bool:
        left, sign, _ = line.rsplit(" ", 2)
        value = parse_ex(left).at(point)
        return value > 0 if sign == ">" else value == 0

    (cell,) = [cell for cell in found.cells if all(map(holds, cell.conditions))]
    return cell.verdict
