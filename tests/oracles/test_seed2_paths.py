"""Residual networks whose matrices are paths along the depth, and no random ones."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log10, sqrt

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import EvaluationError, ProgramError, UsageError
from tpcalc.program.along import along_of
from tpcalc.questions.depth.check import critical_powers
from tpcalc.questions.depth.limit import start_program
from tpcalc.questions.depth.shape import block_at_start

NAMES = ("R^2", "D^2", "Rp^2", "Dp^2")


def path(along: str, alpha: object, act: str = "identity", **shape: object) -> tp.ResNet:
    return tp.ResNet("L", act, alpha=alpha, along=along, **shape)


def test_S2_14_A19_a_growing_multiple_tends_to_the_differential_equation() -> None:
    found = tp.limit(path("multiple(1, 1)", 1), depths=[100, 1000, 10_000, "oo"])
    end = exp(1.5)
    assert found.at("R^2", "oo").value == pytest.approx(end**2, rel=1e-12)
    gaps = [depth * (sqrt(found.at("R^2", depth).value) - end) for depth in (100, 1000, 10_000)]
    assert gaps == pytest.approx([-2.9558, -2.98456, -2.98747], abs=6e-5)


@pytest.mark.parametrize("alpha", ["0.75", "0.25"])
def test_S2_15_A20_turns_neither_explode_nor_vanish_between(alpha: str) -> None:
    depth, few, net = 10**4, 100, path("turn(1)", alpha)
    found, drawn = tp.limit(net, depths=[few, depth]), tp.simulate(net, 2, 1, depth=few)
    moved = [sqrt(found.at(f"{name}^2", depth).value) for name in "RD"]
    if alpha == "0.75":
        assert moved == pytest.approx([1.0050125, 1.92266], abs=6e-6)
    else:
        assert log10(moved[0]) == pytest.approx(21.60687, abs=6e-6)
    for name in "RD":
        value = log10(found.at(f"{name}^2", few).value) / 2
        assert drawn.log10(name, drawn.alphas[0]).value == pytest.approx(value, abs=1e-9)


def test_S2_15_A21_the_identity_explodes() -> None:
    net = path("multiple(1)", "1/2")
    value = tp.limit(net, depths=[10**4]).at("R^2", 10**4).value
    assert log10(value) / 2 == pytest.approx(43.21374, abs=6e-6)
    drawn = tp.simulate(net, 3, 1, depth=100).log10("R", "1/2")
    assert drawn.value == pytest.approx(100 * log10(1.1), abs=1e-9)


SHAPES = [
    ("multiple(1, 1)", "relu", {}),
    ("turn(2)", "tanh", {}),
    ("turn(1, 1)", "relu", {"nonlin": "between", "layers": 2}),
    ("multiple(1, -2)", "tanh", {"nonlin": "post", "multiplier": 2}),
    ("pairs(1, 2, 0, -1, 0, 1, 1, 0)", "tanh", {}),
    pytest.param(
        *("pairs(0, 2, -1, 1)", "relu", {"nonlin": "between", "layers": 2}), marks=pytest.mark.slow
    ),
]


@pytest.mark.parametrize(("along", "act", "shape"), SHAPES, ids=str)
def test_S2_14_pairs_of_coordinates_agree_with_networks(
    along: str, act: str, shape: dict[str, object]
) -> None:
    net = path(along, 1, act, **shape)
    found, drawn = tp.limit(net, depths=[6, "oo"]), tp.simulate(net, 1000, 24, depth=6)
    for name in ("R", "D", "Rp", "Dp"):
        value, own = drawn.square(name, "1"), found.at(f"{name}^2", 6)
        assert abs(value.value - own.value) < 5 * value.stderr + 2 * own.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("along", "act", "shape"), SHAPES, ids=str)
def test_S2_14_networks_tend_to_the_equation_like_one_over_L(
    along: str, act: str, shape: dict[str, object]
) -> None:
    found = tp.limit(path(along, 1, act, **shape), depths=[50, 100, "oo"])
    for name in NAMES:
        end = found.at(name, "oo")
        far, near = (found.at(name, depth).value - end.value for depth in (50, 100))
        # A square that tends to 0 is the square of a gap.
        rate = 4 if abs(end.value) <= end.stderr else 2
        assert far / near == pytest.approx(rate, rel=0.05)


def test_multiples_are_written_out_as_programs() -> None:
    net = path("multiple(1, 1)", 1, "relu", nonlin="between", layers=2)
    program = tp.limit(start_program(block_at_start(net), 4), seed=0)
    found = tp.limit(net, depths=[4])
    for name in NAMES:
        value, own = found.at(name, 4), program[name]
        assert abs(own.value - value.value) < 5 * own.stderr + 2 * value.stderr + 1e-12
    with pytest.raises(ProgramError, match="no program writes"):
        start_program(block_at_start(path("turn(1)", 1)), 4)


def test_limits_of_other_powers() -> None:
    vanished = tp.limit(path("turn(1)", 2), depths=["oo"])
    assert [vanished.at(name, "oo").value for name in NAMES] == [1, 0, 1, 0]
    assert "no limit" in tp.limit(path("turn(1)", "3/4"), depths=["oo"]).lacking[0].reason


BETWEEN: dict[str, object] = {"nonlin": "between", "layers": 2}
# of what, its powers of L below which it grows or shrinks and above which it is the identity
REGIMES = [
    ("multiple(1, 1)", "identity", {}, "1", "stationary", {"1"}),  # A19
    ("turn(1)", "identity", {}, "3/4", "stationary", {"1/2", "1"}),  # A20
    ("turn(1)", "identity", {}, "1/4", "unstable", {"1/2", "1"}),  # A20
    ("turn(1)", "identity", {}, "1/2", "stationary", {"1/2", "1"}),
    ("turn(1)", "identity", {}, "3/2", "identity", {"1/2", "1"}),
    ("multiple(1)", "identity", {}, "1/2", "unstable", {"1"}),  # A21
    ("multiple(-1)", "identity", {}, "1/2", "vanishing", {"1"}),
    ("multiple(1, -3)", "identity", {}, "1/2", "vanishing", {"1"}),
    ("multiple(1)", "relu", {}, "1/2", "unstable", {"1"}),
    ("multiple(-1)", "relu", {}, "1/2", "stationary", {"1"}),  # half of the coordinates stay
    ("multiple(-1)", "relu", {"nonlin": "post"}, "1/2", "stationary", {"1"}),
    ("turn(1)", "identity", BETWEEN, "1/2", "vanishing", {"1"}),
    ("turn(1)", "identity", BETWEEN | {"multiplier": -1}, "1/2", "unstable", {"1"}),
    ("pairs(0, 1, -1, 0)", "identity", {}, "3/4", "stationary", {"1/2", "1"}),  # a turn
    ("pairs(0, 2, -1, 0)", "identity", {}, "1/4", "unstable", {"1/2", "1"}),  # ellipses
    ("pairs(0, 2, -1, 0)", "identity", {}, "3/2", "identity", {"1/2", "1"}),
    ("pairs(0, 2, 1, 0)", "identity", {}, "1/2", "unstable", {"1"}),  # a saddle
    ("pairs(-1, 2, -1, -1)", "identity", {}, "1/2", "vanishing", {"1"}),  # a spiral
    ("pairs(0, 2, 1, 0)", "identity", BETWEEN, "1/2", "unstable", {"1"}),  # twice the identity
    ("pairs(0, 1, 1, 0)", "identity", {}, "1", "stationary", {"1"}),
    ("pairs(0, 1, -1, 0, 0, 1, 0, 0)", "identity", {}, "1/4", "unstable", {"1/2", "1"}),
    ("pairs(1, 1, 2, -3, -1, 0, 1, 0)", "identity", {}, "1/4", "unstable", {"1"}),
    ("multiple(1, 1)", "tanh", {}, "1", "stationary", set()),
    ("multiple(1, 1)", "tanh", {}, "5/4", "identity", set()),
]


@pytest.mark.parametrize(("along", "act", "shape", "alpha", "regime", "critical"), REGIMES)
def test_S2_15_A19_A20_A21_check_tells_the_regime_that_numbers_show(
    along: str, act: str, shape: dict[str, object], alpha: str, regime: str, critical: set[str]
) -> None:
    net, (few, many) = path(along, alpha, act, **shape), (250, 1000)
    found, numbers = tp.check(net, "mup"), tp.limit(net, depths=[few, many])
    assert (found.verdict, found.outputs, found.gradients) == (regime,) * 3
    assert {str(row.alpha) for row in found.critical} == critical
    own = [row for row in found.rows if regime == "identity" or "turn" not in row.part]
    power = max(float(row.L.constant or 0) for row in own)
    for stream, moved in (NAMES[:2], NAMES[2:]):
        logs = [abs(log10(numbers.at(stream, depth).value)) for depth in (few, many)]
        gaps = [numbers.at(moved, depth).value for depth in (few, many)]
        if regime in ("unstable", "vanishing"):
            assert log10(logs[1] / logs[0]) / log10(4) == pytest.approx(power, abs=0.03)
            assert (numbers.at(stream, many).value > 1) == (regime == "unstable")
        elif regime == "identity":
            assert log10(gaps[1] / gaps[0]) / log10(16) == pytest.approx(power, abs=0.03)
        else:
            assert 0.01 < gaps[1] < 100 and logs[1] < 2


@pytest.mark.parametrize(
    ("along", "alpha", "regime", "power"),
    [
        ("turn(1, -2)", "5/8", "identity", -0.25),
        ("turn(1, -2)", "1/4", "unstable", 0.5),
        ("multiple(1, -2)", "5/8", "identity", -0.25),
        ("multiple(1, -2)", "1/4", "vanishing", 0.5),
        ("multiple(1, -2)", "3/2", "identity", -1.5),  # a sum whose integral is 0
    ],
)
def test_S2_15_paths_whose_integral_is_0(along: str, alpha: str, regime: str, power: float) -> None:
    net, law = path(along, alpha), along_of(along)

    def multiplied(depth: int) -> complex:
        """The log of what all blocks multiply."""
        i, place = (1j, 1) if law.mixes else (1 + 0j, 0)
        numbers = law.path(depth)[:, 0, place] * depth ** -float(Fraction(alpha))
        return complex(np.sum(np.log1p(i * numbers)))

    found, numbers = tp.check(net, "mup"), tp.limit(net, depths=[300])
    assert found.verdict == regime and found.rows[0].L.constant == power
    assert {str(row.alpha) for row in found.critical} == {"1/2"}
    for name, value in (("R^2", 2 * multiplied(300).real), ("D^2", np.expm1(multiplied(300)))):
        value = np.exp(value) if name == "R^2" else abs(value) ** 2
        assert numbers.at(name, 300).value == pytest.approx(float(value), rel=1e-9)
    one, two = multiplied(10**4), multiplied(10**6)
    gaps = (
        (abs(np.expm1(one)), abs(np.expm1(two))) if regime == "identity" else (-one.real, -two.real)
    )
    assert log10(gaps[1] / gaps[0]) / 2 == pytest.approx(power, abs=0.03)


def test_S2_15_matrices_of_pairs_beside_their_eigenvalues() -> None:
    """M(t) = [[1 - t, 1], [2 + t, -3]]: log R grows like the integral of its largest eigenvalue."""
    net, t = path("pairs(1, 1, 2, -3, -1, 0, 1, 0)", "1/2"), np.linspace(0, 1, 2001)
    matrices = np.array([[[1 - s, 1], [2 + s, -3]] for s in t])
    rate = np.trapezoid(np.linalg.eigvals(matrices).real.max(axis=1), t)
    logs = [np.log(tp.limit(net, depths=[k]).at("R^2", k).value) / 2 for k in (1000, 4000)]
    scaled = np.array([[k**0.5, 1] for k in (1000, 4000)])  # and a term of order 1 behind it
    assert np.linalg.solve(scaled, logs)[0] == pytest.approx(rate, rel=0.03)
    found = tp.check(net, "mup")
    assert (found.status, found.verdict, str(found.rows[0].L)) == ("derived", "unstable", "1/2")
    assert tp.check(path("pairs(0, 2, 1, 0)", "1/2"), "mup").status == "proved"


def test_S2_15_matrices_of_pairs_that_are_not_told() -> None:
    for along in ("pairs(0, 1, 0, 0)", "pairs(1, 0, 0, -1, -2, 0, 0, 2)"):
        verdicts = [tp.check(path(along, alpha), "mup") for alpha in ("1/2", 1, "3/2")]
        assert [one.verdict for one in verdicts] == ["undecided", "stationary", "identity"]
        assert any("do not tell" in note for note in verdicts[0].notes)
    numbers = tp.limit(path("pairs(0, 1, 0, 0)", "1/2"), depths=[100])  # D^2 = L^(2 - 2 alpha) / 2
    assert numbers.at("D^2", 100).value == pytest.approx(50)
    with pytest.raises(ProgramError, match="four entries"):
        along_of("pairs(1, 2, 3)")
    with pytest.raises(UsageError, match="even width"):
        tp.simulate(path("pairs(0, 2, 1, 0)", 1), 3, depth=4)
    growing = tp.resnets.proposition_12(path("pairs(0, 2, 1, 0)", "1/4"), 40)
    assert growing.answer == "holds" and growing.claims[0].derived == "tends to infinity"


def test_S2_14_what_is_said_of_paths_besides() -> None:
    found = tp.check(path("multiple(1, -3)", "1/2"), "mup")
    assert any("Proposition 13" in note for note in found.notes)
    assert "shrinks" in found.facts[0] and str(found.rows[0].L) == "1/2"
    end = tp.limit(path("multiple(1, -3)", "1/2"), depths=["oo"])
    assert [end.at(name, "oo").value for name in NAMES] == [0, 1, 0, 1]
    for net in (path("turn(1)", 0), path("turn(1)", "1/2", "tanh"), path("turn(1)", "1/2", "relu")):
        found = tp.check(net, "mup")
        assert (found.verdict, found.outputs, found.rows) == ("undecided", "", ())
    at = {"a": Fraction(1, 2)}
    assert tp.check(path("multiple(1)", "a"), "mup", at=at).verdict == "unstable"
    answers = [one.answer for one in tp.resnets.about_the_start(path("turn(1)", "1/4"))]
    assert answers == ["outside"] * 3
    growing = tp.resnets.proposition_12(path("multiple(1)", "1/4"), 40)
    assert growing.answer == "holds" and growing.claims[0].derived == "tends to infinity"


def test_what_paths_are_not_asked() -> None:
    with pytest.raises(UsageError, match="not followed"):
        tp.solve(path("turn(1)", "3/4"), "mup")
    with pytest.raises(UsageError, match="are read off blocks"):
        tp.check(path("turn(1)", 1, nonlin="post", layers=2), "mup")
    with pytest.raises(EvaluationError, match="less their average"):
        tp.check(path("multiple(1)", 1, "relu", center=True), "mup")
    with pytest.raises(UsageError, match="not told apart"):
        critical_powers(path("turn(1)", 1))
    with pytest.raises(UsageError, match="even width"):
        tp.simulate(path("turn(1)", 1), 3, depth=4)
    with pytest.raises(ProgramError, match="no autocovariance"):
        along_of("multiple(1, 1)").autocovariance(4)
    with pytest.raises(ProgramError, match="law along the depth"):
        along_of("multiple")


def test_S2_3_paths_are_lipschitz() -> None:
    net = path("multiple(1, 1)", 1)
    assert tp.resnets.assumptions(net, 40)["A5"].met
