"""Programs of the corpus that are written line by line: one rule of the calculus each."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import tpcalc as tp

__all__ = ["REFUSED", "RULES"]

H = Fraction(1, 2)
COV = [[1, H, Fraction(1, 5)], [H, 1, Fraction(3, 10)], [Fraction(1, 5), Fraction(3, 10), 1]]
Rule = Callable[[tp.Tracer], None]


def hat(matrix: Any, x: Any) -> Any:
    return tp.n**-H * (matrix @ x)


def raised(t: tp.Tracer, x: Any, y: Any) -> Any:
    return tp.n**H * t.inner(x, y)


def built(rule: Rule) -> Callable[[], tp.Program]:
    return lambda: tp.program(rule).build()


# ------------------------------------------------------------------------- one rule each


def there_and_back(t: tp.Tracer) -> None:
    v, matrix = t.gaussian("v"), t.matrix("W")
    h = hat(matrix, tp.relu(v))
    g = hat(matrix.T, tp.tanh(h))
    t.output("h", h)
    t.output("g", g)
    t.output("overlap", t.inner(v, g))
    t.output("exact", t.inner(v, hat(matrix.T, tp.relu(h))))
    t.output("other", t.inner(v, hat(t.matrix("V").T, tp.relu(h))))


def iterated(t: tp.Tracer) -> None:
    v = g = t.gaussian("v")
    matrix = t.matrix("W")
    for step in range(3):
        g = hat(matrix, hat(matrix.T, g))
        t.output(f"vg{step}", t.inner(v, g))
        t.output(f"gg{step}", t.inner(g, g))


def ratios(t: tp.Tracer) -> None:
    t.dim("m", "1/2")
    t.dim("k", 2)
    v = t.gaussian("v")
    a, b = t.matrix("A", "m", "n"), t.matrix("B", "k", "m")
    h = hat(a, v)
    g = hat(b, tp.relu(h))
    down = hat(b.T, tp.tanh(g))
    back = hat(a.T, down * tp.relu(h))
    for name, left, right in (("hh", h, h), ("gg", g, g), ("dh", down, tp.relu(h))):
        t.output(name, t.inner(left, right))
    t.output("vb", t.inner(v, back))
    t.output("again", t.inner(hat(a, tp.tanh(back + v)), h))


def correlated(t: tp.Tracer) -> None:
    a, b, c = t.gaussians(["a", "b", "c"], mean=[0, 1, 0], cov=COV)
    matrix = t.matrix("W")
    y, z = hat(matrix, tp.relu(a)), hat(matrix, tp.relu(b) * c)
    t.output("yz", t.inner(y, z))
    t.output("kinks", t.inner(tp.relu(y), tp.relu(z)))
    t.output("three", t.mean(tp.relu(a) * tp.relu(b) * tp.relu(c)))
    t.output("sum", tp.tanh(a + b - 2 * c))


def singular(t: tp.Tracer) -> None:
    a, b, c = t.gaussians(["a", "b", "c"], mean=[0, 1, 0], cov=[[1, 1, 0], [1, 1, 0], [0, 0, 0]])
    matrix = t.matrix("W")
    y, z = hat(matrix, tp.relu(a + b)), hat(matrix, tp.relu(2 * b - b + a))
    t.output("yz", t.inner(y, z))
    t.output("cc", t.inner(c, c))
    t.output("by", t.mean(b * y**2))


def outer(t: tp.Tracer) -> None:
    """An update of a matrix that is a function of each of its entries."""
    a, b, x = t.gaussian("a"), t.gaussian("b"), t.gaussian("x", mean=1)
    z = t.outer(lambda r, c: tp.tanh(r * c), [a], [b], x * b)
    t.output("z", z)
    t.output("za", t.inner(z, a))
    t.output("zz", t.inner(z, z))


def sign_step(t: tp.Tracer) -> None:
    """A step of sign descent: W moves by the sign of each entry of its gradient."""
    v, d, matrix = t.gaussian("v"), t.gaussian("d"), t.matrix("W")
    x = tp.tanh(v)
    g = d * (1 - tp.tanh(hat(matrix, x)) ** 2)
    moved = hat(matrix, x) - t.outer(lambda r, c: H * tp.sign(r * c), g, x, x)
    t.output("moved", moved)
    t.output("f", t.inner(d, tp.tanh(moved)))


def adam_step(t: tp.Tracer) -> None:
    """A step of Adam on a batch of two: an entry over the root of a mean of its squares."""
    v, w, d, e = (t.gaussian(name) for name in "vwde")
    rate = t.scalar("eta", H)
    x = tp.tanh(v)
    moved = t.outer(
        lambda r, s, c, b, eta: eta * (r * c + s * b) * ((r * c) ** 2 + (s * b) ** 2 + 1) ** -H,
        [d, e],
        [x, w],
        x,
        scalars=[rate],
    )
    t.output("moved", moved)
    t.output("f", t.inner(d, moved))


def with_scalars(t: tp.Tracer) -> None:
    u, v, matrix = t.gaussian("u"), t.gaussian("v"), t.matrix("W")
    f = raised(t, u, tp.tanh(hat(matrix, tp.relu(v)))) + t.random_scalar("b", std=H)
    g = hat(matrix, tp.tanh(f * v))
    t.output("f", f)
    t.output("ff", f * f)
    t.output("gg", t.inner(g, g))
    t.output("bent", tp.relu(f) + t.scalar("c", 2))


def fluctuations(t: tp.Tracer) -> None:
    t.dim("m", 2)
    (u,) = t.gaussians(["u"], cov=[[3]])
    z, v = t.gaussian("z", dim="m"), t.gaussian("v")
    f = raised(t, z, tp.tanh(hat(t.matrix("A", "m", "n"), v)))
    g = raised(t, u, tp.tanh(v))
    for name, value in (("f", f), ("g", g), ("ff", f * f), ("fg", f * g)):
        t.output(name, value)


def both_ends(t: tp.Tracer) -> None:
    y, z = t.gaussian("y"), t.gaussian("z", mean=1)
    w, u, v = (t.matrix(name) for name in "WUV")
    g = tp.relu(hat(v, tp.relu(hat(w.T, z))))
    x = tp.tanh(hat(u, tp.relu(hat(w, y))))
    t.output("ends", raised(t, g, hat(w, x)))
    t.output("left", raised(t, z, hat(w, x)))
    t.output("right", raised(t, g, hat(w, y)))


def two_hats(t: tp.Tracer) -> None:
    """Averages of two products, with one matrix or two, on two widths, and of their sums."""
    t.dim("m", 2)
    a, b = t.matrix("A", "m", "n"), t.matrix("B", "m", "n")
    v, w, z = t.gaussian("v"), t.gaussian("w", mean=H), t.gaussian("z", dim="m")
    q = 2 * hat(a, tp.tanh(v)) + z
    t.output("hats", raised(t, hat(a, tp.relu(v)), hat(b, tp.tanh(w))))
    t.output("start", raised(t, hat(a, tp.relu(v)), tp.relu(z)))
    t.output("back", raised(t, hat(a.T, tp.relu(z)), tp.relu(v) * w))
    t.output("sums", raised(t, q, hat(b, w) + z - z))
    t.output("one", tp.n**H * (t.inner(hat(a, v), hat(a, w)) - t.inner(v, w)))


def attention(t: tp.Tracer) -> None:
    """Logits of one query over the root of d stay random; over d they are numbers."""
    tokens = t.gaussians(["x0", "x1", "x2"], cov=COV)
    query, key, value = (t.matrix(name) for name in ("Q", "K", "V"))
    q = hat(query, tokens[0])
    weights = [tp.exp(raised(t, q, hat(key, x))) for x in tokens]
    total = weights[0] + weights[1] + weights[2]
    y = tokens[0]
    for weight, x in zip(weights, tokens, strict=True):
        y = y + weight / total * hat(value, x)
    t.output("a0", weights[0] / total)
    t.output("y", y)
    t.output("aligned", t.inner(q, hat(query, tp.tanh(tokens[1]))))


def gates(t: tp.Tracer) -> None:
    """Gates whose argument is exactly 0 at the leading order on a part of the coordinates."""
    v, w, u, matrix = t.gaussian("v"), t.gaussian("w"), t.gaussian("u"), t.matrix("W")
    x = tp.relu(hat(matrix, tp.relu(v)))
    moved = x + tp.n**-H * hat(matrix, tp.tanh(w))
    gate = tp.step(moved)
    t.output("open", t.mean(gate))
    t.output("both", t.inner(gate, tp.relu(u)))
    t.output("first", t.mean(tp.n**H * (tp.relu(moved) - tp.relu(x))))
    t.output("back", hat(matrix.T, gate * u))


def homogeneous(t: tp.Tracer) -> None:
    """Vectors that vanish or explode, through functions that only take a power of n out."""
    v, matrix = t.gaussian("v"), t.matrix("W")
    tiny = tp.relu(tp.n**-1 * (matrix @ tp.relu(v)))
    huge = tp.relu_pow(2)(matrix @ tp.tanh(v))
    t.output("tiny", tiny)
    t.output("huge", huge)
    t.output("mean", tp.n**H * tp.mean(tiny))
    t.output("same", tp.n**-H * t.inner(tiny, huge))
    t.output("sign", t.inner(tp.sign(matrix @ v), tp.n**H * tp.tanh(tp.n**-1 * (matrix @ v))))


def cancelled(t: tp.Tracer) -> None:
    """What cancels at the leading order is followed below it."""
    v, w, matrix = t.gaussian("v"), t.gaussian("w"), t.matrix("W")
    h, small = hat(matrix, tp.tanh(v)), tp.n**-H * w
    t.output("first", tp.n**H * (tp.tanh(h + small) - tp.tanh(h)))
    t.output("second", tp.n * (tp.tanh(h + small) - tp.tanh(h) - small * (1 - tp.tanh(h) ** 2)))
    t.output("zero", hat(matrix, v) - hat(matrix, 2 * v) + hat(matrix, v))
    t.output("average", tp.n * (t.inner(h + small, h + small) - t.inner(h, h)))


def normalised(t: tp.Tracer) -> None:
    h = hat(t.matrix("W"), tp.relu(t.gaussian("v", mean=H)))
    averages = [tp.mean(h), t.inner(h, h)]
    y = t.nonlin(lambda x, m, q: (x - m) * (q - m**2) ** -H, h, scalars=averages)
    t.output("y", y)
    t.output("next", tp.relu(hat(t.matrix("U"), tp.tanh(y))))
    t.output("f", raised(t, t.gaussian("u"), tp.relu(y)))


def haar(t: tp.Tracer) -> None:
    v, w, matrix = t.gaussian("v"), t.gaussian("w"), t.matrix("Q", law="orthogonal")
    h = hat(matrix, tp.relu(v))
    back = hat(matrix.T, tp.tanh(h) + w)
    t.output("round", hat(matrix.T, hat(matrix, tp.tanh(v))))
    t.output("h", h)
    t.output("back", back)
    t.output("overlap", t.inner(back, v))
    t.output("again", t.inner(hat(matrix, tp.tanh(back)), h))


def haar_rectangular(t: tp.Tracer) -> None:
    t.dim("m", "1/2")
    v, matrix = t.gaussian("v"), t.matrix("Q", "m", "n", law="orthogonal")
    h = hat(matrix, tp.tanh(v))
    back = hat(matrix.T, tp.relu(h))
    t.output("hh", t.inner(h, h))
    t.output("vb", t.inner(v, back))
    t.output("next", t.inner(hat(t.matrix("W", "m", "n"), tp.relu(back)), h))


def symbolic(t: tp.Tracer) -> None:
    """Exponents with a symbol: the order is a formula with the region where it holds."""
    a, v, matrix = tp.symbol("a"), t.gaussian("v"), t.matrix("W")
    h = tp.n**-a * (matrix @ tp.tanh(v))
    t.output("h", h)
    t.output("x", tp.relu(h))
    t.output("sum", tp.relu(h) + tp.n**-H * v)
    t.output("mean", t.inner(h, h))


# ----------------------------------------------------------------------------- refusals


def explodes(t: tp.Tracer) -> None:
    u, v = t.gaussian("u"), t.gaussian("v")
    t.output("fine", t.inner(tp.relu(u), tp.relu(u)))
    t.output("root", tp.n**H * t.inner(u, u))
    t.output("bent", t.mean(tp.tanh(tp.n**H * u)))
    t.output("faster", t.mean(tp.exp(tp.n**H * u)))
    t.output("large", tp.n**H * v)


def divides(t: tp.Tracer) -> None:
    u, v, w = (t.gaussian(name) for name in "uvw")
    t.output("fine", t.mean(tp.tanh(v) ** 2))
    t.output("near 0", 1 / (v + tp.n**-H * w))
    t.output("ratio", raised(t, u, v) / raised(t, v, w))
    t.output("bounded", 1 / (1 + raised(t, u, v) ** 2))


def no_law(t: tp.Tracer) -> None:
    """Fluctuations, of which some have no known law, and a kink at which a sum sits."""
    u, v, w = (t.gaussian(name) for name in "uvw")
    matrix = t.matrix("W")
    x, slow = tp.tanh(hat(matrix, v)), tp.tanh(tp.n**-H * hat(matrix, v))
    t.output("fluctuates", v + raised(t, x, tp.tanh(w)) * w)
    t.output("slowly", v + tp.n * t.inner(slow, tp.tanh(w)) * w)
    again = hat(matrix, tp.tanh(hat(matrix.T, x)))
    t.output("itself", tp.n**H * (t.inner(again, again) - t.inner(x, x)))
    two = tp.relu(v) + tp.n**-H * tp.relu(w)
    three = two + tp.n**-0.75 * u
    t.output("kink", tp.n**0.75 * t.mean(tp.relu(three) - tp.relu(two)))
    t.output("outer", t.outer(lambda r, c: tp.tanh(r * c), tp.n**H * u, v, w))


RULES = {
    rule.__name__.replace("_", "-"): built(rule)
    for rule in (
        there_and_back,
        iterated,
        ratios,
        correlated,
        singular,
        outer,
        sign_step,
        adam_step,
        with_scalars,
        fluctuations,
        both_ends,
        two_hats,
        attention,
        gates,
        homogeneous,
        cancelled,
        normalised,
        haar,
        haar_rectangular,
        symbolic,
    )
}
REFUSED = {rule.__name__.replace("_", "-"): built(rule) for rule in (explodes, divides, no_law)}
