"""Kernels of networks over positions: their recursion, cell by cell, with 40 digits."""

from itertools import product

import mpmath as mp
import numpy as np
import pytest

import tpcalc as tp

DIGITS = 40


def network(steps, end, positions, bias, act):
    """Convolutions ("c", size, stride, padding) with a function, and pools ("p",), on an axis."""

    def forward(t, x):
        sides = iter(["in", *[t.n] * len(steps)])
        for number, (what, *how) in enumerate(steps):
            if what == "p":
                x = tp.layers.average_pool(x, "p", 2)
                continue
            shape, apart = how[:3], how[3] if how[3:] else 1
            layer = tp.layers.Conv(
                t, t.n, next(sides), "p", *shape, bias, f"2/{how[0]}", apart, name=f"conv{number}"
            )
            x = FUNCTIONS[act[number % len(act)]](layer(x))
        if end == "flat":
            axes = {"p": x.axes["p"]}
            return t.linear(t.outputs, t.n, axes=axes, over=("p",), name="read")(x)
        return t.linear(t.outputs, t.n, name="read")(tp.layers.average_pool(x, "p"))

    return tp.network(forward, axes={"p": positions})


def taps(positions, size, stride, padding, apart=1):
    """For each window its places, None outside."""
    wide = (size - 1) * apart + 1
    margin = 0 if padding == "none" else (size - 1) // 2 * apart
    last = positions - wide if padding == "none" else positions - 1 - margin
    found = [[start + apart * k for k in range(size)] for start in range(-margin, last + 1, stride)]
    if padding == "circular":
        return [[place % positions for place in window] for window in found]
    return [[place if 0 <= place < positions else None for place in window] for window in found]


def recursion(x, y, steps, end, bias, act):
    """NNGP and NTK of two inputs (positions, coordinates)."""
    with mp.workdps(DIGITS):
        pairs = {"xx": (x, x), "yy": (y, y), "xy": (x, y)}
        k = {name: gram(*pair) for name, pair in pairs.items()}
        t = mp.matrix(len(x), len(x))
        for number, (what, *how) in enumerate(steps):
            if what == "p":
                k = {name: pooled(one) for name, one in k.items()}
                t = pooled(t)
                continue
            windows, factor = taps(k["xy"].rows, *how), mp.mpf(2) / how[0]
            k = {name: summed(one, windows, factor, bias) for name, one in k.items()}
            t = summed(t, windows, factor, 0) + k["xy"]
            k, slopes = bent(k, x is y, DUALS[act[number % len(act)]])
            t = mp.matrix([[t[p, q] * slopes[p, q] for q in range(t.cols)] for p in range(t.rows)])
        t += k["xy"]
        count = t.rows
        where = [(p, p) for p in range(count)] if end == "flat" else product(range(count), repeat=2)
        scale = 1 if end == "flat" else mp.mpf(1) / count**2
        places = list(where)
        return tuple(scale * mp.fsum(one[place] for place in places) for one in (k["xy"], t))


def gram(x, y):
    return mp.matrix(
        [
            [mp.fsum(mp.mpf(a) * mp.mpf(b) for a, b in zip(p, q, strict=True)) / len(p) for q in y]
            for p in x
        ]
    )


def summed(one, windows, factor, bias):
    def entry(mine, other):
        places = zip(mine, other, strict=True)
        return factor * mp.fsum(one[a, b] for a, b in places if None not in (a, b)) + bias

    return mp.matrix([[entry(mine, other) for other in windows] for mine in windows])


def pooled(one):
    half = range(one.rows // 2)
    return mp.matrix(
        [[mp.fsum(one[2 * p + a, 2 * q + b] for a in (0, 1) for b in (0, 1)) / 4 for q in half]
         for p in half]
    )  # fmt: skip


def relu(k, q, other, same):
    both = mp.sqrt(q * other)
    cosine = max(min(k / both, mp.mpf(1)), mp.mpf(-1)) if both else mp.mpf(0)
    angle = mp.acos(mp.mpf(1) if same else cosine)
    value = both * (mp.sin(angle) + (mp.pi - angle) * mp.cos(angle)) / (2 * mp.pi)
    return value, (mp.pi - angle) / (2 * mp.pi)


def erf(k, q, other, same):
    both = (1 + 2 * q) * (1 + 2 * other)
    return 2 / mp.pi * mp.asin(2 * k / mp.sqrt(both)), 4 / mp.pi / mp.sqrt(both - 4 * k**2)


def gelu(k, q, other, same):
    both = (1 + q) * (1 + other)
    root = mp.sqrt(both - k**2)
    part = mp.mpf(1) / 4 + mp.asin(k / mp.sqrt(both)) / (2 * mp.pi)
    value = k * part + (k**2 / root + q * other * root) / (2 * mp.pi * both)
    slope = k / root * (1 / root**2 + (1 - q * other) / both + 1)
    return value, part + slope / (2 * mp.pi)


def waves(k, q, other, same):
    """Of sin(z) - z / 2, of which there is no closed form here."""
    size, crossed = mp.exp(-(q + other) / 2), (mp.exp(-q / 2) + mp.exp(-other / 2)) / 2
    return size * mp.sinh(k) + k / 4 - k * crossed, size * mp.cosh(k) + mp.mpf(1) / 4 - crossed


def folded(k, q, other, same):
    """Of |z| / 2 + sin(z), likewise, with a kink."""
    value, slope = relu(k, q, other, same)  # of (z + |z|) / 2
    size = mp.exp(-(q + other) / 2)
    return value - k / 4 + size * mp.sinh(k), slope - mp.mpf(1) / 4 + size * mp.cosh(k)


def none(k, q, other, same):
    return k, mp.mpf(1)


DUALS = {"none": none, "relu": relu, "erf": erf, "gelu": gelu, "waves": waves, "folded": folded}
FUNCTIONS = {
    "none": lambda x: x,
    "relu": tp.relu,
    "erf": tp.erf,
    "gelu": tp.gelu,
    "waves": lambda x: tp.sin(x) - x / 2,
    "folded": lambda x: tp.abs(x) / 2 + tp.sin(x),
}


def bent(k, same, dual):
    """E phi phi' of all three pairs, and E phi' phi' of the two inputs."""
    squares = {name: [k[name * 2][p, p] for p in range(k["xy"].rows)] for name in "xy"}
    found = {name: one.copy() for name, one in k.items()}
    slopes = k["xy"].copy()
    for name, one in k.items():
        for p, q in product(range(one.rows), repeat=2):
            equal = p == q and (name != "xy" or same)
            sides = squares[name[0]][p], squares[name[1]][q]
            found[name][p, q], slope = dual(one[p, q], *sides, equal)
            if name == "xy":
                slopes[p, q] = slope
    return found, slopes


def hard(positions):
    """Equal, opposite, doubled, near, small and large inputs, and one with equal patches."""
    draw = np.random.default_rng(3)
    a, b = draw.normal(size=(2, 2 * positions))
    half = np.where(np.arange(2 * positions) < positions, a, 0.0)
    return np.array([a, b, a, -a, 2 * a, a + 1e-3 * b, a + 1e-8 * b, 1e-4 * b, 3 * b, half])


ZERO, NONE = (3, 1, "zero"), (2, 1, "none")
CASES = [
    ([("c", *ZERO), ("c", *ZERO)], "mean", 3, True, ["relu"]),
    ([("c", *ZERO), ("c", *ZERO)], "mean", 3, False, ["relu"]),
    ([("c", 3, 2, "zero"), ("c", *NONE)], "flat", 5, True, ["relu"]),
    ([("c", *ZERO), ("c", 2, 2, "none"), ("c", *ZERO)], "flat", 4, False, ["relu"]),
    ([("c", *ZERO), ("p",), ("c", *NONE)], "mean", 4, True, ["relu"]),
    ([("c", *ZERO), ("p",), ("c", *NONE)], "flat", 4, False, ["relu"]),
    ([("c", 3, 1, "circular"), ("c", 2, 1, "none", 3)], "flat", 5, True, ["relu"]),
    ([("c", 3, 1, "zero", 2), ("c", *ZERO)], "mean", 4, False, ["relu"]),
    ([("c", *ZERO), ("c", *ZERO)], "mean", 3, True, ["erf"]),
    ([("c", *ZERO), ("p",), ("c", *NONE)], "mean", 4, False, ["erf"]),
    ([("c", *ZERO), ("c", 2, 2, "none"), ("c", *ZERO)], "flat", 4, False, ["erf"]),
    ([("c", *ZERO), ("c", *ZERO)], "mean", 3, True, ["gelu", "relu"]),
    ([("c", *ZERO), ("c", *ZERO), ("c", *ZERO)], "mean", 3, False, ["relu", "gelu"]),
    ([("c", 1, 1, "zero"), ("c", *ZERO)], "mean", 3, False, ["none", "relu"]),
    ([("c", *ZERO), ("p",), ("c", *NONE)], "mean", 4, False, ["waves"]),
    ([("c", *ZERO), ("c", 2, 2, "none"), ("c", *ZERO)], "flat", 4, True, ["waves"]),
    ([("c", *ZERO), ("c", *ZERO)], "mean", 3, True, ["folded"]),
    ([("c", *ZERO), ("c", 2, 2, "none"), ("c", *ZERO)], "flat", 4, False, ["folded", "relu"]),
]


@pytest.mark.parametrize(("steps", "end", "positions", "bias", "act"), CASES)
def test_errors_are_no_more_than_stated(steps, end, positions, bias, act):
    inputs = hard(positions)
    found = tp.kernel(network(steps, end, positions, bias, act), inputs)
    assert ("route", "planes of positions") in found.provenance.settings
    rows = inputs.reshape(len(inputs), positions, 2)
    exact = {
        (i, j): recursion(rows[i], rows[i] if i == j else rows[j], steps, end, int(bias), act)
        for i, j in product(range(len(rows)), repeat=2)
        if i <= j
    }
    for kind, matrix in enumerate((found.nngp, found.ntk)):
        for (i, j), values in exact.items():
            unit = float(mp.sqrt(exact[i, i][kind] * exact[j, j][kind]))
            assert abs(float(mp.mpf(matrix[i, j]) - values[kind])) <= found.error * unit
            assert matrix[i, j] == matrix[j, i]
    # behind covariances, slopes at a kink of inputs 1e-8 apart have half of their digits
    if act in (["relu"], ["erf"]):
        assert found.error < (1e-6 if ("p",) in steps and act == ["relu"] else 1e-12)
    else:
        assert found.error < (2e-6 if {"relu", "folded"} & set(act) else 4e-12)
