"""Programs that are run three ways: limit, lazily revealed networks, dense networks."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

import tpcalc as tp

__all__ = ["PROGRAMS"]


def _data(rows: int, d: int = 3, outputs: int = 1, kind: str = "sign") -> tp.Samples:
    rng = np.random.default_rng(5)
    xs = rng.standard_normal((rows, d)) / np.sqrt(d)
    if kind == "onehot":
        ys = np.eye(outputs)[rng.integers(0, outputs, rows)]
    else:
        ys = rng.choice([-1.0, 1.0], (rows, outputs))
    return tp.Samples(tuple(map(tuple, xs.tolist())), tuple(map(tuple, ys.tolist())))


def mup(act: str, **options: object) -> tp.Program:
    settings: dict[str, object] = {"steps": 8, "lr": Fraction(1, 2), "watch": ()}
    settings.update(options)
    return tp.train(tp.MLP(3, act), "mup", _data(9), **settings)  # type: ignore[arg-type]


def batch_of_eight() -> tp.Program:
    net = tp.MLP(2, "tanh", bias="first")
    return tp.train(net, "mup", _data(8), steps=3, batch=8, lr=1.0, watch=("h",))


def two_outputs() -> tp.Program:
    data = _data(4, outputs=2, kind="onehot")
    return tp.train(
        tp.MLP(2, "gelu"), "mup", data, steps=3, batch=2, loss="xent", lr=1.0, watch=("x",)
    )


@tp.program
def rnn(t: tp.Tracer) -> None:
    w = t.matrix("W")
    tokens = t.gaussians(["a", "b", "c", "d"], cov=(np.eye(4) + 0.5).tolist())
    state = tp.tanh(tokens[0])
    for token in tokens[1:]:
        state = tp.tanh(1.5 * tp.n**-0.5 * (w @ state) + token)
    back = tp.n**-0.5 * (w.T @ state)
    t.output("qq", t.inner(state, state))
    t.output("back", t.inner(back, tokens[2]))
    t.output("state", state)


@tp.program
def ratios(t: tp.Tracer) -> None:
    t.dim("m", "1/2")
    t.dim("k", 2)
    v = t.gaussian("v")
    a, b = t.matrix("A", "m", "n"), t.matrix("B", "k", "m")
    h = tp.n**-0.5 * (a @ v)
    g = tp.n**-0.5 * (b @ tp.relu(h))
    down = tp.n**-0.5 * (b.T @ tp.tanh(g))
    back = tp.n**-0.5 * (a.T @ (down * tp.relu(h)))
    again = tp.n**-0.5 * (a @ tp.tanh(back + v))
    t.output("hh", t.inner(h, h))
    t.output("gg", t.inner(g, g))
    t.output("down", t.inner(down, tp.relu(h)))
    t.output("vb", t.inner(v, back))
    t.output("again", t.inner(again, h))


def ntk(**options: object) -> tp.Program:
    return tp.train(tp.MLP(2, "tanh", **options), "ntk", _data(3), steps=2, lr=1.0, watch=("h",))  # type: ignore[arg-type]


def ntk_relu() -> tp.Program:
    """Three steps with a loss that depends on f: gates jump where updates move them."""
    return tp.train(tp.MLP(2, "relu"), "ntk", _data(4), steps=3, batch=2, lr=0.5, watch=())


@tp.program
def singular(t: tp.Tracer) -> None:
    a, b, c = t.gaussians(["a", "b", "c"], mean=[0, 1, 0], cov=[[1, 1, 0], [1, 1, 0], [0, 0, 0]])
    w = t.matrix("W")
    y = tp.n**-0.5 * (w @ tp.relu(a + b))
    z = tp.n**-0.5 * (w @ tp.relu(2 * b - b + a))  # the same vector, written otherwise
    t.output("yz", t.inner(y, z))
    t.output("cc", t.inner(c, c))
    t.output("by", t.mean(b * y**2))


@tp.program
def iterated(t: tp.Tracer) -> None:
    v = g = t.gaussian("v")
    w = t.matrix("W")
    for _ in range(2):
        g = tp.n**-1 * (w @ (w.T @ g))
    t.output("vg", t.inner(v, g))
    t.output("gg", t.inner(g, g))


@tp.program
def outer(t: tp.Tracer) -> None:
    a, b = t.gaussian("a"), t.gaussian("b", mean=1)
    x = t.gaussian("x", mean=1)
    z = t.outer(lambda r, c: tp.tanh(r * c), [a], [b], x)
    t.output("za", t.inner(z, a))
    t.output("zz", t.inner(z, z))


@tp.program
def chance(t: tp.Tracer) -> None:
    u, v = t.gaussian("u"), t.gaussian("v")
    w = t.matrix("W")
    h = tp.n**-0.5 * (w @ tp.relu(v))
    f = tp.n**0.5 * t.inner(u, tp.tanh(h)) + t.random_scalar("b", std=0.5)
    g = tp.n**-0.5 * (w @ tp.tanh(f * v))
    t.output("ff", f * f)
    t.output("gg", t.inner(g, g))
    t.output("gh", t.inner(g, h))


@tp.program
def fluctuations(t: tp.Tracer) -> None:
    """Averages of start vectors with a variance of their own, on a dimension of another size."""
    t.dim("m", 2)
    (u,) = t.gaussians(["u"], cov=[[3]])
    z, v = t.gaussian("z", dim="m"), t.gaussian("v")
    y = tp.n**-0.5 * (t.matrix("A", "m", "n") @ v)
    f = tp.n**0.5 * t.inner(z, tp.tanh(y))
    g = tp.n**0.5 * t.inner(u, tp.tanh(v))
    t.output("ff", f * f)
    t.output("gg", g * g)
    t.output("fg", f * g)


@tp.program
def attention(t: tp.Tracer) -> None:
    """One query over three tokens, logits with 1/sqrt(d): they stay random."""
    tokens = t.gaussians(["x0", "x1", "x2"], cov=[[1, 0.5, 0.2], [0.5, 1, 0.3], [0.2, 0.3, 1]])
    query, key, value = (t.matrix(name) for name in ("Q", "K", "V"))
    q = tp.n**-0.5 * (query @ tokens[0])
    weights = [tp.exp(tp.n**0.5 * t.inner(q, tp.n**-0.5 * (key @ x))) for x in tokens]
    total = weights[0] + weights[1] + weights[2]
    y = tokens[0]
    for weight, x in zip(weights, tokens, strict=True):
        y = y + weight / total * (tp.n**-0.5 * (value @ x))
    t.output("a0", weights[0] / total)
    t.output("y", y)
    t.output("yy", t.inner(y, y))
    t.output("next", t.mean(tp.relu(tp.n**-0.5 * (t.matrix("W") @ y))))


def logistic() -> tp.Program:
    net = tp.MLP(2, "leaky_relu:0.2")
    return tp.train(net, "mup", _data(4), steps=3, batch=2, loss="logistic", lr=2.0, watch=("dh",))


def integrable(name: str, act: str, bias: str, **options: object) -> tp.Program:
    """Raw powers of n: most layers vanish at the start, and the first rates grow with n."""
    settings: dict[str, object] = {"steps": 2, "lr": 1.0, "watch": ("h",)}
    settings.update(options)
    return tp.train(tp.MLP(3, act, bias=bias), name, _data(2), **settings)  # type: ignore[arg-type]


@tp.program
def gates(t: tp.Tracer) -> None:
    """Gates whose argument is exactly 0 at the leading order on a part of the coordinates."""
    v, w, u = t.gaussian("v"), t.gaussian("w"), t.gaussian("u")
    matrix = t.matrix("W")
    x = tp.relu(tp.n**-0.5 * (matrix @ tp.relu(v)))
    moved = x + tp.n**-0.5 * (matrix @ tp.tanh(w)) * tp.n**-0.5
    gate = tp.step(moved)
    t.output("open", t.mean(gate))
    t.output("both", t.inner(gate, tp.relu(u)))
    t.output("first", t.mean(tp.n**0.5 * (tp.relu(moved) - tp.relu(x))))
    t.output("back", tp.n**-0.5 * (matrix.T @ (gate * u)))


@tp.program
def homogeneous(t: tp.Tracer) -> None:
    """Vectors that vanish or explode, through functions that only take a power of n out of them."""
    v, matrix = t.gaussian("v"), t.matrix("W")
    tiny = tp.relu(tp.n**-1 * (matrix @ tp.relu(v)))
    huge = tp.relu_pow(2)(matrix @ tp.tanh(v))
    t.output("tiny", tp.n**0.5 * tp.mean(tiny))
    t.output("huge", tp.n**-1 * tp.mean(huge))
    t.output("same", tp.n**-0.5 * t.inner(tiny, huge))
    t.output("sign", t.inner(tp.sign(matrix @ v), tp.n**0.5 * tp.tanh(tp.n**-1 * (matrix @ v))))


PROGRAMS: dict[str, Callable[[], tp.Program]] = {
    "mup-tanh-8-steps": lambda: mup("tanh"),
    "mup-relu-8-steps": lambda: mup("relu"),
    "batch-of-8": batch_of_eight,
    "two-outputs": two_outputs,
    "rnn": rnn.build,
    "two-ratios": ratios.build,
    "ntk": ntk,
    "ntk-all-biases": lambda: ntk(bias="all"),
    "ntk-relu": ntk_relu,
    "singular-covariance": singular.build,
    "iterated": iterated.build,
    "outer": outer.build,
    "random-scalar": chance.build,
    "fluctuations": fluctuations.build,
    "attention": attention.build,
    "logistic-leaky": logistic,
    "ip-llr": lambda: integrable("ip-llr", "relu", "first"),
    "ip-llr-squares": lambda: integrable("ip-llr:2", "relu^2", "first", steps=1, lr=0.3),
    "ip-bias": lambda: integrable("ip-bias", "relu", "all"),
    "ip-non-centered": lambda: integrable("ip-non-centered", "relu", "all"),
    "gates-at-zero": gates.build,
    "homogeneous": homogeneous.build,
    "repeated-input": lambda: tp.train(
        tp.MLP(2, "relu"), "mup", _data(1), steps=4, lr=0.5, watch=("h",)
    ),
}
