"""Hand-made answers about exponents: a small network's orders, verdict, rates and phases."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.results import (
    Exponent,
    LayerFacts,
    OrderRow,
    OrderTable,
    PhaseCell,
    PhaseDiagram,
    Provenance,
    Solution,
    SolvedParameter,
    SolvedStep,
    Verdict,
)

__all__ = ["DIAGRAM", "MEASURED", "ORDERS", "SOLUTION", "VERDICT"]

MADE = Provenance("0.1.0", "ab12cd34", 0, (("verify", "yes"),), (), 0.25)


def _orders() -> tuple[OrderRow, ...]:
    rows = []
    for step in range(2):
        for layer in (1, 2):
            rows.append(OrderRow(f"h[{layer},{step},0]", Exponent.of("0"), "exact", "parity"))
            rows.append(OrderRow(f"h[{layer},{step},1]", Exponent.of("0"), "exact", "parity"))
            bound = step == 1 and layer == 2
            rows.append(
                OrderRow(
                    f"dh[{layer},{step},0]",
                    Exponent.of("-1"),
                    "upper" if bound else "exact",
                    "the mean of x[1]*dx[1] may be 0" if bound else "parity",
                )
            )
        rows.append(
            OrderRow(f"dW_x[3,{step},0]", Exponent.of("-oo" if step == 0 else "-1/2"), "exact")
        )
        for index in range(2):
            n = "1/2 - 3*a" if index else "-1/2"
            rows.append(OrderRow(f"f[{step},{index}]", Exponent.of(n), "exact"))
    rows.append(OrderRow("alignment", Exponent.of("-1/2"), "upper", "parity of W[2]"))
    return tuple(rows)


ORDERS = OrderTable(
    _orders(), ("a > 1/2", "p > 0"), (("a", "3/4"), ("p", "2")), MADE, ("2 bounds remain",)
)
MEASURED = OrderTable(
    (
        OrderRow("f[0,0]", Exponent.of("-1/2"), "exact", "parity", -0.52, -0.6, -0.44, agrees=True),
        OrderRow("f[1,0]", Exponent.of("0"), "exact", "", -0.31, -0.4, -0.22, agrees=False),
        OrderRow("h[1,0,0]", Exponent.of("0"), "upper", "parity", -0.5, -0.55, -0.45, agrees=True),
        OrderRow("h[2,0,0]", Exponent.of("a"), "exact", "", 0.1, 0.0, 0.2),
        OrderRow("x[1,0,0]", Exponent.of("-oo"), "exact", "", note="identically 0"),
    ),
    (),
    (),
    MADE,
)
_FACT = "the update of layer 2 is of size n^(-1/2): it vanishes"
VERDICT = Verdict(
    "trivial",
    "exact",
    (_FACT, "f[1,0]-f[0,0] is of size n^(-1/2)"),
    3,
    MADE,
    valid_for="all t",
    region=("a > 1/2",),
    notes=("a fixed point in t was reached at t = 2",),
    initial="vanishes",
    stationary_start=True,
    layers=(
        LayerFacts(1, True, False, None, 1, "dW_x[1,1,0] is of size 1", "", "moves", "frozen"),
        LayerFacts(2, False, False, False, None, "", "", "cut off"),
        LayerFacts(3, None, None, None, None, ""),
    ),
    updates=tuple(
        OrderRow(f"dW_x[{layer},{step},0]", Exponent.of("-1/2" if layer == 2 else "0"), "exact")
        for step in (1, 2)
        for layer in (1, 2, 3)
    ),
    rows=(
        OrderRow("f[1,0]-f[0,0]", Exponent.of("-1/2"), "exact", "parity"),
        OrderRow("x[2,1,0]-x[2,0,0]", Exponent.of("-1"), "upper"),
    ),
)
SOLUTION = Solution(
    (
        SolvedStep(0, ("-2", "-5/2", "-2"), ("-2", "-2", "-2")),
        SolvedStep(1, ("-1", "-2", "-1")),
    ),
    ("p > 0",),
    (("p", "1"),),
    (("c_1", "-(L + 1)/2"), ("c_l", "-(L + 2)/2")),
    MADE,
    stored=(
        SolvedParameter("1", "input", "0", ("-2", "-1")),
        SolvedParameter("1", "bias", "0", ("-2", "-2")),
    ),
)


def _cell(
    verdict: str, conditions: str, corners: str, sample: str, fact: str = "the output moves"
) -> PhaseCell:
    pairs = (corner.split(",") for corner in corners.split())
    vertices = tuple((Fraction(x), Fraction(y)) for x, y in pairs)
    at = tuple(zip(("a", "c"), sample.split(","), strict=True))
    dimension = min(len(vertices) - 1, 2)
    return PhaseCell(dimension, verdict, tuple(conditions.split("; ")), vertices, at, fact)


DIAGRAM = PhaseDiagram(
    ("a", "c"),
    (("a", Fraction(0), Fraction(1)), ("c", Fraction(-2), Fraction(1))),
    (
        _cell("unstable", "c < -1", "0,-2 1,-2 1,-1 1/2,-1 0,-1", "1/2,-3/2", "f[1] grows"),
        _cell("unstable", "a < 1/2; c > -1", "0,-1 1/2,-1 1/2,0 1/2,1 0,1", "1/4,0", "f[0] grows"),
        _cell("unstable", "a < 1/2; c = -1", "0,-1 1/2,-1", "1/4,-1", "f[0] grows"),
        _cell("trivial", "a > 1/2; c > 0", "1/2,0 1,0 1,1 1/2,1", "3/4,1/2", "no output moves"),
        _cell(
            "trivial", "a > 1/2; -1 < c < 0", "1/2,-1 1,-1 1,0 1/2,0", "3/4,-1/2", "no output moves"
        ),
        _cell("trivial", "a > 1/2; c = 0", "1/2,0 1,0", "3/4,0", "no output moves"),
        _cell("trivial", "a > 1/2; c = -1", "1/2,-1 1,-1", "3/4,-1", "no output moves"),
        _cell("trivial", "a = 1/2; c > 0", "1/2,0 1/2,1", "1/2,1/2", "no output moves"),
        _cell("kernel", "a = 1/2; -1 < c < 0", "1/2,-1 1/2,0", "1/2,-1/2"),
        _cell("kernel", "a = 1/2; c = 0", "1/2,0", "1/2,0"),
        _cell("feature-learning", "a = 1/2; c = -1", "1/2,-1", "1/2,-1", "x[2] moves"),
    ),
    True,
    11,
    MADE,
)
