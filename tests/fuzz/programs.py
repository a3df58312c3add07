"""Families of random programs: networks, and what a calculus of leading terms would assume.

A family draws from a ``Draw`` and names outputs; the same seed gives the same program. An output
called ``heavy ...`` has no mean square by construction: no number may be given for it.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import tpcalc as tp

__all__ = ["ASSUMED", "NETWORKS", "build"]

H = Fraction(1, 2)
SMOOTH = (tp.tanh, tp.erf, tp.sigmoid, tp.gelu, tp.sin, tp.cos, tp.softplus, tp.gaussian)
KINKED = (tp.relu, tp.abs, tp.leaky_relu(Fraction(1, 5)), tp.elu)
ODD = (tp.tanh, tp.erf, tp.sin)
Family = Callable[[tp.Tracer, Random], None]
NETWORKS: dict[str, Family] = {}
ASSUMED: dict[str, Family] = {}


def build(family: str, seed: int) -> tp.Program:
    """The program of a family at a seed."""
    rule = (NETWORKS | ASSUMED)[family]
    return tp.program(lambda t: rule(t, Random(f"{family} {seed}"))).build()


def _family(table: dict[str, Family]) -> Callable[[Family], Family]:
    def add(rule: Family) -> Family:
        table[rule.__name__] = rule
        return rule

    return add


# ------------------------------------------------------------------------------------- pieces


def _act(r: Random) -> Any:
    return r.choice(SMOOTH + KINKED)


def _weight(r: Random) -> Fraction:
    return Fraction(r.choice((1, 1, 2, 3, -1)), r.choice((1, 2)))


def _vectors(t: tp.Tracer, names: str) -> list[Any]:
    return [t.gaussian(name) for name in names]


def _apply(matrix: Any, x: Any) -> Any:
    return tp.n**-H * (matrix @ x)


def _fluctuation(t: tp.Tracer, r: Random, u: Any, v: Any) -> Any:
    """A scalar that is random in the limit, of order one."""
    kind = r.randrange(3)
    if kind == 0:
        return tp.n**H * t.inner(u, r.choice((tp.tanh, tp.sin, tp.relu))(v))
    if kind == 1:
        return tp.n**H * (t.inner(u, u) - 1)
    return tp.n**H * (t.inner(u, u) - t.inner(v, v))


def _watch(t: tp.Tracer, r: Random, **values: Any) -> None:
    """Vectors themselves, their averages with each other, scalars as they are."""
    for name, value in values.items():
        t.output(name, value)
    vectors = [(k, v) for k, v in values.items() if hasattr(v, "dim")]
    for index, (name, value) in enumerate(vectors):
        if r.random() < 0.5:
            t.output(f"mean {name}", tp.mean(value))
        for other, second in vectors[: index + 1]:
            if r.random() < 0.5:
                t.output(f"{name}.{other}", t.inner(value, second))


def _probe(t: tp.Tracer, r: Random, y: Any, v: Any) -> None:
    """A vector that vanishes or nearly does, read by functions with kinks and jumps at 0."""
    small = tp.n ** -r.choice((Fraction(1, 4), H, H, Fraction(1))) * v
    gate = r.choice((tp.step, tp.sign, tp.relu, tp.abs))
    t.output("gate", t.inner(gate(y + small), v))
    moved = gate(y + small) - gate(y)
    t.output("moved", moved)
    t.output("moved.v", t.inner(moved, v))
    if r.random() < 0.5:
        t.output("raised", tp.n ** r.choice((Fraction(1, 4), H)) * t.inner(moved, v))


# ----------------------------------------------------------------------------------- networks


def _forward(t: tp.Tracer, r: Random, law: str = "gaussian") -> tuple[list[Any], list[Any]]:
    start = t.gaussian("h", mean=r.choice((0, 0, H)), var=r.choice((1, 1, 2)))
    matrices, layers = [], [start]
    for index in range(r.randint(1, 3)):
        if not matrices or r.random() < 0.7:
            matrices.append(t.matrix(f"W{index}", law=law))
        matrix = r.choice(matrices)
        matrix = matrix.T if r.random() < 0.4 else matrix
        new = _apply(matrix, _act(r)(layers[-1])) * _weight(r)
        if r.random() < 0.4:
            new = new + r.choice(layers)
        layers.append(new)
    return layers, matrices


@_family(NETWORKS)
def forward(t: tp.Tracer, r: Random) -> None:
    layers, matrices = _forward(t, r)
    back = _apply(r.choice(matrices).T, _act(r)(layers[-1]) * r.choice(layers))
    _watch(t, r, h=layers[-1], old=r.choice(layers), back=back, y=_act(r)(back + layers[-1]))


@_family(NETWORKS)
def haar(t: tp.Tracer, r: Random) -> None:
    layers, matrices = _forward(t, r, "orthogonal")
    back = _apply(r.choice(matrices).T, layers[-1])
    _watch(t, r, h=layers[-1], back=back, y=_act(r)(back))


@_family(NETWORKS)
def residual(t: tp.Tracer, r: Random) -> None:
    h = t.gaussian("h")
    for index in range(r.randint(2, 3)):
        h = h + _weight(r) * _apply(t.matrix(f"W{index}"), _act(r)(h))
    v = t.gaussian("v")
    f = tp.n**H * t.inner(v, h)
    _watch(t, r, h=h, f=f, x=_act(r)(h + f * v if r.random() < 0.5 else h))


@_family(NETWORKS)
def norm(t: tp.Tracer, r: Random) -> None:
    h = t.gaussian("h", mean=r.choice((0, H)))
    v = t.gaussian("v")
    for index in range(r.randint(1, 2)):
        h = _apply(t.matrix(f"W{index}"), _act(r)(h))
        if r.random() < 0.5:
            averages = [tp.mean(h), t.inner(h, h)]
            h = t.nonlin(lambda x, m, q: (x - m) * (q - m**2) ** -H, h, scalars=averages)
        else:
            c = h - tp.mean(h)
            h = c * t.inner(c, c) ** -H
    _watch(t, r, h=h, x=_act(r)(h), f=tp.n**H * t.inner(v, _act(r)(h)))


@_family(NETWORKS)
def rnn(t: tp.Tracer, r: Random) -> None:
    matrix, act = t.matrix("W"), _act(r)
    corr = Fraction(r.choice((0, 1, 2)), 4)
    tokens = t.gaussians(
        ["a", "b", "c"], cov=[[1 if i == j else corr for j in range(3)] for i in range(3)]
    )
    states = [tokens[0]]
    for token in tokens[1:]:
        states.append(_apply(matrix, act(states[-1])) + token)
    d = t.gaussian("d")
    back = _apply(matrix.T, d * r.choice(ODD)(states[-1]))
    _watch(t, r, h=states[-1], back=back, first=states[1], f=tp.n**H * t.inner(d, act(states[-1])))


@_family(NETWORKS)
def sgd(t: tp.Tracer, r: Random) -> None:
    """A network of two hidden layers and one step on it, batch 1 or 2, random powers."""
    act, slope = r.choice(((tp.tanh, lambda z: 1 - tp.tanh(z) ** 2), (tp.relu, tp.step)))
    corr = Fraction(r.choice((0, 1, -1)), 2)
    inputs = t.gaussians(["a", "b"], cov=[[1, corr], [corr, 1]])
    matrix, v = t.matrix("W"), t.gaussian("v")
    out = r.choice((H, Fraction(1), Fraction(3, 4)))
    rate = Fraction(r.randint(-4, 6), 4)
    batch = r.randint(1, 2)
    x = [act(h) for h in inputs]
    h = [_apply(matrix, one) for one in x]
    f = [tp.n ** (1 - out) * t.inner(v, act(one)) for one in h]
    chi = [one - 1 if r.random() < 0.7 else None for one in f]
    gradients = []
    for index in range(batch):
        d = tp.n**-out * (v * t.nonlin(slope, h[index]))
        gradients.append(d if chi[index] is None else chi[index] * d)
    moved = h[1]
    for index in range(batch):
        moved = moved - tp.n ** (H - rate) * (t.inner(x[index], x[1]) * gradients[index])
    back = _apply(matrix.T, gradients[0])
    _watch(t, r, h=moved, dh=gradients[0], dx=back, f=f[0])
    t.output("f1", tp.n ** (1 - out) * t.inner(v, act(moved)))
    t.output("change", moved - h[1])


@_family(NETWORKS)
def ntk(t: tp.Tracer, r: Random) -> None:
    act = r.choice((tp.tanh, tp.erf, tp.sin))
    corr = Fraction(r.choice((-1, 0, 1, 2)), 3)
    h = t.gaussians(["a", "b"], cov=[[1, corr], [corr, 1]])
    matrices = [t.matrix(f"W{index}") for index in range(r.randint(1, 2))]
    layers = [h]
    for matrix in matrices:
        layers.append([_apply(matrix, act(x)) for x in layers[-1]])
    v = t.gaussian("v")
    d = [v * tp.cos(x) for x in layers[-1]]
    for matrix, below in zip(reversed(matrices), reversed(layers[:-1]), strict=True):
        d = [_apply(matrix.T, one) * tp.cos(x) for one, x in zip(d, below, strict=True)]
    t.output("kernel", t.inner(d[0], d[1]) * t.inner(act(layers[0][0]), act(layers[0][1])))
    f = [tp.n**H * t.inner(v, act(x)) for x in layers[-1]]
    _watch(t, r, d=d[0], h=layers[-1][1], f=f[0], g=f[0] * f[1])


# -------------------------------------------------------------------- what a calculus assumes


@_family(ASSUMED)
def pair(t: tp.Tracer, r: Random) -> None:
    """Two smooth sums whose difference has an atom."""
    x, z, v, w = _vectors(t, "xzvw")
    gate = r.choice((tp.relu, lambda z: tp.relu(z) - tp.relu(-z - 1), lambda z: tp.abs(z) - z))
    if r.random() < 0.4:
        matrix = t.matrix("W")
        x, z = _apply(matrix, x), _apply(r.choice((matrix.T, t.matrix("V"))), z)
    if r.random() < 0.4:
        x = x + r.choice(ODD)(w)
    y = x + _weight(r) * gate(z)
    near = y + tp.n ** -r.choice((Fraction(1, 4), H, Fraction(1))) * v
    fn = r.choice((tp.relu, tp.abs, tp.step))
    d = t.nonlin(lambda a, b: fn(a - b), near, x) - t.nonlin(lambda a, b: fn(a - b), y, x)
    t.output("d", d)
    t.output("read", t.moment(lambda v, a, b: v * fn(a - b), v, near, x))
    t.output("d.v", tp.n ** r.choice((0, H)) * t.inner(d, v))
    t.output("d.d", tp.n ** r.choice((0, H, 1)) * t.inner(d, d))
    t.output("larger", t.moment(lambda v, a, b: v * (b + tp.relu(a - b)), v, near, x))


@_family(ASSUMED)
def twin(t: tp.Tracer, r: Random) -> None:
    """Two expressions that are equal in the limit, not before."""
    x, z, v = _vectors(t, "xzv")
    act = _act(r)
    scale = r.choice(
        (
            lambda: t.inner(x, x),
            lambda: t.inner(x, x) ** -H,
            lambda: 2 * tp.mean(tp.step(x)),
            lambda: 1 + t.inner(z, act(x)),
            lambda: t.inner(z, z) ** r.choice((2, -1)),
        )
    )()
    y = scale * act(x) - act(x)
    if r.random() < 0.5:
        y = y + r.choice((tp.relu, lambda z: tp.relu(z - 1)))(z)
    if r.random() < 0.3:
        matrix = t.matrix("W")
        y = y + _apply(matrix, scale * x) - _apply(matrix, x)
    t.output("y", y)
    _probe(t, r, y, v)


@_family(ASSUMED)
def quotient(t: tp.Tracer, r: Random) -> None:
    """Divisors that vanish, or are random and may."""
    u, w, x, v = _vectors(t, "uwxv")
    kind = r.randrange(5)
    power = r.choice((-1, -1, -2, -H))
    if kind == 0:
        a, b = t.inner(u, u), t.inner(w, w)
        y = t.nonlin(lambda x, a, b: x / (a - b), v, scalars=[a, b])
        t.output("heavy y", y)
        t.output("z", tp.n**-H * y)
        t.output("heavy y.y", tp.n**-1 * t.inner(y, y))
        t.output("bounded", t.moment(lambda x: x / (1 + x**2), tp.n**-H * y))
    elif kind == 1:
        s = _fluctuation(t, r, u, w)
        small = (1 + s * s) ** power
        _watch(t, r, small=small, y=small * v, z=tp.tanh(small * u + v))
    elif kind == 2:
        h = tp.n ** -r.choice((H, Fraction(1))) * _apply(t.matrix("W"), u)
        x = r.choice((tp.softplus, tp.sigmoid, tp.cos, tp.tanh))(h)
        averages = [tp.mean(x), t.inner(x, x)]
        y = t.nonlin(lambda x, m, q: (x - m) * (q - m**2) ** -H, x, scalars=averages)
        c = x - tp.mean(x)
        t.output("c", c)
        _watch(t, r, y=y, z=c * t.inner(c, c) ** -H)
        t.output("y.h", t.inner(y, _act(r)(u)))
    elif kind == 3:
        s = _fluctuation(t, r, u, w)
        y = tp.tanh(s**-1 * x + v)
        _watch(t, r, y=y)
        t.output("sd", t.inner(y, y))
    else:
        s = t.inner(u, u) - 1
        y = t.nonlin(lambda x, s: x / s, v, scalars=[s]) if r.random() < 0.5 else s**-1 * v
        t.output("heavy y", y)
        t.output("y", tp.erf(tp.n**-H * y))
        t.output("ratio", t.inner(v, v) / (1 + tp.n * s * s))


@_family(ASSUMED)
def drift(t: tp.Tracer, r: Random) -> None:
    """A coefficient that vanishes like a fluctuation, in front of a vector."""
    u, w, z, v = _vectors(t, "uwzv")
    a = r.choice(
        (
            lambda: t.inner(u, u) - 1,
            lambda: t.inner(u, w),
            lambda: t.inner(u, u) - t.inner(w, w),
            lambda: tp.mean(tp.relu(u)) - tp.mean(tp.relu(w)),
            lambda: tp.mean(tp.step(u)) - H,
        )
    )()
    y = a * r.choice((u, w, tp.tanh(u)))
    if r.random() < 0.5:
        y = y + r.choice((tp.relu(z), tp.relu(z - 1)))
    if r.random() < 0.3:
        y = _apply(t.matrix("W"), y)
    t.output("y", y)
    t.output("a", tp.n ** r.choice((0, H)) * a)
    _probe(t, r, y, v)
    t.output("squares", tp.n * t.inner(y, y))


@_family(ASSUMED)
def disguise(t: tp.Tracer, r: Random) -> None:
    """Vectors and scalars that are identically 0, or old ones written otherwise."""
    u, v, w = _vectors(t, "uvw")
    matrix = t.matrix("W")
    kind = r.randrange(5)
    h = _apply(t.matrix("V"), u) if r.random() < 0.4 else u
    if kind == 0:
        d = t.inner(u, matrix @ w) - t.inner(w, matrix.T @ u)
        t.output("one", (tp.n**2 * (d * d) + 1) ** r.choice((-1, -2)))
        y = (tp.n ** r.choice((0, H)) * d) * u
    elif kind == 1:
        y = _apply(matrix, tp.relu(h)) - _apply(matrix, h) / 2 - _apply(matrix, tp.abs(h)) / 2
    elif kind == 2:
        y = _apply(matrix, tp.relu(2 * h)) - 2 * _apply(matrix, tp.relu(h))
    elif kind == 3:
        a, b = t.gaussians(["a", "b"], cov=[[1, 2], [2, 4]])
        act = r.choice((tp.relu, tp.abs, lambda z: z))
        y = 2 * _apply(matrix, act(a)) - _apply(matrix, act(b))
    else:
        y = _apply(matrix, tp.sigmoid(h)) - _apply(matrix, tp.tanh(h / 2)) / 2
        y = y - _apply(matrix, h * 0 + H)
    t.output("y", y + r.choice((0, 1)) * tp.relu(w) if r.random() < 0.5 else y)
    _probe(t, r, y, v)


@_family(ASSUMED)
def flat(t: tp.Tracer, r: Random) -> None:
    """Piecewise linear functions with flat parts, read at their values there."""
    u, v = _vectors(t, "uv")
    x = _apply(t.matrix("W"), u) if r.random() < 0.3 else u
    top = Fraction(r.choice((1, 2, 3)), r.choice((1, 3, 10)))
    hard = tp.relu(x + top) - tp.relu(x - top) - top
    if r.random() < 0.3:
        hard = hard + r.choice((tp.relu(x - 2 * top), tp.relu(-x - 2 * top)))
    level = r.choice((top, -top, 0))
    y = hard + tp.n ** -r.choice((H, Fraction(1, 4))) * v
    for name, gate in (("step", tp.step), ("relu", tp.relu), ("abs", tp.abs)):
        t.output(name, t.inner(gate(y - level), v))
    t.output("raised", tp.n**H * t.inner(tp.relu(y - level), v))
    t.output("change", tp.relu(y - level) - tp.relu(hard - level))


@_family(ASSUMED)
def jump(t: tp.Tracer, r: Random) -> None:
    """Jumps of scalars at, or near, where the scalar tends to."""
    u, w, v = _vectors(t, "uwv")
    s = r.choice(
        (lambda: t.inner(u, u), lambda: 1 + t.inner(u, w), lambda: 2 * tp.mean(tp.step(u)))
    )()
    at = r.choice((1, 1, 1, H))
    gate = r.choice((tp.step, tp.sign, lambda z: tp.abs(z) * 0 + tp.step(-z)))
    slow = tp.n ** r.choice((0, 0, H))
    t.output("average", t.moment(lambda x, s: x * x * gate(s - at), v, scalars=[s]))
    t.output("y", t.nonlin(lambda x, s: x * gate(s - at), v, scalars=[s]))
    t.output("kink", slow * t.moment(lambda x, s: x * x * tp.relu(s - at), v, scalars=[s]))
    t.output("inside", t.moment(lambda x, s: tp.tanh(x) * gate(x + s - at), v, scalars=[s]))
    if r.random() < 0.3:
        t.output("scalar", gate(s - at))


@_family(ASSUMED)
def ratio(t: tp.Tracer, r: Random) -> None:
    """Ratios of averages that fluctuate."""
    u, w, x, z = _vectors(t, "uwxz")
    a = tp.n**H * t.inner(u, r.choice((tp.tanh, tp.relu))(w))
    b = tp.n**H * t.inner(x, r.choice((tp.sin, tp.abs))(z))
    q = a / b
    t.output("heavy q", q)
    t.output("bounded", q / (1 + q * q))
    t.output("damped", a / (1 + b * b))
    t.output("heavy y", u / b**2)
    t.output("y", tp.tanh(q * u + x))
    t.output("y.y", t.moment(lambda u, x, q: tp.tanh(q * u + x) ** 2, u, x, scalars=[q]))
    t.output("angle", a * (a * a + b * b) ** -H)
