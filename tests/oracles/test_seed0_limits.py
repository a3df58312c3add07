"""Acceptance cases of spec 0 (Hajjar, Chizat, Giraud) on integrable parameterizations, as limits.

The programs hold the powers of n of the paper as they are; nothing is rescaled by hand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy_run
import pytest
from agree import agree
from oracles.seed0_data import K01, XI0, XI1, XI2, XIO, one_step

import tpcalc as tp
from tpcalc.program.nodes import Data, Kind
from tpcalc.results import Estimate, Method, Status

SAMPLES, REPLICATES = 2**14, 16
HALF = Fraction(1, 2)


def limit(program: tp.Program, *names: str) -> tp.Limit:
    return tp.limit(
        program, samples=SAMPLES, replicates=REPLICATES, seed=3, outputs=list(names) or None
    )


def wide(program: tp.Program, width: int, seeds: int) -> dict[str, Estimate]:
    """The means of the outputs over independent networks of one width."""
    table = tp.simulate(program, widths=[width], seeds=seeds, seed=100)
    found = {}
    for row in table.rows:
        values = np.array(row.values)
        stderr = float(values.std(ddof=1) / math.sqrt(seeds))
        mean = float(values.mean())
        found[row.name] = Estimate(mean, stderr, Method.PARTICLES, Status.CONVERGED)
    return found


def correlations(program: tp.Program, depth: int) -> tp.Program:
    """Adds lambda_l = E x~_0^l x_1^l; the size of x_0^l is n^(-(p^(l-1) + ... + 1) / 2 + 1/2)."""

    def more(t: tp.Tracer) -> None:
        for layer in range(1, depth + 1):
            start = tp.n ** (HALF * (layer - 1)) * t[f"x[{layer},0,0]"]
            t.output(f"lambda[{layer}]", t.inner(start, t[f"x[{layer},1,1]"]))

    return tp.extend(program, more)


@pytest.mark.parametrize(
    ("depth", "lambdas", "output"),
    [
        (2, (1.65783, 2.46105), 28.7551),
        (3, (1.27108, 1.33425, 1.40056), 17.3412),
        (4, (1.00856, 0.74860, 0.55565, 0.41243), 5.51342),
    ],
)
def test_S0_20_case26(depth: int, lambdas: Sequence[float], output: float) -> None:
    """IP-LLR, ReLU, eta = 10: correlations with the first pass, and f_1."""
    program = correlations(one_step(depth, "relu", "ip-llr", 10.0, watch="x"), depth)
    found = limit(program, "lambda*", "f[1,1]")
    for layer, value in enumerate(lambdas, 1):
        agree(found[f"lambda[{layer}]"], value, rounding=5e-6)
    agree(found["f[1,1]"], output, rounding=5e-5)
    assert found["f[1,1]"].stderr < 2e-3 * output


def test_S0_20_case27() -> None:
    """The sizes of h_1^l, L = 4."""
    program = one_step(4, "relu", "ip-llr", 10.0, watch="h")
    found = limit(program, "h[*,1,1]")
    for layer, value in enumerate((2.7849, 3.5658, 3.7430, 3.9290), 1):
        square = found[f"h[{layer},1,1]"].second_moment
        agree(square, value**2, rounding=2 * value * 5e-5)
        assert square.stderr < 5e-3 * value**2


RATES = {2: (2.0, 0.5, 0.5), 3: (4.0, 0.5, 0.5)}


def three_steps(depth: int) -> tp.Program:
    """IP-LLR, ReLU, trained on three inputs in turn, chi = -1; input 1 is the query."""
    return tp.train(
        tp.MLP(depth, "relu", bias="first"),
        "ip-llr",
        tp.Samples((XI0, XI1, XI2), ((0.0,),) * 3),
        steps=3,
        lr=lambda layer, step: RATES[depth][step],
        loss="linear",
        queries=(XIO,),
        watch=(),
    )


@pytest.mark.parametrize(("depth", "first"), [(2, 0.74677), (3, 0.87351)])
def test_S0_20_case28_29_first_step(depth: int, first: float) -> None:
    found = limit(three_steps(depth), "f[1,1]")["f[1,1]"]
    agree(found, first, rounding=5e-6)
    assert found.stderr < 2e-3


def second_step(rng: np.random.Generator, count: int, decided: bool) -> float:
    """f_2 at L = 2 from the recursions of section 5, for coordinates of the limit drawn once.

    h_1^2 is 0 where the gate of layer 2 was shut at t = 0. ``decided``: there the sign of the next
    term, n^(-1/2) What x_1^1, decides; else sigma'(0) = 0 shuts it again.
    """
    first, second, _ = RATES[2]
    at0, at1, asked = (np.array(xi) for xi in (XI0, XI1, XIO))
    u, v = rng.standard_normal((count, 4)), rng.standard_normal(count)
    pre = {name: u @ xi + v for name, xi in (("0", at0), ("1", at1), ("o", asked))}
    x0 = np.maximum(pre["0"], 0)
    dh0 = rng.standard_normal(count) * math.sqrt(0.5) * (pre["0"] > 0)  # E (dh~_0^2)^2 = 1/2
    x1 = np.maximum(h1 := pre["1"] + first * (at0 @ at1 + 1) * dh0, 0)
    scale, both = np.mean(x0 * x0), np.mean(x0 * x1)  # covariances of What x_0^1 and What x_1^1
    own = rng.standard_normal(count) * math.sqrt(scale)
    left = math.sqrt(np.mean(x1 * x1) - both**2 / scale)
    later = both / scale * own + left * rng.standard_normal(count)
    out, open_ = rng.standard_normal(count), own > 0
    gate = np.where(open_, out > 0, (later > 0) if decided else False)
    back0 = out * open_
    back1 = (out + first * np.maximum(own, 0)) * gate
    dh1 = first * np.mean(back0 * back1) * x0 * (h1 > 0)
    moved = first * (at0 @ asked + 1) * dh0 + second * (at1 @ asked + 1) * dh1
    x2 = np.maximum(pre["o"] + moved, 0)
    top = np.maximum(first * np.mean(x0 * x2) * back0 + second * np.mean(x1 * x2) * back1, 0)
    weights = out + first * np.maximum(own, 0) + second * np.maximum(first * both * back0, 0)
    return float(np.mean(weights * top))


def test_S0_20_case28_by_its_recursions() -> None:
    """The recursions agree with the program where small terms decide gates, else with the spec."""
    found = limit(three_steps(2), "f[2,1]")["f[2,1]"]
    estimates = []
    for decided in (False, True):
        rng = np.random.default_rng(7)
        draws = [second_step(rng, 2**17, decided) for _ in range(40)]
        stderr = float(np.std(draws, ddof=1) / math.sqrt(len(draws)))
        mean = float(np.mean(draws))
        estimates.append(Estimate(mean, stderr, Method.PARTICLES, Status.CONVERGED))
    agree(estimates[0], Estimate(3.94, 0.01, Method.PARTICLES, Status.CONVERGED))
    agree(estimates[1], found)
    assert found.value - 5 * found.stderr > 3.94 + 5 * 0.01


@pytest.mark.slow
@pytest.mark.parametrize("depth", [2, 3])
def test_S0_20_case28_29_later_steps(depth: int) -> None:
    """Networks agree with the limit: coordinates of h_1 that are 0 in it are not at finite width.

    The spec prints 3.94 and 18.9 for L = 2, 9.64 and 297 for L = 3: its recursions shut the gates
    at these coordinates.
    """
    program = three_steps(depth)
    found, networks = limit(program, "f[2,1]", "f[3,1]"), wide(program, 2**18, 24)
    for name in found:
        agree(found[name], networks[name])
        assert found[name].stderr < 5e-3 * found[name].value


SMALL0, SMALL1 = (0.3, 0.1, 0.0, 0.0), (0.2, -0.1, 0.0, 0.0)


def squares(depth: int, eta: float, steps: int = 1) -> tp.Program:
    """ReLU^2 with IP-LLR; with two steps the second input is trained on as well."""
    return tp.train(
        tp.MLP(depth, "relu^2", bias="first"),
        "ip-llr:2",
        tp.Samples((SMALL0, SMALL1), ((0.0,), (0.0,))),
        steps=steps,
        lr=eta,
        loss="linear",
        queries=(SMALL1,),
        watch=("h", "x", "dh"),
    )


def test_S0_20_case30() -> None:
    """IP-LLR, ReLU^2, L = 2, eta = 0.1."""

    def more(t: tp.Tracer) -> None:
        start = tp.n * t["x[2,0,0]"]  # relu(n^(-1/2) h~)^2
        t.output("lambda[1]", t.inner(t["x[1,0,0]"], t["x[1,1,1]"]))
        t.output("lambda[2]", t.inner(start, t["x[2,1,1]"]))

    found = limit(tp.extend(squares(2, 0.1), more), "lambda*", "f[1,1]", "h[2,1,1]")
    agree(found["lambda[1]"], 1.96971, rounding=5e-6)
    agree(found["lambda[2]"], 0.383425, rounding=5e-7)
    agree(found["f[1,1]"], 0.150713, rounding=5e-7)
    agree(found["h[2,1,1]"].second_moment, 0.37528**2, rounding=1e-5)
    assert found["f[1,1]"].stderr < 5e-3


def test_S0_20_case31() -> None:
    """The same with L = 3, eta = 0.01: numbers of order 1e-6, out of reach of finite networks."""

    def more(t: tp.Tracer) -> None:
        for layer, power in ((1, 0), (2, 1), (3, 3)):
            start = tp.n**power * t[f"x[{layer},0,0]"]
            t.output(f"lambda[{layer}]", t.inner(start, t[f"x[{layer},1,1]"]))

    found = limit(tp.extend(squares(3, 0.01), more), "lambda*", "f[1,1]")
    agree(found["lambda[1]"], 1.70869, rounding=5e-6)
    agree(found["lambda[2]"], 0.0285151, rounding=5e-8)
    agree(found["lambda[3]"], 5.956e-6, rounding=5e-10)
    agree(found["f[1,1]"], 7.007e-7, rounding=5e-11)
    assert found["f[1,1]"].stderr < 0.1 * 7.007e-7


def test_S0_30_case36() -> None:
    """IP-non-centered, ReLU, L = 5, u = 1: hidden layers are constants, so are their updates."""
    program = tp.train(
        tp.MLP(5, "relu", bias="all"),
        "ip-non-centered:1",
        tp.Samples((XI0,), ((2.0,),)),
        steps=1,
        lr=0.5,
        loss="mse",
        queries=(XI1,),
        watch=("h", "dW_x", "x"),
    )
    found = limit(program)
    constant = math.sqrt(1.74 / (2 * math.pi))
    agree(found["f[0,0]"], constant)
    for layer, value in ((2, 1.51007), (3, 2.09564), (4, 2.90828)):
        agree(found[f"h[{layer},0,0]"].mean, constant)
        h = found[f"h[{layer},1,1]"]
        agree(h.mean, value, rounding=5e-6)
        assert math.sqrt(max(h.second_moment.value - h.mean.value**2, 0.0)) < 1e-2
    for layer in (3, 4):  # every entry of w^l(1) - w^l(0) is .38778
        agree(found[f"dW_x[{layer},1,1]"].mean, 0.38778 * found_mean(found, layer - 1))
    last = found["h[5,1,1]"]
    agree(last.mean, 4.03604, rounding=5e-6)
    agree(last.second_moment, 4.03604**2 + 1.12776**2, rounding=1e-4)
    agree(found["f[1,1]"], 6.72876, rounding=5e-6)


def found_mean(found: tp.Limit, layer: int) -> float:
    mean: Estimate = found[f"x[{layer},1,1]"].mean
    return mean.value


def test_S0_31_case37() -> None:
    """IP-bias, ReLU, L = 3, given that the bias of the output starts at .37."""
    program = tp.train(
        tp.MLP(3, "relu", bias="all"),
        "ip-bias",
        tp.Samples((XI0,), ((1.0,),)),
        steps=1,
        lr=1.5,
        loss="mse",
        queries=(XI1,),
        watch="x",
    )
    nodes = list(program.nodes)
    (place,) = (ref for ref, node in enumerate(nodes) if numpy_run.is_input(node, Kind.SCALAR))
    nodes[place] = Data(nodes[place].name, (0.37,))
    given = replace(program, nodes=tuple(nodes))

    def more(t: tp.Tracer) -> None:
        for layer in (1, 2, 3):
            t.output(f"kappa[{layer}]", t.inner(t[f"x[{layer},0,0]"], t[f"x[{layer},1,1]"]))

    found = limit(tp.extend(given, more), "kappa*", "f*")
    agree(found["f[0,0]"], 0.37)
    for layer, value in enumerate((0.600579, 0.539876, 0.577424), 1):
        agree(found[f"kappa[{layer}]"], value, rounding=5e-7)
    agree(found["f[1,1]"], 2.36390, rounding=5e-6)
    assert found["f[1,1]"].stderr < 5e-3


def test_S0_32_case39() -> None:
    """Moments of the first pass of ReLU networks, L = 3, after their powers of n."""
    found = limit(one_step(3, "relu", "ip-llr", 1.0, watch=("x", "dh")))
    second, third, back = found["x[2,0,0]"], found["x[3,0,0]"], found["dh[1,0,0]"]
    powers = [str(one.n_power) for one in (second, third, back)]
    assert powers == ["-1/2", "-1", "-2"]
    agree(second.mean, math.sqrt(1.74 / (4 * math.pi)))
    agree(third.second_moment, 1.74 / 8)
    agree(back.second_moment, 1 / 8)
    assert back.second_moment.stderr < 1e-3


def backward(program: tp.Program, depth: int, powers: Sequence[Fraction]) -> tp.Limit:
    """nu_l = E dh~_0^l dh~_1^l, both without their powers of n, for l = 2..L."""

    def more(t: tp.Tracer) -> None:
        for layer, power in zip(range(2, depth + 1), powers, strict=True):
            first, later = t[f"dh[{layer},0,0]"], t[f"dh[{layer},1,0]"]
            t.output(f"nu[{layer}]", tp.n ** (1 + power) * t.inner(first, later))

    return limit(tp.extend(program, more), "nu*")


@pytest.mark.parametrize(
    ("depth", "eta", "values"),
    [(3, 10.0, (1.36429, 1.29970)), (4, 4.0, (0.0482089, 0.162374, 0.546900))],
)
def test_S0_20_case44(depth: int, eta: float, values: Sequence[float]) -> None:
    """Backward passes of steps 0 and 1 in IP-LLR, ReLU, the second one at xi_1."""
    program = tp.train(
        tp.MLP(depth, "relu", bias="first"),
        "ip-llr",
        tp.Samples((XI0, XI1), ((0.0,), (0.0,))),
        steps=2,
        lr=eta,
        loss="linear",
        watch="dh",
    )
    powers = [1 + HALF * (depth - layer) for layer in range(2, depth + 1)]
    found = backward(program, depth, powers)
    for layer, value in enumerate(values, 2):
        agree(found[f"nu[{layer}]"], value, rounding=5e-6)
        assert found[f"nu[{layer}]"].stderr < 1e-2 * value


def test_S0_20_case44_squares() -> None:
    """ReLU^2, L = 2: dh_0^2 = n^(-1) u 2 relu(n^(-1/2) h~) is of size n^(-3/2)."""
    found = backward(squares(2, 0.1, steps=2), 2, [Fraction(3, 2)])
    agree(found["nu[2]"], 1.53030, rounding=5e-6)


@pytest.mark.parametrize(("depth", "value"), [(2, K01), (3, 0.0)])
def test_S0_33_case20(depth: int, value: float) -> None:
    """Linear networks: f_1 = -eta chi_0 k for L = 2 and nothing for L = 3."""
    agree(limit(one_step(depth, "linear", "ip-llr", 1.0), "f[1,1]")["f[1,1]"], value)


def test_S0_33_case18() -> None:
    """IP-LLR with tanh, L = 3: the first step leaves f where it was, the second one does not."""
    program = tp.train(
        tp.MLP(3, "tanh", bias="first"),
        "ip-llr",
        tp.Samples((XI0,), ((0.0,),)),
        steps=2,
        lr=2.0,
        loss="linear",
        watch=(),
    )
    found = limit(program)
    assert (found["f[1,0]"].value, found["f[1,0]"].method) == (0.0, Method.EXACT)
    agree(found["f[2,0]"], wide(program, 2**18, 6)["f[2,0]"])
    assert found["f[2,0]"].value > 20 * found["f[2,0]"].stderr


@pytest.mark.parametrize(("act", "p", "eta"), [("relu", 1, 10.0), ("relu^2", 2, 0.1)])
def test_S0_22_case40(act: str, p: int, eta: float) -> None:
    """f_1 is lambda_1^(p^(L-1)) up to a factor that does not depend on the input, L = 2."""
    inputs = (SMALL1, (0.1, 0.2, -0.1, 0.0)) if p == 2 else (XI1, XI2)
    program = tp.train(
        tp.MLP(2, act, bias="first"),
        f"ip-llr:{p}",
        tp.Samples((SMALL0 if p == 2 else XI0,), ((0.0,),)),
        steps=1,
        lr=eta,
        loss="linear",
        queries=inputs,
        watch="x",
    )

    def more(t: tp.Tracer) -> None:
        lambdas = [t.inner(t["x[1,0,0]"], t[f"x[1,1,{i}]"]) for i in (1, 2)]
        t.output("ratio", (t["f[1,1]"] / t["f[1,2]"]) * (lambdas[1] / lambdas[0]) ** p)

    agree(limit(tp.extend(program, more), "ratio")["ratio"], 1.0)


def test_S0_21_case41() -> None:
    """The sign of chi_0 is that of -f_1; the correlations do not feel it."""
    net = tp.MLP(2, "relu", bias="first")
    both = []
    for target in (1.0, -1.0):  # chi_0 = f_0 - y, and f_0 is 0
        data = tp.Samples((XI0,), ((target,),))
        run = tp.train(net, "ip-llr", data, steps=1, lr=10.0, queries=(XI1,), watch="x")
        both.append(limit(correlations(run, 2), "lambda*", "f[1,1]"))
    agree(both[0]["lambda[2]"], both[1]["lambda[2]"])
    agree(-both[1]["f[1,1]"].value, both[0]["f[1,1]"])


def hybrid(eta: float, initial: bool) -> tp.Program:
    """HP (HPZ without ``initial``), L = 3: a step of muP, then W^l(0) / n + its update for W^l.

    One step on xi_0 with chi = -1; the output is f_1 at xi_1.
    """

    @tp.program
    def net(t: tp.Tracer) -> None:
        rows = [t.gaussian(f"W1_{k}") for k in range(4)]
        bias, out = t.gaussian("b1"), t.gaussian("W4")
        weights = {2: t.matrix("W2"), 3: t.matrix("W3")}
        h = {1: sum((x * row for x, row in zip(XI0, rows, strict=True)), start=bias)}
        query = sum((x * row for x, row in zip(XI1, rows, strict=True)), start=bias)
        for layer, w in weights.items():
            h[layer] = tp.n**-0.5 * (w @ tp.relu(h[layer - 1]))
        back = {3: out * tp.step(h[3])}
        for layer in (2, 1):
            back[layer] = tp.n**-0.5 * (weights[layer + 1].T @ back[layer + 1]) * tp.step(h[layer])
        x = tp.relu(query + eta * K01 * back[1])
        for layer, w in weights.items():
            pre = eta * t.inner(tp.relu(h[layer - 1]), x) * back[layer]
            x = tp.relu(pre + tp.n**-1 * (w @ x) if initial else pre)
        t.output("f", t.inner(out, x) + eta * t.inner(tp.relu(h[3]), x))

    return net.build()


def test_S0_24_case22() -> None:
    """HP is IP-LLR with the same initial weights, at every width, up to rounding."""
    rng, width = np.random.default_rng(2), 64
    names = {f"W1[{k}]": f"W1_{k}[0]" for k in range(4)} | {"b1[0]": "b1[0]", "W4[0]": "W4[0]"}
    inputs = {name: rng.standard_normal(width) for name in names}
    matrices = {name: rng.standard_normal((width, width)) for name in ("W2", "W3")}
    left = numpy_run.run(one_step(3, "relu", "ip-llr", 10.0), width, inputs | matrices)
    renamed = {names[name]: value for name, value in inputs.items()}
    right = numpy_run.run(hybrid(10.0, True), width, renamed | matrices)
    assert right["f"] == pytest.approx(left["f[1,1]"], rel=1e-11)
    dropped = numpy_run.run(hybrid(10.0, False), width, renamed | matrices)
    assert abs(dropped["f"] - left["f[1,1]"]) > 1e-3


@pytest.mark.parametrize("initial", [True, False])
def test_S0_25_case23(initial: bool) -> None:
    """HP and HPZ have the limit of IP-LLR (case 26)."""
    agree(limit(hybrid(10.0, initial))["f"], 17.3412, rounding=5e-5)


@pytest.mark.parametrize(
    ("depth", "constant", "collapsed"), [(5, {2, 3, 4}, {3, 4}), (3, {2}, set())]
)
def test_S0_30_case24(depth: int, constant: set[int], collapsed: set[int]) -> None:
    """IP-non-centered: which hidden layers, and which updates of weights, become constants."""
    program = tp.train(
        tp.MLP(depth, "relu", bias="all"),
        "ip-non-centered:1",
        tp.Samples((XI0, XI1), ((2.0,), (2.0,))),
        steps=1,
        lr=0.5,
        loss="mse",
        watch=("h", "x", "dh"),
    )
    found = limit(program)

    def fixed(name: str) -> bool:
        z = found[name]
        spread = z.second_moment.value - z.mean.value**2  # holds that of the replicates, 1e-4
        return spread <= 1e-4 * z.second_moment.value

    layers = range(1, depth + 1)
    assert {layer for layer in layers if fixed(f"h[{layer},1,0]")} == constant
    moved = {
        layer
        for layer in layers[1:]
        if all(fixed(f"x[{layer - 1},{t},0]") and fixed(f"dh[{layer},{t},0]") for t in (0, 1))
    }
    assert moved == collapsed
