"""Residual networks whose matrices are paths along the depth, and no random ones."""

from __future__ import annotations

from math import exp, log10, sqrt

import pytest

import tpcalc as tp
from tpcalc.analyses.depth.start import block_at_start, start_program
from tpcalc.errors import ProgramError, UsageError
from tpcalc.program.along import along_of

NAMES = ("R^2", "D^2", "Rp^2", "Dp^2")


def path(along: str, alpha: object, act: str = "identity", **shape: object) -> tp.ResNet:
    return tp.ResNet("L", act, alpha=alpha, along=along, **shape)


def test_S2_14_A19_a_growing_multiple_tends_to_the_differential_equation() -> None:
    found = tp.depth_limit(path("multiple(1, 1)", 1), [100, 1000, 10_000, "oo"])
    end = exp(1.5)
    assert found.at("R^2", "oo").value == pytest.approx(end**2, rel=1e-12)
    gaps = [depth * (sqrt(found.at("R^2", depth).value) - end) for depth in (100, 1000, 10_000)]
    assert gaps == pytest.approx([-2.9558, -2.98456, -2.98747], abs=6e-5)


@pytest.mark.parametrize("alpha", ["0.75", "0.25"])
def test_S2_15_A20_turns_neither_explode_nor_vanish_between(alpha: str) -> None:
    depth, few, net = 10**4, 100, path("turn(1)", alpha)
    found, drawn = tp.depth_limit(net, [few, depth]), tp.depth_simulate(net, few, 2, 1)
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
    value = tp.depth_limit(net, [10**4]).at("R^2", 10**4).value
    assert log10(value) / 2 == pytest.approx(43.21374, abs=6e-6)
    drawn = tp.depth_simulate(net, 100, 3, 1).log10("R", "1/2")
    assert drawn.value == pytest.approx(100 * log10(1.1), abs=1e-9)


SHAPES = [
    ("multiple(1, 1)", "relu", {}),
    ("turn(2)", "tanh", {}),
    ("turn(1, 1)", "relu", {"nonlin": "between", "layers": 2}),
    ("multiple(1, -2)", "tanh", {"nonlin": "post", "multiplier": 2}),
]


@pytest.mark.parametrize(("along", "act", "shape"), SHAPES, ids=str)
def test_S2_14_pairs_of_coordinates_agree_with_networks(
    along: str, act: str, shape: dict[str, object]
) -> None:
    net = path(along, 1, act, **shape)
    found, drawn = tp.depth_limit(net, [6, "oo"]), tp.depth_simulate(net, 6, 1000, 24)
    for name in ("R", "D", "Rp", "Dp"):
        value, own = drawn.square(name, "1"), found.at(f"{name}^2", 6)
        assert abs(value.value - own.value) < 5 * value.stderr + 2 * own.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("along", "act", "shape"), SHAPES, ids=str)
def test_S2_14_networks_tend_to_the_equation_like_one_over_L(
    along: str, act: str, shape: dict[str, object]
) -> None:
    found = tp.depth_limit(path(along, 1, act, **shape), [50, 100, "oo"])
    for name in NAMES:
        end = found.at(name, "oo")
        far, near = (found.at(name, depth).value - end.value for depth in (50, 100))
        # A square that tends to 0 is the square of a gap.
        rate = 4 if abs(end.value) <= end.stderr else 2
        assert far / near == pytest.approx(rate, rel=0.05)


def test_multiples_are_written_out_as_programs() -> None:
    net = path("multiple(1, 1)", 1, "relu", nonlin="between", layers=2)
    program = tp.limit(start_program(block_at_start(net), 4), seed=0)
    found = tp.depth_limit(net, [4])
    for name in NAMES:
        value, own = found.at(name, 4), program[name]
        assert abs(own.value - value.value) < 5 * own.stderr + 2 * value.stderr + 1e-12
    with pytest.raises(ProgramError, match="no program writes"):
        start_program(block_at_start(path("turn(1)", 1)), 4)


def test_limits_of_other_powers() -> None:
    vanished = tp.depth_limit(path("turn(1)", 2))
    assert [vanished.at(name, "oo").value for name in NAMES] == [1, 0, 1, 0]
    assert "no limit" in tp.depth_limit(path("turn(1)", "3/4")).lacking[0][1]


def test_what_paths_are_not_asked() -> None:
    with pytest.raises(UsageError, match="not read off"):
        tp.check(path("turn(1)", "3/4"), "mup")
    with pytest.raises(UsageError, match="even width"):
        tp.depth_simulate(path("turn(1)", 1), 4, 3)
    with pytest.raises(ProgramError, match="no autocovariance"):
        along_of("multiple(1, 1)").autocovariance(4)
    with pytest.raises(ProgramError, match="law along the depth"):
        along_of("multiple")


def test_S2_3_paths_are_lipschitz() -> None:
    net = path("multiple(1, 1)", 1)
    assert tp.resnets.assumptions(net, 40)["A5"].met
