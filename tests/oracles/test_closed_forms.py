"""Gaussian expectations with known closed forms (peers 5.2, 5.3; spec 0, case 39; spec 3, 3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import sympy
from agree import agree
from layered import Activation as Curve
from layered import Addition, Dense, Lines, Word, chain
from oracles.seed0_data import XI0
from sympy import Rational, acos, asin, exp, pi, sqrt

import tpcalc as tp
from tpcalc.dsl.elementwise import expression
from tpcalc.functions import Expr, Fn, Var
from tpcalc.functions.expr import substitute
from tpcalc.integrals.bounded import Bounded
from tpcalc.results import Method, Status

Activation = Callable[[Expr], Expr]

HALF = Fraction(1, 2)
q, q1, q2, s = sympy.symbols("q q1 q2 s", positive=True)
c, m = sympy.symbols("c m", real=True)
PAIR = [[q1, c * sqrt(q1 * q2)], [c * sqrt(q1 * q2), q2]]
EQUAL = [[q, c * q], [c * q, q]]
R = Rational
POINTS = [
    {q: R(1, 3), q1: R(7, 5), q2: R(2, 9), c: R(3, 7), m: R(1, 4)},
    {q: R(9, 4), q1: R(1, 8), q2: R(5, 3), c: R(-5, 6), m: -R(2)},
    {q: R(5), q1: R(4), q2: R(3), c: R(1, 50), m: R(6, 5)},
]


def same(found: Any, expected: Any) -> None:
    """Two formulas are equal: to 35 digits at three places, beyond what chance allows."""
    for point in POINTS:
        gap = sympy.N((found - expected).subs(point), 40, maxn=200)
        assert abs(gap) < Rational(1, 10**35), (found, expected, point)


def slope(act: Activation) -> Activation:
    """The derivative of an activation."""
    derived = Fn(expression(act, "act"), 1).by(0).expr
    return lambda z: substitute(derived, {Var(0): z})


def relu_pair(q1: Any, q2: Any, c: Any) -> Any:
    """Cho, Saul, equation (1), n = 1; half of it, for ReLU without the factor 2."""
    return sqrt(q1 * q2) * (sqrt(1 - c**2) + c * (pi - acos(c))) / (2 * pi)


def times(left: Activation, right: Activation) -> Callable[[Expr, Expr], Expr]:
    return lambda u, v: left(u) * right(v)


def test_printed_values_of_one_gaussian() -> None:
    """With the number comes its formula, and a rational number has no error."""
    for fn, formula, value in (
        (lambda z: tp.relu(z) ** 2, "1/2", 0.5),
        (lambda z: tp.erf(z) ** 2, "2*asin(2/3)/pi", 0.4645590544),
        (lambda z: tp.sin(z) ** 2, "1/2 - exp(-2)/2", (1 - math.exp(-2)) / 2),
        (lambda z: tp.gelu(z), "1/(2*sqrt(pi))", 0.5 / math.sqrt(math.pi)),
        (lambda z: tp.exp(z / 2), "exp(1/8)", math.exp(1 / 8)),
        (lambda z: tp.gelu(z) ** 2, "sqrt(3)/(6*pi) + 1/3", 0.4252214826),
    ):
        found = tp.expect(fn)
        assert found.method is Method.EXACT
        assert found.formula == formula
        assert found.value == pytest.approx(value, rel=2e-10)
        assert found.stderr <= 1e-13
        assert (found.status is Status.EXACT) == (formula == "1/2")


def test_square_times_square() -> None:
    """E Z^2 (Z/2 + sqrt(3)/2 W)^2 = 1 + 2 (1/2)^2."""
    found = tp.expect(lambda z, w: z**2 * w**2, [[1, HALF], [HALF, 1]])
    assert (found.formula, found.stderr) == ("3/2", 0.0)
    mixed = tp.expect(lambda z, w: z**2 * (z / 2 + math.sqrt(3) / 2 * w) ** 2, [[1, 0], [0, 1]])
    agree(mixed, 1.5)
    assert mixed.method is Method.EXACT
    root = tp.closed_form(lambda z, w: z**2 * w**2, [[1, c], [c, 1]])
    same(root, 1 + 2 * c**2)


def test_formulas_of_one_gaussian() -> None:
    closed = tp.closed_form
    same(closed(lambda z: tp.relu(z) ** 2, q), q / 2)
    same(closed(tp.relu, q), sqrt(q / (2 * pi)))
    same(closed(tp.abs, q), sqrt(2 * q / pi))
    same(closed(lambda z: tp.sin(z) ** 2, q), (1 - exp(-2 * q)) / 2)
    same(closed(lambda z: tp.cos(z), q), exp(-q / 2))
    same(closed(tp.gelu, q), q / sqrt(2 * pi * (1 + q)))
    same(closed(tp.exp, q), exp(q / 2))
    same(closed(tp.exp, q, m), exp(m + q / 2))
    same(closed(lambda z: z**4, q, m), m**4 + 6 * m**2 * q + 3 * q**2)
    same(closed(lambda z: tp.exp(-(z**2)), q), 1 / sqrt(1 + 2 * q))
    # E exp(s Z) with s a symbol: the variance of s Z is s^2
    assert sympy.simplify(closed(tp.exp, s**2) - exp(s**2 / 2)) == 0


def test_formulas_with_means() -> None:
    """Phi and the density of a mean over a standard deviation."""
    deviation = sqrt(q)
    density = exp(-(m**2) / (2 * q)) / sqrt(2 * pi)
    above = (1 + sympy.erf(m / (sqrt(2) * deviation))) / 2
    same(tp.closed_form(tp.step, q, m), above)
    same(tp.closed_form(tp.relu, q, m), m * above + deviation * density)
    same(
        tp.closed_form(lambda z: tp.relu(z) ** 2, q, m),
        (m**2 + q) * above + m * deviation * density,
    )
    same(tp.closed_form(tp.erf, q, m), sympy.erf(m / sqrt(1 + 2 * q)))


def test_formulas_of_two_gaussians() -> None:
    closed, relu, step = tp.closed_form, tp.relu, tp.step
    same(closed(times(relu, relu), PAIR), relu_pair(q1, q2, c))
    same(closed(times(step, step), PAIR), (pi - acos(c)) / (2 * pi))
    same(closed(times(tp.sign, tp.sign), PAIR), 2 * asin(c) / pi)
    same(
        closed(times(tp.abs, tp.abs), PAIR),
        2 * sqrt(q1 * q2) / pi * (sqrt(1 - c**2) + c * asin(c)),
    )
    cross = c * sqrt(q1 * q2)
    same(
        closed(times(tp.erf, tp.erf), PAIR),
        2 / pi * asin(2 * cross / sqrt((1 + 2 * q1) * (1 + 2 * q2))),
    )
    same(closed(times(tp.sin, tp.sin), PAIR), exp(-(q1 + q2) / 2) * sympy.sinh(cross))
    same(closed(times(tp.exp, tp.exp), PAIR), exp((q1 + q2) / 2 + cross))
    theta = acos(c)
    square = 3 * sympy.sin(theta) * c + (pi - theta) * (1 + 2 * c**2)  # Cho, Saul: J_2
    same(
        closed(lambda u, v: relu(u) ** 2 * relu(v) ** 2, PAIR),
        q1 * q2 * square / (2 * pi),
    )


def test_spec3_identity_and_relu() -> None:
    """Length map, mu_1, mu_2, and the correlation map on the edge of chaos."""
    closed = tp.closed_form
    same(closed(lambda z: z**2, q), q)
    for power in (2, 4):
        same(closed(lambda z, p=power: slope(tp.identity)(z) ** p, q), 1)
        same(closed(lambda z, p=power: slope(tp.relu)(z) ** p, q), HALF)
    same(closed(lambda z: tp.relu(z) ** 2, q), q / 2)
    edge = (sqrt(1 - c**2) + c * (pi - acos(c))) / pi
    same(2 * closed(times(tp.relu, tp.relu), EQUAL) / q, edge)
    same(2 * closed(times(slope(tp.relu), slope(tp.relu)), EQUAL), sympy.diff(edge, c))


def test_spec3_leaky_relu() -> None:
    leak, number = tp.leaky_relu(Fraction(1, 5)), Rational(1, 5)
    same(tp.closed_form(lambda z: leak(z) ** 2, q), q * (1 + number**2) / 2)
    same(tp.closed_form(lambda z: slope(leak)(z) ** 2, q), (1 + number**2) / 2)
    same(tp.closed_form(lambda z: slope(leak)(z) ** 4, q), (1 + number**4) / 2)


def test_spec3_erf() -> None:
    closed, act = tp.closed_form, slope(tp.erf)
    length = closed(lambda z: tp.erf(z) ** 2, q)
    same(length, 2 / pi * asin(2 * q / (1 + 2 * q)))
    same(sympy.diff(length, q), 4 / (pi * (1 + 2 * q) * sqrt(1 + 4 * q)))
    same(closed(lambda z: act(z) ** 2, q), 4 / (pi * sqrt(1 + 4 * q)))
    same(closed(lambda z: act(z) ** 4, q), 16 / (pi**2 * sqrt(1 + 8 * q)))
    same(closed(times(act, act), EQUAL), 4 / (pi * sqrt((1 + 2 * q) ** 2 - 4 * q**2 * c**2)))


def test_spec3_A1() -> None:
    """The edge of chaos of erf at q = .5: variances (1.3603495, .0465502)."""
    weights = 1 / tp.expect(lambda z: slope(tp.erf)(z) ** 2, HALF).value
    biases = 0.5 - weights * tp.expect(lambda z: tp.erf(z) ** 2, HALF).value
    assert weights == pytest.approx(1.3603495, abs=5e-8)
    assert biases == pytest.approx(0.0465502, abs=5e-8)


@pytest.mark.parametrize(("act", "value"), [("tanh", 0.472551399), ("relu", 0.608997781044)])
def test_peers_5_2_correlation_maps(act: str, value: float) -> None:
    """E phi phi / E phi^2 at correlation 1/2 and unit variances: the activation as it is."""
    phi = getattr(tp, act)
    pair = tp.expect(times(phi, phi), [[1, HALF], [HALF, 1]])
    own = tp.expect(lambda z: phi(z) ** 2)
    assert pair.value / own.value == pytest.approx(value, rel=1e-9)


def gelu_by_tanh(z: Expr) -> Expr:
    return z / 2 * (1 + tp.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))


# act, input scale, input shift, output shift, output scale
DKS = {
    "softplus": (tp.softplus, 0.18761008168, 0.40688063442, -0.92134661515, 8.87867254367),
    "tanh": (tp.tanh, 0.07461073058, 0.55669152000, -0.50343787687, 18.0026359644),
    "relu": (tp.relu, 0.36853600467, 1.0, -1.00037385855, 2.72172998876),
    "gelu-tanh": (gelu_by_tanh, 0.07036271496, 0.25868372486, -0.15758328114, 20.2495733052),
    "gelu": (tp.gelu, 0.07043253127, 0.25948929793, -0.15815378962, 20.2115890232),
    "leaky-relu": (tp.leaky_relu(0.87612570735), 1.0, 0.0, -0.049418692997, 1.06518327057),
}
TAT = {
    "softplus": (tp.softplus, 0.15011489795, 0.53745999011, -0.99648101447, 10.5488018788),
    "tanh": (tp.tanh, 0.05802052186, 0.52186398041, -0.47964307044, 22.3606626176),
    "leaky-relu": (tp.leaky_relu(0.62918002903), 1.0, 0.0, 0.0, 1.19699654978),
}


def transformed(row: tuple[Activation, float, float, float, float]) -> Activation:
    act, scale, shift, lift, height = row
    return lambda z: height * (act(scale * z + shift) + lift)


@pytest.mark.parametrize("name", list(DKS))
def test_peers_5_2_dks(name: str) -> None:
    """Q(1) = 1, C(0) = 0, C'(1) = 1.00277 (a subnet slope of 1.2), Q'(1) = 1 where it is smooth.

    The parameters have 11 digits, and ReLU with a shift of 1 was found with fewer.
    """
    phi = transformed(DKS[name])
    derived = slope(phi)
    assert tp.expect(lambda z: phi(z) ** 2).value == pytest.approx(1, abs=1e-9)
    assert tp.expect(phi).value == pytest.approx(0, abs=1e-9)
    change = tp.expect(lambda z: derived(z) ** 2).value
    assert change == pytest.approx(1.00277096591, abs=1e-6 if name == "relu" else 2e-10)
    if name not in ("relu", "leaky-relu"):
        assert tp.expect(lambda z: z * phi(z) * derived(z)).value == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("name", list(TAT))
def test_peers_5_2_tat(name: str) -> None:
    """Q(1) = 1; smooth ones have C'(1) = Q'(1) = 1; the leaky ReLU has C(0) = .03136."""
    phi = transformed(TAT[name])
    derived = slope(phi)
    assert tp.expect(lambda z: phi(z) ** 2).value == pytest.approx(1, abs=1e-9)
    if name == "leaky-relu":
        assert tp.expect(phi).value ** 2 == pytest.approx(0.0313568306122, abs=2e-12)
        return
    assert tp.expect(lambda z: derived(z) ** 2).value == pytest.approx(1, abs=1e-9)
    assert tp.expect(lambda z: z * phi(z) * derived(z)).value == pytest.approx(1, abs=1e-9)


def residual_network(phi: Activation) -> Lines:
    """The network behind the parameters: blocks (3, 4, 23, 3) of weight .6 on the way around."""
    layer: tuple[Word, Word] = (Curve(phi(Var(0))), Dense())
    graph = chain(tp.signal.Input(1, 0), [])
    for blocks in (3, 4, 23, 3):
        for block in range(blocks):
            around = start = graph.last
            if block == 0:
                graph = graph.then(layer[0], start).then(layer[1])
                around = graph.last
            graph = graph.then(layer[0], start).then(layer[1])
            for operation in (*layer, *layer):
                graph = graph.then(operation)
            graph = graph.then(Addition((0.6, 0.8)), around, graph.last)
    return graph.then(layer[0])


@pytest.mark.parametrize("name", ["softplus", "tanh", "relu", "leaky-relu"])
def test_peers_5_2_dks_slope_of_the_whole_network(name: str) -> None:
    slope_at_1 = tp.signal.kernel_slope(residual_network(transformed(DKS[name])), Bounded(1.0))
    assert slope_at_1.value == pytest.approx(1.2, abs=5e-5 if name == "relu" else 1e-7)


@pytest.mark.slow
def test_peers_5_2_tat_targets_of_the_whole_network() -> None:
    """C(0) = .75 for the leaky ReLU; C''(1) = .2 for smooth activations, whose C'(1) is 1."""
    leaky = residual_network(transformed(TAT["leaky-relu"]))
    found = tp.signal.covariance(leaky, [[1, 0], [0, 1]]).values
    assert found[0, 0] == pytest.approx(1, abs=1e-9)
    assert found[0, 1] == pytest.approx(0.75, abs=1e-9)
    for name in ("softplus", "tanh"):
        graph, h = residual_network(transformed(TAT[name])), 1e-3
        near, far = (
            1 - tp.signal.kernel_slope(graph, Bounded(1 - step)).value for step in (h, 2 * h)
        )
        assert (4 * near - far) / (2 * h) == pytest.approx(0.2, abs=1e-4)


TRAJECTORY = {
    1: Fraction(1, 4),
    2: Fraction(1141, 2560),
    3: Fraction(405039363661, 671088640000),
}


@tp.program
def linear(t: tp.Tracer) -> None:
    """f = v . U x / n, two samples, half the sum of squares, gradient descent with rate 1/10."""
    data = (((1, HALF), 1), ((-HALF, 1), -1))
    rate = Fraction(1, 10)
    columns, v = [t.gaussian("U1"), t.gaussian("U2")], t.gaussian("v")
    for step in range(4):
        hidden = [x[0] * columns[0] + x[1] * columns[1] for x, _ in data]
        outputs = [t.inner(v, h) for h in hidden]
        t.output(f"f{step}", outputs[0])
        t.output(f"g{step}", outputs[1])
        slopes = [f - y for f, (_, y) in zip(outputs, data, strict=True)]
        columns = [
            column - rate * slopes[0] * data[0][0][j] * v - rate * slopes[1] * data[1][0][j] * v
            for j, column in enumerate(columns)
        ]
        v = v - rate * slopes[0] * hidden[0] - rate * slopes[1] * hidden[1]


def test_peers_5_3_stays_rational() -> None:
    """The whole run in rational numbers, without an error."""
    found = tp.limit(linear)
    assert found["f0"].value == 0
    for step, value in TRAJECTORY.items():
        for name, sign in (("f", 1), ("g", -1)):
            answer = found[f"{name}{step}"]
            assert answer.formula == str(sign * value)
            assert (answer.value, answer.stderr) == (float(sign * value), 0.0)
            assert answer.status is Status.EXACT


def test_peers_5_3_trained() -> None:
    """The same as a training run, up to ten steps."""
    data = tp.Samples(((1.0, 0.5), (-0.5, 1.0)), ((1.0,), (-1.0,)))
    program = tp.train(
        tp.MLP(1, "linear"), "mup", data, steps=10, lr=Fraction(1, 5), loss="mse", batch=2, watch=()
    )
    found = tp.limit(program)
    for step, value in {**TRAJECTORY, 5: 0.818615550498, 10: 0.982720723934}.items():
        answer = found[f"f[{step},0]"]
        assert answer.method is Method.EXACT
        assert answer.value == pytest.approx(float(value), rel=1e-11)
        assert found[f"f[{step},1]"].value == pytest.approx(-float(value), rel=1e-11)
        assert found[f"f[{step},0]"].stderr < 1e-10


def first_pass(depth: int) -> tp.Program:
    """Forward and backward at the start for xi_0, powers of n taken out: ReLU, a first bias."""

    @tp.program
    def passes(t: tp.Tracer) -> None:
        weights = t.gaussians([f"u{j}" for j in range(4)])
        h = t.gaussian("b")
        for value, column in zip(XI0, weights, strict=True):
            h = h + Fraction(str(value)) * column
        kept, matrices = [h], []
        for layer in range(2, depth + 1):
            matrices.append(t.matrix(f"W{layer}"))
            kept.append(tp.n**-HALF * (matrices[-1] @ tp.relu(kept[-1])))
        for layer, vector in enumerate(kept, 1):
            t.output(f"mean x{layer}", tp.mean(tp.relu(vector)))
            t.output(f"square x{layer}", tp.mean(tp.relu(vector) ** 2))
        back = t.gaussian("readout")
        for layer in range(depth, 0, -1):
            back = back * tp.step(kept[layer - 1])
            t.output(f"square dh{layer}", tp.mean(back**2))
            if layer > 1:
                back = tp.n**-HALF * (matrices[layer - 2].T @ back)

    return passes.build()


@pytest.mark.parametrize("depth", [1, 3, 4])
def test_S0_32_case39(depth: int) -> None:
    """E x~_0^2 = sqrt(1.74 / (4 pi)) = .37211, E (x~_0^3)^2 = .2175, E (dh~_0^1)^2 = 2^(-L)."""
    found = tp.limit(first_pass(depth))
    for layer in range(1, depth + 1):
        mean = sympy.sympify(found[f"mean x{layer}"].formula)
        assert sympy.simplify(mean - sqrt(Rational(174, 100) / (2**layer * pi))) == 0
        assert found[f"square x{layer}"].formula == str(Fraction(174, 100) / 2**layer)
        assert found[f"square dh{layer}"].formula == str(Fraction(1, 2 ** (depth - layer + 1)))
    if depth > 1:
        agree(found["mean x2"], 0.37211, rounding=5e-6)
        agree(found["square x3"], 0.2175)
