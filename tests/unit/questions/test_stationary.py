"""Bounds for all steps: never below an order, and the same at steps that were not looked at."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from oracles.yang_hu import drawn

from tpcalc.activations.entries import lookup as activation
from tpcalc.exponents.coset import EVEN
from tpcalc.functions import Fn, Var
from tpcalc.functions.expr import const, power
from tpcalc.functions.fn import derivative
from tpcalc.functions.tape import evaluate
from tpcalc.networks.architectures.mlp import MLP
from tpcalc.questions.orders import orders
from tpcalc.questions.verdict.graded import Bounds, Unbounded
from tpcalc.questions.verdict.probe import Probe, probe
from tpcalc.questions.verdict.stationary import Later, later
from tpcalc.training.generic import far_query, generic
from tpcalc.training.training import Training

WATCH = ("h", "x", "dh", "dx")
ZERO, HALF = Fraction(0), Fraction(1, 2)
SAME = (0, 0)


def run(depth: int, act: str, parameterization: str, steps: int, bias: str = "none") -> Probe:
    data = generic("mse", steps + 1)
    query = far_query(generic("mse", 5))
    net = MLP(depth, act, bias=bias)
    return probe(Training(net, parameterization, data, steps=steps), query=query, watch=WATCH)


def settled(depth: int, act: str, parameterization: str) -> Later:
    for steps in (3, 4, 5, 6):
        found = later(run(depth, act, parameterization, steps), {}, SAME)
        if found is not None:
            return found
    raise AssertionError("the bounds do not settle")


@pytest.mark.parametrize(
    ("depth", "act", "parameterization", "output", "features"),
    [
        (3, "tanh", "mup", "0", "0"),
        (3, "relu", "ntk", "0", "-1/2"),
        (3, "tanh", "ntk", "0", "-1/2"),
        (3, "relu^2", "ntk", "0", "-1/2"),
        (3, "elu", "naive-ip", "-1", "-1"),
        (3, "tanh", "naive-ip", "-1", "-1"),
        (6, "relu", "naive-ip", "-4", "-4"),
        (4, "tanh", "ip-llr", "0", "0"),
        (5, "tanh", "ip-llr", "-1", "-1"),
        (5, "gelu", "ip-llr", "-1", "-1"),
        (7, "identity", "ip-llr", "-3/2", "-3/2"),
    ],
)
def test_known_tables(
    depth: int, act: str, parameterization: str, output: str, features: str
) -> None:
    found = settled(depth, act, parameterization)
    assert (found.largest, found.output, found.features) == (
        ZERO,
        Fraction(output),
        Fraction(features),
    )


def test_one_step_and_changing_rates_say_nothing() -> None:
    assert later(run(2, "tanh", "mup", 1), {}, SAME) is None
    assert later(run(2, "tanh", "mup", 3), {}, (0, 1)) is None


def test_what_explodes_is_not_bounded() -> None:
    for steps in (3, 4, 5, 6):
        assert later(run(3, "tanh", "standard", steps), {}, SAME) is None


@pytest.mark.slow
def test_bounds_hold_at_later_steps() -> None:
    """What settles after four steps bounds the orders of steps five and six."""
    bound = later(run(5, "tanh", "ip-llr", 4), {}, SAME)
    assert bound is not None and bound.output is not None
    longer = run(5, "tanh", "ip-llr", 6)
    found = orders(longer.program, verify=False, budget=1)
    for step in range(1, 7):
        for name in longer.changes(step):
            power = found[name].n
            assert power is not None and power.constant is not None
            assert power.constant <= bound.output


@pytest.mark.parametrize("number", range(12))
def test_bounds_are_never_below_orders(number: int) -> None:
    """Random tables: the engine's orders of f, its changes and the last features fit below."""
    rng = np.random.default_rng(number)
    act = ("tanh", "relu", "gelu", "sigmoid")[number % 4]
    depth = 2 + number % 3
    abc = drawn(rng, depth)
    while abc.verdict == "unstable":
        abc = drawn(rng, depth)
    bound = settled(depth, act, abc.word)
    watched = run(depth, act, abc.word, 2)
    found = orders(watched.program, verify=False, budget=1)
    largest: dict[str, Fraction] = {}
    for name, order in found.items():
        kind = "output" if name in (*watched.changes(1), *watched.changes(2)) else None
        if name in (*watched.moved(str(depth), 1), *watched.moved(str(depth), 2)):
            kind = "features"
        elif name[:2] in ("h[", "f[") and "-" not in name:
            kind = "largest"
        if kind is not None and order.n is not None and order.n.constant is not None:
            largest[kind] = max(largest.get(kind, order.n.constant), order.n.constant)
    assert largest["largest"] <= (bound.largest or ZERO)
    assert bound.output is not None and largest["output"] <= bound.output
    assert bound.features is not None and largest["features"] <= bound.features


def test_functions_of_bounds() -> None:
    bounds = Bounds()
    u, v = bounds.lattice.single(0), bounds.lattice.single(1)
    tanh, relu = activation("tanh")(Var(0)), activation("relu")(Var(0))
    small = ((-HALF, u), (-Fraction(1), v))
    value, change = bounds.function(tanh, {Var(0): (small, ())})
    assert change == () and value[:2] == small  # linear where the argument vanishes
    value, _ = bounds.function(relu, {Var(0): (small, ())})
    assert bounds.size(bounds.average(value)) == -HALF  # relu is not odd
    value, _ = bounds.function(tanh, {Var(0): (small, ())})
    assert bounds.size(bounds.average(value)) == -Fraction(1)
    one = ((ZERO, u),)
    _, change = bounds.function(tanh, {Var(0): (one, ((-HALF, v),))})
    assert bounds.size(change) == -HALF
    square, _ = bounds.function(Var(0) * Var(0), {Var(0): (one, ())})
    assert square == ((ZERO, EVEN),)


def sizes(fn: Fn, value: Fraction, change: Fraction, n: float) -> np.ndarray:
    """At x = n^value u: of f(x), its average beside u, what n^change v moves, that beside u, v."""
    u, v = (np.multiply.outer(signs, SAMPLES[k]).ravel() for k, signs in enumerate(SIGNS))
    start = evaluate(fn, [u * n ** float(value)])
    moved = evaluate(fn, [u * n ** float(value) + v * n ** float(change)]) - start
    averages = [np.mean(y) for y in (start**2, start * u, moved**2, moved * u, moved * v)]
    return np.abs(averages) ** np.array([0.5, 1, 0.5, 1, 1])


SAMPLES = np.random.default_rng(0).standard_normal((2, 4000))
SIGNS = ((1, 1, -1, -1), (1, -1, 1, -1))


@pytest.mark.parametrize(("value", "change"), [("0", "-1/2"), ("-1/2", "-1"), ("-1", "-1/2")])
@pytest.mark.parametrize(
    "act", ["tanh", "gelu", "erf", "relu", "relu^2", "sign", "elu:2", "selu", "even_tanh", "log"]
)
def test_bounds_of_functions_are_never_below_numbers(act: str, value: str, change: str) -> None:
    """Of an activation and of its slope, which may jump: sizes at two widths grow no faster."""
    bounds, at, by = Bounds(), Fraction(value), Fraction(change)
    u, v = (((ZERO, bounds.lattice.single(k)),) for k in (0, 1))
    f = activation(act)(activation("abs")(Var(0)) if act == "log" else Var(0))
    for expr in (f, derivative(f, Var(0))) if act not in ("sign", "log") else (f,):
        own = bounds.function(expr, {Var(0): (bounds.shift(u, at), bounds.shift(v, by))})
        parts = [own[0], bounds.product(own[0], u), own[1]]
        parts += [bounds.product(own[1], beside) for beside in (u, v)]
        found = [sizes(Fn(expr, 1), at, by, n) for n in (1e4, 1e6)]
        for k, part in enumerate(parts):
            low, high = (size[k] for size in found)
            if high > 1e-13:  # of what is 0 rounding is left
                most = bounds.size(part if k in (0, 2) else bounds.average(part))
                assert most is not None and np.log10(high / low) / 2 < float(most) + 0.1


def test_what_explodes_or_is_not_bounded_is_refused() -> None:
    bounds = Bounds()
    large = (((HALF, bounds.lattice.single(0)),), ())
    with pytest.raises(Unbounded):
        bounds.function(activation("tanh")(Var(0)), {Var(0): large})
    with pytest.raises(Unbounded):
        bounds.function(power(Var(0), Fraction(1, 2)), {Var(0): large})
    assert bounds.function(const(2), {}) == (((ZERO, EVEN),), ())
