"""Acceptance cases of spec 0 (Hajjar, Chizat, Giraud) that the core holds, by running programs."""

from __future__ import annotations

import math

import pytest
from agree import agree
from oracles.seed0_data import K01, XI1, one_step

import tpcalc as tp

SAMPLES, REPLICATES = 2**14, 32


def limit(program: tp.Program, *names: str) -> tp.Limit:
    return tp.limit(
        program, samples=SAMPLES, replicates=REPLICATES, seed=3, outputs=list(names) or None
    )


@pytest.mark.parametrize("parameterization", ["mup", "naive-ip", "ip-llr"])
def test_S0_case21(parameterization: str) -> None:
    """L = 1: the three parameterizations coincide; linear f_1 = -2 eta chi_0 k."""
    found = limit(one_step(1, "linear", parameterization, 1.0), "f[1,1]")["f[1,1]"]
    assert found.stderr < 2e-3
    agree(found, 2 * K01)


def test_S0_26_case32() -> None:
    """muP ReLU, L = 2, eta = 1.5: the correction terms matter (0.93499 without them)."""
    found = limit(one_step(2, "relu", "mup", 1.5), "f[1,1]", "h[2,1,1]")
    value = found["f[1,1]"]
    assert value.stderr < 1e-3
    agree(value, 1.12019)
    assert value.z(0.93499) > 5 and value.value - 0.93499 > 20 * value.stderr
    agree(found["h[2,1,1]"].second_moment, 2.46993)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_S0_26_case33(depth: int) -> None:
    """muP linear: f_1 = -(L + 1) eta chi_0 k."""
    found = limit(one_step(depth, "linear", "mup", 1.0), "f[1,1]")["f[1,1]"]
    assert found.stderr < 5e-3
    agree(found, (depth + 1) * K01)


def test_S0_29_case34() -> None:
    """NTK ReLU, L = 3: f_1 - f_0 = -eta chi_0 K with K(xi_0, xi_1) = 0.420084, f_0 random."""
    program = one_step(3, "relu", "ntk", 1.0, watch=())
    moved = tp.extend(program, lambda t: t.output("moved", t["f[1,1]"] - t["f[0,1]"]))
    found = limit(moved, "moved", "f[0,1]")
    value = found["moved"]
    assert value.stderr < 1e-3
    agree(value, 0.420084, rounding=5e-7)
    start = found["f[0,1]"]
    assert start.random
    # f_0 is N(0, V) with V the NNGP variance: k(xi_1, xi_1) = 2.35, halved by each ReLU layer
    variance = 2.35 / 2**3
    assert abs(start.std**2 - variance) < 5 * variance * math.sqrt(2 / (REPLICATES - 1))


def _square(act: object, std: float) -> tp.Limit:
    @tp.program
    def there_and_back(t: tp.Tracer) -> None:
        z = t.gaussian("z", var=std**2)
        w = t.matrix("W")
        y = tp.n**-0.5 * (w.T @ z)
        h = tp.n**-0.5 * (w @ act(y))  # type: ignore[operator]
        t.output("zh", t.inner(z, h))
        t.output("hh", t.inner(h, h))

    return limit(there_and_back)


@pytest.mark.parametrize(
    ("act", "zh", "hh"),
    [
        (lambda y: y, 1.25, 2.5),
        (tp.tanh, 0.7062, 0.8340),
        (tp.relu, 0.625, 0.9375),
    ],
    ids=["identity", "tanh", "relu"],
)
def test_S0_5_7_case38(act: object, zh: float, hh: float) -> None:
    """h = What phi(What^T z), E z^2 = g = 5/4: E z h = g E phi', E h^2 = E phi^2 + g (E phi')^2."""
    found = _square(act, math.sqrt(1.25))
    rounding = 5e-5 if act is tp.tanh else 0.0  # the spec prints four digits
    for name, value in (("zh", zh), ("hh", hh)):
        assert found[name].stderr < 2e-3
        agree(found[name], value, rounding=rounding)


def test_S0_7_case38_needs_the_correction() -> None:
    """Without the correction E z h would be 0: the program knows that W is used twice."""
    found = _square(tp.relu, math.sqrt(1.25))
    assert found["zh"].z(0.0) > 50


def test_S0_26_case32_at_finite_width() -> None:
    """The same program at width 2048 agrees with its limit within its spread."""
    program = one_step(2, "relu", "mup", 1.5, watch=())
    table = tp.simulate(program, widths=[2048], seeds=24, seed=1)
    row = next(row for row in table.rows if row.name == "f[1,1]")
    mean = sum(row.values) / len(row.values)
    spread = math.sqrt(sum((v - mean) ** 2 for v in row.values) / (len(row.values) - 1))
    assert abs(mean - 1.12019) < 5 * spread / math.sqrt(len(row.values)) + 2 / 2048


def test_query_is_the_second_input() -> None:
    """The oracle helper puts the query after the batch."""
    program = one_step(1, "relu", "mup", 1.0, watch=())
    assert [name for name, _ in program.outputs] == ["f[0,0]", "f[0,1]", "f[1,0]", "f[1,1]"]
    assert len(XI1) == 4
