"""Chains of fully connected layers, Gram matrices of their inputs, and what loops read of these.

Constants of the layers, and numbers of single inputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array, Index
from tpcalc.errors import EvaluationError

if TYPE_CHECKING:
    from tpcalc.engine.chains_tiles import Pair

Family = Literal["abrelu", "jump", "erf", "gelu", "sin", "exp", "gaussian", "cubic", "smooth"]
FAMILIES: tuple[Family, ...] = get_args(Family)
PLAIN = 1.0, 0.0, 0.0, 0.0  # the shape of what has none


@dataclass(frozen=True, eq=False)
class Gram:
    """Inputs and the scale of their Gram matrix, G = factor * inputs @ others.T.

    They are float64 and contiguous, finite, and of a size whose squares are.
    """

    inputs: Array  # shape (N, d)
    others: Array | None = None  # shape (M, d); None: the inputs themselves
    factor: float = 1.0  # for example 1 / d


@dataclass(frozen=True)
class Chain:
    """A chain of equal dense layers."""

    # "abrelu": phi(z) = a |z| + b z; "jump": a sign(z) + b, NNGP alone; all others:
    # a f(b z), where "gaussian" is exp(-z^2), and f of "smooth" is given
    family: Family
    a: float  # see family. ReLU has a = b = 1/2.
    b: float  # see family
    depth: int  # how many times the activation is applied
    weight_variance: float  # variance of the weights of hidden layers, times their fan-in
    bias_variance: float  # variance of the biases of hidden layers
    # None: a plain chain with a readout of weight variance 1 without bias; a number: every layer
    # adds that multiple of its output to its input, and the readout is linear
    residual: float | None
    first_weight: float  # weight variance of the first layer, of G
    first_bias: float  # bias variance of the first layer
    # of "sin", sin(b z + c): cos 2c; of "cubic" the coefficients, the constant first
    shape: tuple[float, ...] = PLAIN

    def __post_init__(self) -> None:
        checks.one_of("family of activations", self.family, FAMILIES)
        checks.whole(self.depth, "depth", least=1)
        names = ["a", "b", "weight_variance", "bias_variance", "first_weight", "first_bias"]
        if self.residual is not None:
            names.append("residual")
        for name in names:
            least = None if name in ("a", "b", "residual") else 0
            checks.real(getattr(self, name), name, least=least)
        kinked = self.family in ("abrelu", "jump")
        if (self.a == 0 and self.b == 0) or (not kinked and 0 in (self.a, self.b)):
            raise EvaluationError(
                f"the activation is 0 for a = {self.a!r}, b = {self.b!r}.",
                where="Chain",
                hint="Use coefficients that are not 0.",
            )


ROUNDING = 2.0**-52
EPS = ROUNDING / 2
ROUNDINGS = 4.0  # of a value or a slope of a smooth activation
NUMBERS = 8  # of an input in a layer of it: three that duals read, n0, p0, n1, p1, n2
BLOCK = 2**20  # entries of inputs that are squared at once
LEAST, MOST = 1e-60, 2e3  # variances with which distances of erf were tried


@dataclass(frozen=True)
class Table:
    """Arguments of a loop, ready for any of its tiles.

    Errors are in units of sqrt(K_ii K_jj), for each of both kernels its own.
    """

    kind: int  # which chain it is, see ``chains_loops``
    pair: Pair
    factors: tuple[Array, Array]  # what kernels are multiplied by at the end
    tables: tuple[Array, Array]  # numbers of single inputs, layer by layer
    forms: Array  # constants of the layers
    finite: bool  # whether kernels stay within float64
    error: float  # relative, away from coincidence
    near_error: float  # of nearly coincident inputs
    layers: Index = field(default_factory=lambda: np.zeros(2, np.int64))  # of plain ones; long ones
    # errors of all pairs, where they are followed; those of inputs that nearly coincide below 0
    wrong: Array = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def stated(self) -> tuple[float, float]:
        """The errors away from coincidence and near it."""
        away, near = self.wrong.max(initial=self.error), -self.wrong.min(initial=-self.near_error)
        return float(away), float(near)

    def run(self, tiles: Index, nngp: Array, ntk: Array) -> None:
        """Fill tiles of the results."""
        from tpcalc.engine.chains_loops import JUMP, run_tiles

        job = tiles, nngp, self.wrong if self.kind == JUMP else ntk
        run_tiles(self.kind, self.pair, self.factors, self.tables, self.forms, self.layers, job)


def pair_of(gram: Gram) -> Pair:
    """Both sets of inputs as the loops want them, with their squared norms."""
    from tpcalc.engine.chains_tiles import COLUMNS

    x = gram.inputs
    y = x if gram.others is None else gram.others
    yt = np.zeros((y.shape[1], -(-len(y) // COLUMNS) * COLUMNS))
    yt[:, : len(y)] = y.T
    return x, y, yt, gram.others is None, _squares(x, len(x)), _squares(y, yt.shape[1])


def _squares(x: Array, length: int) -> Array:
    """Squared norms of rows, padded by zeros to a length; equal rows get equal numbers."""
    out = np.zeros(length)
    step = max(1, BLOCK // max(x.shape[1], 1))
    for start in range(0, len(x), step):
        rows = x[start : start + step]
        out[start : start + len(rows)] = (rows * rows).sum(axis=1)
    return out


def inverse(pair: Pair) -> Pair:
    """The same with the inverse norms, and 0 for a zero input."""
    norms = [np.sqrt(squares) for squares in pair[4:]]
    of_x, of_y = (np.divide(1.0, one, out=np.zeros_like(one), where=one > 0) for one in norms)
    return (*pair[:4], of_x, of_y)


def _strength(chain: Chain) -> float:
    """What a layer multiplies K by, as a multiple of its weight variance, before alpha^2."""
    return chain.a**2 + chain.b**2


def _shape(chain: Chain) -> tuple[float, float, float]:
    """kappa, tau and base of a |z| + b z, see ``chains_loops``."""
    strength = _strength(chain)
    difference = (chain.a - chain.b) * (chain.a + chain.b)
    return 2 / math.pi * chain.a**2 / strength, difference / strength, chain.b**2 / strength


def plain_table(gram: Gram, chain: Chain) -> Table:
    """Of a |z| + b z without biases: all inputs share their layers, up to their norms."""
    from tpcalc.engine.chains_loops import PLAIN

    pair = pair_of(gram)
    qx, qy = pair[4:]
    shape = _shape(chain)
    gain = _strength(chain) * chain.weight_variance
    if chain.residual is None:
        m0, m1, readout = 0.0, 1.0, 0.0
        scale = _power(gain, chain.depth - 1) * _strength(chain)
    else:
        gain *= chain.residual**2
        m0, m1, readout = 1 / (1 + gain), gain / (1 + gain), 1.0
        scale = _power(1 + gain, chain.depth)
    scale *= chain.first_weight * gram.factor
    fx, fy = np.sqrt(qx) * math.sqrt(scale), np.sqrt(qy) * math.sqrt(scale)
    long = _long_layers(chain.depth, m1 * shape[0])
    peak = np.max(fx, initial=0.0) * np.max(fy, initial=0.0) * (chain.depth + 1)
    return Table(
        PLAIN,
        inverse(pair),
        (fx, fy),
        (np.zeros((0, len(qx))), np.zeros((0, len(qy)))),
        np.array([[m0, m1, *shape, readout]]),
        math.isfinite(scale) and math.isfinite(peak),
        *(_rounding(chain, pair, gram.factor),) * 2,
        np.array([chain.depth, long], dtype=np.int64),
    )


def _power(base: float, exponent: int) -> float:
    try:
        return base**exponent
    except OverflowError:
        return math.inf


def _long_layers(depth: int, kappa: float) -> int:
    """Layers before which some half versine may exceed what the short polynomials take.

    The largest half versine that a layer makes of those up to v is found on a grid and raised by
    what lies between its points (the slope is at most 1).
    """
    from tpcalc.engine.chains_tiles import SMALL

    largest, points = 1.0, np.linspace(0.0, 1.0, 1025)
    for layer in range(depth):
        if largest <= SMALL:
            return layer
        v = largest * points
        x = 2 * np.arcsin(np.sqrt(np.minimum(v, 1.0)))
        after = v - 0.5 * kappa * (np.sin(x) - x * np.cos(x))
        largest = min(largest, float(after.max()) + largest / 1024)
    return depth


def biased_table(gram: Gram, chain: Chain) -> Table:
    """Of a |z| + b z with biases: norms change from layer to layer, differently for each input."""
    from tpcalc.engine.chains_loops import BIASED

    pair = pair_of(gram)
    qx, qy = pair[4:]
    shape = _shape(chain)
    a0, a1, sigma = _step(chain, 1.0)
    a1 *= _strength(chain)
    forms = [[gram.factor * chain.first_weight, chain.first_bias, 0.0, 0.0, 0.0, 0.0, 0.0]]
    forms += [[a0, a1, sigma, *shape, 0.0]] * chain.depth
    if chain.residual is None:
        forms[-1] = [0.0, _strength(chain), 0.0, *shape, 0.0]
    else:
        forms[-1] = [*forms[-1][:6], 1.0]

    def norms(squares: Array) -> Array:
        rows = [squares, forms[0][0] * squares + forms[0][1]]
        for form in forms[1:]:
            rows.append((form[0] + form[1]) * rows[-1] + form[2])
        return np.sqrt(np.array(rows))

    norms_x, norms_y = norms(qx), norms(qy)
    peak = np.max(norms_x, initial=0.0) * np.max(norms_y, initial=0.0) * (chain.depth + 1)
    return Table(
        BIASED,
        inverse(pair),
        (np.ones(len(qx)), np.ones(len(qy))),
        (norms_x, norms_y),
        np.array(forms),
        bool(np.isfinite(norms_x).all() and np.isfinite(norms_y).all() and math.isfinite(peak)),
        *(_rounding(chain, pair, gram.factor),) * 2,
    )


def jump_table(gram: Gram, chain: Chain) -> Table:
    """Of a sign(z) + b, errors followed: behind the first layer all inputs have one norm."""
    from tpcalc.engine.chains_loops import JUMP

    pair = pair_of(gram)
    first = gram.factor * chain.first_weight, chain.first_bias
    jump, level = chain.a**2, chain.b**2
    inner = [chain.weight_variance * jump, chain.weight_variance * level + chain.bias_variance]
    rounding = EPS * (64 + 2 * pair[0].shape[1]) / math.pi  # of angles, as shares of pi
    forms = [[*first, rounding, 0.0], *[[*inner, 0.0, 0.0]] * (chain.depth - 1)]
    forms.append([jump, level, 0.0, 0.0])
    tables = tuple(np.sqrt([own, first[0] * own + first[1]]) for own in pair[4:])
    finite = sum(inner) < math.inf and all(bool(np.isfinite(one).all()) for one in tables)
    ones = np.ones(len(pair[4])), np.ones(len(pair[5]))
    arrays = ones, (tables[0], tables[1]), np.array(forms)
    wrong = np.zeros((len(pair[0]), len(pair[1])))
    return Table(JUMP, inverse(pair), *arrays, finite, 0.0, 0.0, wrong=wrong)


def forms_of(chain: Chain, unit: float) -> Array:
    """keep, m, s of all layers, of a smooth activation (see ``chains_layers``)."""
    keep, weight, bias = _step(chain, unit)
    forms = np.tile([keep, weight * chain.a**2, bias], (chain.depth, 1))
    if chain.residual is None:
        forms[-1] = [0.0, chain.a**2, 0.0]
    return forms


def _step(chain: Chain, unit: float) -> tuple[float, float, float]:
    """a0, a1, sigma of K' = a0 K + a1 E phi phi + sigma, with K in multiples of 1 / unit."""
    if chain.residual is None:
        return 0.0, unit * chain.weight_variance, unit * chain.bias_variance
    square = chain.residual**2 * unit
    return 1.0, square * chain.weight_variance, square * chain.bias_variance


def erf_table(gram: Gram, chain: Chain) -> Table:
    """Of a erf(b z): K is counted in units of 1 / b^2, so that the activation is erf(z)."""
    from tpcalc.engine.chains_loops import ERF

    pair = pair_of(gram)
    qx, qy = pair[4:]
    unit = chain.b**2
    a0, a1, sigma = _step(chain, unit)
    a1 *= chain.a**2
    first = unit * gram.factor * chain.first_weight, unit * chain.first_bias
    forms = [[*first, 0.0, 0.0]]
    forms += [[a0, a1, sigma, 0.0]] * chain.depth
    if chain.residual is None:
        forms[-1] = [0.0, chain.a**2, 0.0, 0.0]
    else:
        forms[-1] = [a0, a1, sigma, 1.0]

    def moments(squares: Array) -> Array:
        q, rows = first[0] * squares + first[1], []
        for _ in range(chain.depth):
            rows += [q, 2 / math.pi * np.arcsin(2 * q / (1 + 2 * q))]
            q = a0 * q + a1 * rows[-1] + sigma
        return np.array(rows)

    def factors(squares: Array, unit: float) -> Array:
        # without biases a zero input has kernel 0, and that exactly
        biased = chain.first_bias > 0 or chain.bias_variance > 0
        return np.where((squares > 0) | biased, unit, 0.0)

    table_x, table_y = moments(qx), moments(qy)
    scale = 1.0 if chain.residual is None else 1 / unit
    most = _unit(chain, pair, gram.factor)
    away, near = _erf_errors(pair, (table_x, table_y), (a0, a1))
    return Table(
        ERF,
        pair,
        (factors(qx, scale), factors(qy, 1.0)),
        (table_x, table_y),
        np.array(forms),
        bool(np.isfinite(table_x).all() and np.isfinite(table_y).all()),
        most * away,
        most * near,
    )


def _rounding(chain: Chain, pair: Pair, factor: float) -> float:
    """The error of a |z| + b z: rounding of inner products, and of every layer.

    The maps of u are concave, so that its relative error does not grow from layer to layer; the
    constants cover what is measured against 40 digits, three times over.
    """
    relative = ROUNDING * (8 + 2 * chain.depth) * (1 + int(pair[0].shape[1]) / 64)
    return _unit(chain, pair, factor) * relative


def _unit(chain: Chain, pair: Pair, factor: float) -> float:
    """|K_ij| + (K_ii + K_jj) / 2 in units of sqrt(K_ii K_jj), at most.

    Layers bring norms closer to each other, so that those of the first layer are the worst. A chain
    without biases is homogeneous in the norm of each input: they drop out.
    """
    if chain.family == "abrelu" and chain.bias_variance == chain.first_bias == 0:
        return 2.0
    squares = np.concatenate([pair[4], pair[5][: len(pair[1])]])
    variances = chain.first_weight * squares * factor + chain.first_bias
    positive = variances[variances > 0]
    if not len(positive):
        return 2.0
    ratio = float(np.sqrt(positive.max() / positive.min()))
    return 1.0 + (ratio + 1 / ratio) / 2


def _erf_errors(
    pair: Pair, tables: tuple[Array, Array], step: tuple[float, float]
) -> tuple[float, float]:
    """Relative errors of erf, away from coincidence and near it.

    Away from it, a derivative loses digits by norms that differ: as (qi - qj)^2 to qi qj (1 - rho)
    or to 1 + 2 qi + 2 qj. Near it the squared distance of a pair grows, by up to ``exp(growth)`` in
    all layers; its relative error, that of the difference of two norms, goes like 1 / distance and
    counts in proportion to the last squared distance while that is small. The worst pairs are
    those whose distance just stops being small: sqrt(exp(growth)). Infinite: no digit is sure.
    """
    q = np.concatenate([tables[0][::2], tables[1][::2]], axis=1)
    largest, least = np.max(q, axis=1, initial=0.0), np.min(q, axis=1, initial=np.inf, where=q > 0)
    if largest.max(initial=0.0) > MOST or least.min(initial=1.0) < LEAST:
        return math.inf, math.inf
    ratio = np.where(largest > 0, largest / np.minimum(least, np.maximum(largest, 1e-300)), 1.0)
    layers = 8 + float(np.sum(4 + np.minimum(12 * ratio, largest)))
    away = ROUNDING * layers * (1 + int(pair[0].shape[1]) / 64)
    slopes = step[0] + step[1] * 4 / math.pi / np.sqrt(1 + 4 * np.minimum(least, largest))
    growth = float(np.sum(np.log(np.maximum(slopes[:-1], 1.0))))
    near = away + 4 * ROUNDING * math.exp(min(growth / 2, 80.0)) * float(largest.max(initial=0.0))
    return away, near if near < 0.1 else math.inf
