"""Programs against what a calculus of leading terms likes to assume, each with its truth.

Every answer must be right, or be refused with an error that says why; a bound must hold. The truths
are one-dimensional integrals, and ``test_truth`` checks each against networks of finite width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pytest
from numpy_run import draw, is_input, run

import tpcalc as tp
from tpcalc.errors import Exploded, TpcalcError
from tpcalc.program.nodes import Kind
from tpcalc.results import Estimate, Status

H = Fraction(1, 2)
ROOT = 1 / math.sqrt(2 * math.pi)  # E v 1_{v > 0} of a standard Gaussian
TAIL = math.erfc(1 / math.sqrt(2)) / 2  # P(u > 1)
_GRID = np.linspace(-9, 9, 20001)
_MASS = np.exp(-(_GRID**2) / 2) / np.exp(-(_GRID**2) / 2).sum()


def law(of: Callable[[np.ndarray], np.ndarray]) -> tuple[float, float]:
    """Mean and standard deviation of a function of a standard Gaussian."""
    values = of(_GRID)
    mean = float(_MASS @ values)
    return mean, math.sqrt(max(float(_MASS @ (values - mean) ** 2), 0.0))


@dataclass(frozen=True)
class Truth:
    """What an output is: of size n^power, and after that is taken out, of this mean and deviation.

    Args:
        power: The growth exponent.
        mean: Of a scalar; of a vector the mean square of a coordinate. None: there is none.
        std: Over networks; 0 where a scalar is deterministic in the limit.
    """

    power: Fraction | int
    mean: float | None
    std: float | None = 0.0


@dataclass(frozen=True)
class Claim:
    build: Callable[[tp.Tracer], object]
    truth: Truth
    vector: bool = False

    @cached_property
    def program(self) -> tp.Program:
        return tp.program(lambda t: t.output("y", self.build(t))).build()


def right_or_refused(answer: Callable[[], object], right: Callable[[object], None]) -> None:
    """The answer is right, or an error of tpcalc gives a reason for giving none."""
    try:
        found = answer()
    except TpcalcError as error:
        assert error.code != TpcalcError.code, error
        assert len(error.message.split()) > 3, error
        return
    right(found)


def is_order(truth: Truth) -> Callable[[object], None]:
    def right(found: object) -> None:
        if found.status == "exact":
            assert found.n is not None and found.n.constant == truth.power, found
        else:  # without an exponent nothing is claimed
            assert found.n is None or found.n.constant >= truth.power, found

    return right


def is_number(found: Estimate, mean: float | None, std: float | None) -> None:
    if mean is None:  # heavy tails: whoever gives a number says that it is not one to rely on
        assert found.status not in (Status.CONVERGED, Status.EXACT), found
        return
    assert abs(found.value - mean) <= 5 * found.stderr + 1e-6, (found, mean)
    if std is None:
        return
    if std == 0:
        assert found.std is None or found.std <= 1e-3, (found, "deterministic")
        return
    assert found.std is not None, (found, "random")
    slack = 5 * std / math.sqrt(found.replicates) if found.replicates else 1e-6
    assert abs(found.std - std) <= slack, (found, std)


def is_limit(truth: Truth, *, rescaled: bool) -> Callable[[object], None]:
    def right(found: object) -> None:
        (row,) = (*found.table.scalars, *found.table.vectors)
        if hasattr(row, "second_moment"):
            assert row.n_power.constant == truth.power, found
            is_number(row.second_moment, truth.mean, None)
        elif rescaled or truth.power == 0:
            assert row.n_power.constant == truth.power, found
            is_number(row.estimate, truth.mean, truth.std)
        else:  # as written: 0 where it vanishes; what explodes has no limit
            assert truth.power < 0, found
            is_number(row.estimate, 0.0, 0.0)

    return right


# ----------------------------------------------------------------------------------- the programs


def vectors(t: tp.Tracer, names: str = "uvxzw") -> list[tp.Tracer]:
    return [t.gaussian(name) for name in names]


def fluctuation(t, u):
    return tp.n**H * (t.inner(u, u) - 1)


def a1(t):
    (u,) = vectors(t, "u")
    s = fluctuation(t, u)
    return 1 / (1 + s * s)


def normalised(t):
    (u,) = vectors(t, "u")
    h = tp.n**-1 * (t.matrix("W") @ u)
    return h, tp.softplus(h)


def a2(t):
    h, x = normalised(t)
    c = x - tp.mean(x)
    return t.inner(c * t.inner(c, c) ** -H, tp.n**H * h)


def a3(t):
    h, x = normalised(t)
    averages = [tp.mean(x), t.inner(x, x)]
    return t.moment(lambda x, y, m, q: (x - m) * y / (q - m**2), x, tp.n**H * h, scalars=averages)


def a4(t):
    u, v = vectors(t, "uv")
    s = tp.n**H * (t.inner(u, u) - t.inner(v, v))
    x = tp.tanh(s**-1 * u + v)
    return t.inner(x, x)


def twins(t, u, v):
    matrix = t.matrix("W")
    return t.inner(u, matrix @ v) - t.inner(v, matrix.T @ u)


def a5(t):
    d = twins(t, *vectors(t, "uv"))
    return (tp.n**2 * (d * d) + 1) ** -1


def a6(t):
    u, v = vectors(t, "uv")
    s = fluctuation(t, u)
    return v / (1 + s * s)


def pair(t):
    x, z, v = vectors(t, "xzv")
    y = x + tp.relu(z)
    return x, y, y + tp.n**-H * v, v


def b1(t):
    x, _, y2, v = pair(t)
    return t.moment(lambda v, y, x: v * tp.step(y - x), v, y2, x)


def distance(t):
    def gap(y, x):
        return tp.abs(y - x)

    x, y, y2, _ = pair(t)
    return t.nonlin(gap, y2, x) - t.nonlin(gap, y, x)


def b2(t):
    return tp.n**H * tp.mean(distance(t))


def b3(t):
    d = distance(t)
    return tp.n * t.inner(d, d)


def b4(t):
    def larger(a, b):
        return b + tp.relu(a - b)

    u, v = vectors(t, "uv")
    h = tp.n**-H * (t.matrix("W") @ u)
    k = h + tp.relu(tp.n**-H * (t.matrix("V") @ u))
    return t.inner(t.nonlin(larger, k + tp.n**-H * v, h) - t.nonlin(larger, k, h), tp.n**H * v)


def averages(t):
    u, v, w = vectors(t, "uvw")
    return v, [t.inner(u, u), t.inner(w, w)]


def c1(t):
    v, ab = averages(t)
    return t.nonlin(lambda x, a, b: x / (a - b), v, scalars=ab)


def c2(t):
    v, ab = averages(t)
    return tp.n**-1 * t.nonlin(lambda x, a, b: x * (a - b) ** -2, v, scalars=ab)


def c3(t):
    y = c2(t)
    return t.inner(y, y)


def c4(t):
    u, v = vectors(t, "uv")
    return t.nonlin(lambda x, s: x / (s - 1), v, scalars=[t.inner(u, u)])


def gate(t, vanishing, v):
    return t.inner(tp.step(vanishing + tp.n**-H * v), v)


def d1(t):
    u, v = vectors(t, "uv")
    return gate(t, (t.inner(u, u) - 1) * u, v)


def d2(t):
    x, z, v = vectors(t, "xzv")
    return gate(t, x * t.inner(x, x) ** -H - x + tp.relu(z), v)


def d3(t):
    u, v = vectors(t, "uv")
    return t.inner(tp.step((tp.n * twins(t, u, v)) * u + v), v)


def e1(t):
    x, y = t.gaussians(["x", "y"], cov=[[1, 1], [1, 1]])
    (v,) = vectors(t, "v")
    matrix = t.matrix("W")
    return gate(t, tp.n**-H * (matrix @ x) - tp.n**-H * (matrix @ y), v)


def e2(t):
    u, v = vectors(t, "uv")
    matrix = t.matrix("W")
    return gate(t, tp.n**-H * (matrix @ tp.relu(2 * u)) - 2 * (tp.n**-H * (matrix @ tp.relu(u))), v)


def e3(t):
    u, v = vectors(t, "uv")
    matrix = t.matrix("W")
    parts = [tp.n**-H * (matrix @ x) for x in (tp.relu(u), u, tp.abs(u))]
    return gate(t, parts[0] - parts[1] / 2 - parts[2] / 2, v)


def f1(t):
    u, v = vectors(t, "uv")
    return t.moment(lambda x, s: x * x * tp.step(s - 1), v, scalars=[t.inner(u, u)])


def f2(t):
    u, v = vectors(t, "uv")
    return t.nonlin(lambda x, s: x * tp.step(s - 1), v, scalars=[t.inner(u, u)])


def flat(t):
    u, v = vectors(t, "uv")
    return tp.relu(u + 1) - tp.relu(u - 1) - 1 + tp.n**-H * v, v


def g1(t):
    y, v = flat(t)
    return t.inner(tp.step(y - 1), v)


def g2(t):
    y, v = flat(t)
    return tp.n**H * t.inner(tp.relu(y - 1), v)


def m1(t):
    u, w, v = vectors(t, "uwv")
    c = tp.relu(u) * w
    return tp.abs(c + tp.n**-H * v) - tp.abs(c)


def m2a(t):
    u, v, x, z = vectors(t, "uvxz")
    return (tp.n**H * t.inner(u, v)) / (tp.n**H * t.inner(x, z))


def m2b(t):
    u, v, x = vectors(t, "uvx")
    return v / (tp.n**H * t.inner(u, x)) ** 2


def _a4() -> tuple[float, float]:
    """E over v of tanh(sqrt(1 + 1/s^2) v)^2, for s of variance 4."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(201)
    weights = weights / weights.sum()

    def inner(g: np.ndarray) -> np.ndarray:
        inverse = 1 / np.maximum(np.abs(2 * g), 1e-9)
        return np.tanh(np.sqrt(1 + inverse**2)[:, None] * nodes) ** 2 @ weights

    return law(inner)


CLAIMS: dict[str, Claim] = {
    "A1": Claim(a1, Truth(0, *law(lambda g: 1 / (1 + 2 * g**2)))),
    "A2": Claim(a2, Truth(0, 1.0)),
    "A3": Claim(a3, Truth(H, 2.0)),
    "A4": Claim(a4, Truth(0, *_a4())),
    "A5": Claim(a5, Truth(0, 1.0)),
    "A6": Claim(a6, Truth(0, law(lambda g: 1 / (1 + 2 * g**2) ** 2)[0]), vector=True),
    "B1": Claim(b1, Truth(0, ROOT / 2)),
    "B2": Claim(b2, Truth(0, ROOT)),
    "B3": Claim(b3, Truth(0, 1.0)),
    "B4": Claim(b4, Truth(0, 0.75)),
    "C1": Claim(c1, Truth(H, None), vector=True),
    "C2": Claim(c2, Truth(0, None), vector=True),
    "C3": Claim(c3, Truth(0, None)),
    "C4": Claim(c4, Truth(H, None), vector=True),
    "D1": Claim(d1, Truth(0, *law(lambda g: ROOT / np.sqrt(1 + 2 * g**2)))),
    "D2": Claim(d2, Truth(0, *law(lambda g: ROOT / 2 / np.sqrt(1 + g**2 / 2)))),
    "D3": Claim(d3, Truth(0, ROOT)),
    "E1": Claim(e1, Truth(0, ROOT)),
    "E2": Claim(e2, Truth(0, ROOT)),
    "E3": Claim(e3, Truth(0, ROOT)),
    "F1": Claim(f1, Truth(0, 0.5, 0.5)),
    "F2": Claim(f2, Truth(0, 0.5), vector=True),
    "G1": Claim(g1, Truth(0, ROOT * TAIL)),
    "G2": Claim(g2, Truth(0, TAIL / 2)),
    "M1": Claim(m1, Truth(-H, 1.0), vector=True),
    "M2": Claim(m2a, Truth(0, None)),
    "M2-vector": Claim(m2b, Truth(0, None), vector=True),
}
each = pytest.mark.parametrize("name", CLAIMS)


@each
def test_order(name: str) -> None:
    claim = CLAIMS[name]
    right_or_refused(lambda: tp.orders(claim.program)["y"], is_order(claim.truth))


@each
@pytest.mark.parametrize("rescaled", [False, True], ids=["as-written", "rescaled"])
def test_limit(name: str, rescaled: bool) -> None:
    claim = CLAIMS[name]
    answer = is_limit(claim.truth, rescaled=rescaled)
    right_or_refused(lambda: tp.limit(claim.program, rescale=rescaled), answer)


@pytest.mark.parametrize("seed", range(3))
def test_limit_beside_a_random_scalar(seed: int) -> None:
    """A6 where something else is sampled too, so that everything is given 64 replicates."""

    def both(t: tp.Tracer) -> None:
        y, (r, x) = a6(t), vectors(t, "rx")
        t.output("y", y)
        t.output("other", tp.tanh(tp.n**H * t.inner(r, x)))

    def right(found: object) -> None:
        if found.table.uncovered:
            (lost,) = found.table.uncovered
            assert lost.name == "y"
            return
        (row,) = found.table.vectors
        assert str(row.n_power) == "0"
        is_number(row.second_moment, CLAIMS["A6"].truth.mean, None)

    right_or_refused(lambda: tp.limit(tp.program(both), seed=seed), right)


@each
def test_truth(name: str) -> None:
    """Networks of two widths have these sizes and these means."""
    claim = CLAIMS[name]
    program = claim.program
    dense = any(is_input(node, Kind.MATRIX) for node in program.nodes)
    widths, seeds = ((2**7, 2**10), 32) if dense else ((2**8, 2**13), 300)
    heavy = claim.truth.mean is None
    sizes = []
    for width in widths:
        rng = np.random.default_rng([*name.encode(), width])
        found = [run(program, width, draw(program, width, rng))["y"] for _ in range(seeds)]
        values = np.array([np.mean(y**2) if claim.vector else y for y in found])
        sizes.append((np.median if heavy else np.mean)(np.abs(values)))
    power = float(claim.truth.power) * (2 if claim.vector else 1)
    slope = math.log(sizes[1] / sizes[0]) / math.log(widths[1] / widths[0])
    assert abs(slope - power) < 0.2, slope  # powers of programs like these are multiples of 1/4
    if not heavy:
        values = values * widths[1] ** -power
        error = float(np.std(values)) / math.sqrt(seeds)
        assert abs(float(np.mean(values)) - claim.truth.mean) < 5 * error + 1 / math.sqrt(widths[1])


# ----------------------------------------------------------------------------- refused, and how


def smooth_and_jump(t: tp.Tracer, *outputs: str) -> None:
    v, w = vectors(t, "vw")
    values = {
        "smooth": tp.sigmoid(tp.n ** "-1/4" * v),
        "jump": tp.step(v + tp.n**-1 * w) - tp.step(v),
    }
    for name in outputs:
        t.output(name, values[name])


def test_R1_an_answer_does_not_depend_on_what_else_is_asked() -> None:
    found = tp.orders(tp.program(lambda t: smooth_and_jump(t, "smooth", "jump")))
    assert repr(found["smooth"]) == "n**(0)"
    for name in ("smooth", "jump"):
        alone = tp.orders(tp.program(lambda t, name=name: smooth_and_jump(t, name)))
        assert repr(found[name]) == repr(alone[name])


def test_R3_what_vanishes_is_not_said_to_explode() -> None:
    """LayerNorm of a layer that is constant to leading order."""
    data = tp.Samples(((0.5, -0.3),), ((1.0,),))
    program = tp.train(
        tp.MLP(2, "relu", norm="layer"), "ip-non-centered", data, steps=0, watch=("h",)
    )
    values = [
        run(program, 1024, draw(program, 1024, np.random.default_rng(seed)))["f[0,0]"]
        for seed in range(16)
    ]
    assert 0 < np.abs(values).max() < 10
    try:
        found = tp.limit(program, outputs=["f[0,0]"])["f[0,0]"]
    except TpcalcError as error:
        assert not isinstance(error, Exploded), error
        assert "learning rate" not in str(error)
    else:
        is_number(found, float(np.mean(values)), None)
