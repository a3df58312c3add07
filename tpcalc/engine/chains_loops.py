"""The numba side of ``chains``: tiles of a kernel matrix, every strip of it through all layers.

The state of a pair of inputs is a distance, not a correlation: near coincidence the tangent kernel
depends on the square root of 1 - rho, which a rounded rho has lost. For phi = a |z| + b z it is
``u``: the half versine v = (1 - rho) / 2 while that is at most 1/2, and v - 1 = -(1 + rho) / 2
beyond, so that antipodal pairs keep their digits too. For erf it is d = E (h - h')^2 / 2.

With x = 2 asin(sqrt s), s = |u|, and D = sin x - x cos x, one layer of a |z| + b z maps (Cho and
Saul 2009, rewritten)::

    rho -> rho + kappa D,  v -> v - kappa D / 2,  E phi' phi' / (a^2 + b^2) = 1 - kappa x

for v <= 1/2, kappa = (2 / pi) a^2 / (a^2 + b^2); beyond, with tau = (a^2 - b^2) / (a^2 + b^2)::

    rho -> tau (1 - 2 s) + kappa D,  v -> base + tau s - kappa D / 2,  kappa x - tau

where base = (1 - tau) / 2 = b^2 / (a^2 + b^2).

A strip stays in the first cache through all layers.
"""

from __future__ import annotations

import math

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.engine.chains_tiles import (
    COLUMNS,
    PANEL,
    PITCH,
    ROWS,
    TINY,
    Job,
    Pair,
    angle,
    angle_small,
    arc,
    arc_small,
    gaps,
    keep,
    starts,
    versines,
    whole,
)
from tpcalc.engine.kernels_compile import exact, inner

PI = math.pi
CLOSE = 0.005  # half versines of inputs that nearly coincide
ROUNDING = 2.0**-50  # of an angle
PLAIN, BIASED, ERF, JUMP = 0, 1, 2, 3  # kinds of chains


@exact
def _plain_layer(u: Array, k: Array, w: Array, form: Array) -> None:
    """One layer without biases; kernels in units of |h| |h'| before and after it."""
    m0, m1, kappa, tau = form[0], form[1], form[2], form[3]
    beyond, slope = m0 + m1 * form[4], m1 * tau - m0
    for t in range(u.size):
        near = u[t] >= 0.0
        s = abs(u[t])
        root = math.sqrt(s)
        x = kappa * root * angle(s)
        bend = kappa * s * root * arc(s)
        inner = 1.0 - 2.0 * s
        rho = (inner if near else tau * inner) + bend
        w[t] = w[t] * (m0 + m1 * ((1.0 - x) if near else (x - tau))) + m1 * rho
        c1 = 1.0 if near else slope
        k[t] = c1 * inner + m1 * bend
        v = (0.0 if near else beyond) + c1 * s - 0.5 * m1 * bend
        u[t] = v if v <= 0.5 else min(v - 1.0, -TINY)


@inner
def _plain_small(u: Array, k: Array, w: Array, form: Array) -> None:
    """The same for half versines up to ``SMALL``."""
    m0, m1, kappa = form[0], form[1], form[2]
    for t in range(u.size):
        s = u[t]
        root = math.sqrt(s)
        x = kappa * root * angle_small(s)
        bend = kappa * s * root * arc_small(s)
        inner = 1.0 - 2.0 * s
        w[t] = w[t] * (m0 + m1 * (1.0 - x)) + m1 * (inner + bend)
        k[t] = inner + m1 * bend
        u[t] = s - 0.5 * m1 * bend


@inner
def _plain_row(u: Array, k: Array, w: Array, form: Array, layers: Index) -> None:
    """Pairs of one input through a |z| + b z without biases."""
    for t in range(u.size):
        s = 1.0 - 2.0 * abs(u[t])
        w[t] = s if u[t] >= 0.0 else -s
    for layer in range(layers[0]):
        if layer < layers[1]:
            _plain_layer(u, k, w, form)
        else:
            _plain_small(u, k, w, form)


@inner
def _biased_first(u: Array, k: Array, ri: Array, before: Array, after: Array, form: Array) -> None:
    """The linear map of the inputs, with its bias: from u of the inputs to u and K of layer 1.

    form: weight, bias. ri: sqrt K of the row's input with itself before and after; before, after:
    those of the columns.
    """
    weight, bias = form[0], form[1]
    for t in range(u.size):
        near = u[t] >= 0.0
        s = abs(u[t])
        n, m, gap = ri[0] * before[t], ri[1] * after[t], ri[0] - before[t]
        safe = max(m, TINY)
        pull = 0.5 * weight * bias * gap * gap / max((m + weight * n + bias) * safe, TINY)
        inner = weight * n * (1.0 - 2.0 * s)
        k[t] = (inner if near else -inner) + bias
        # Both (1 - rho) / 2 and (1 + rho) / 2 without a difference: a bias turns pairs around.
        v = weight * n / safe * (s if near else 1.0 - s) + pull
        other = 1.0 - v if near else weight * n / safe * s + pull + bias / safe
        u[t] = v if v <= 0.5 else -max(other, TINY)


@inner
def _biased_layer(
    u: Array, k: Array, w: Array, ri: Array, before: Array, after: Array, form: Array
) -> None:
    """One layer with biases.

    form: a0, a1, sigma, kappa, tau, base: K' = a0 K + a1 E phi phi / (a^2 + b^2) + sigma. ri:
    sqrt K and sqrt K' of the row's input with itself; before, after: those of the columns.
    """
    a0, a1, sigma, kappa, tau = form[0], form[1], form[2], form[3], form[4]
    whole = a0 + a1
    beyond, slope = a0 + a1 * form[5], a1 * tau - a0
    for t in range(u.size):
        near = u[t] >= 0.0
        s = abs(u[t])
        root = math.sqrt(s)
        x = kappa * root * angle(s)
        bend = kappa * s * root * arc(s)
        inner = 1.0 - 2.0 * s
        n, m, gap = ri[0] * before[t], ri[1] * after[t], ri[0] - before[t]
        safe = max(m, TINY)
        rho = (inner if near else tau * inner) + bend
        w[t] = w[t] * (a0 + a1 * ((1.0 - x) if near else (x - tau))) + a1 * n * rho + sigma
        c1 = whole if near else slope
        k[t] = n * (c1 * inner + a1 * bend) + sigma
        pull = 0.5 * whole * sigma * gap * gap / max((m + whole * n + sigma) * safe, TINY)
        v = n / safe * ((0.0 if near else beyond) + c1 * s - 0.5 * a1 * bend) + pull
        v = min(max(v, 0.0), 1.0)
        u[t] = v if v <= 0.5 else min(v - 1.0, -TINY)


@inner
def _biased_row(
    u: Array, k: Array, w: Array, own: Array, others: Array, start: int, stop: int, forms: Array
) -> None:
    """Pairs of one input through a |z| + b z with biases; norms layer by layer."""
    before, after = others[0][start:stop], others[1][start:stop]
    _biased_first(u, k, own[:2], before, after, forms[0])
    w[:] = k
    for layer in range(1, forms.shape[0]):
        before, after = others[layer][start:stop], others[layer + 1][start:stop]
        _biased_layer(u, k, w, own[layer : layer + 2], before, after, forms[layer])


@inner
def _jump_first(u: Array, e: Array, norm: float, norms: Array, rounding: float) -> None:
    """Errors of angles of inputs, 0 where one is another times a power of 2."""
    for t in range(u.size):
        ratio = norm / norms[t] if norms[t] > 0.0 else 0.0
        alike = abs(u[t]) <= TINY and abs(math.frexp(ratio)[0]) == 0.5
        e[t] = 0.0 if alike else rounding


@inner
def _jump_row(
    u: Array, k: Array, e: Array, own: Array, others: Array, start: int, stop: int, forms: Array
) -> None:
    """Pairs of one input through a sign(z) + b: K is linear in an angle, and so is the next v.

    e: errors of angles, as shares of pi; at the end of K. form: what a layer makes of a^2, and of
    b^2 with its bias. A square root makes of an error ds in s at most min(ds / sqrt s, sqrt ds).
    """
    before, after = others[0][start:stop], others[1][start:stop]
    near = np.empty(u.size)
    for t in range(u.size):
        near[t] = -1.0 if abs(u[t]) < CLOSE else 1.0
    _jump_first(u, e, own[0], before, forms[0, 2])
    _biased_first(u, k, own[:2], before, after, forms[0])
    last = forms.shape[0] - 1
    for layer in range(1, last + 1):
        jump, rest = forms[layer, 0], forms[layer, 1]
        share = jump / (jump + rest)
        for t in range(u.size):
            s = abs(u[t]) if abs(u[t]) > 2.0 * TINY else 0.0
            x = math.sqrt(s) * angle(s) / PI
            k[t] = rest + (jump if u[t] >= 0.0 else -jump) * (1.0 - 2.0 * x)
            v = share * (x if u[t] >= 0.0 else 1.0 - x)
            other = rest / (jump + rest) + share * x  # 1 - v of pairs that are far
            u[t] = v if u[t] >= 0.0 or v <= 0.5 else -max(other, TINY)
            after_s, ds = abs(u[t]), share * e[t]
            root = math.sqrt(max(after_s, TINY))
            grown = 1.5 * min(ds / root, math.sqrt(ds)) + ROUNDING * root
            e[t] = near[t] * min(2.0 * ds + ROUNDING, 2.0) if layer == last else grown


@inner
def _erf_first(d: Array, w: Array, xi: float, xj: Array, qi: float, qj: Array, form: Array) -> None:
    """The linear map of the inputs, with its bias: from d of the inputs to d and K of layer 1.

    form: weight, bias. xi, xj: squared norms of the inputs; qi, qj: their K of layer 1.
    """
    weight, bias = form[0], form[1]
    for t in range(d.size):
        near = d[t] >= 0.0
        m = abs(d[t])
        # Both distances without a difference: a bias turns pairs around.
        closer = weight * (m if near else xi + xj[t] - m)
        mean = 0.5 * (qi + qj[t])
        other = 2.0 * mean - closer if near else weight * m + 2.0 * bias
        w[t] = mean - closer if closer <= mean else other - mean
        d[t] = closer if closer <= mean else -max(other, TINY)


@inner
def _erf_layer(
    d: Array, k: Array, w: Array, qi: float, ei: float, qj: Array, ej: Array, form: Array
) -> None:
    """One layer of erf.

    form: a0, a1, sigma: K' = a0 K + a1 E phi phi + sigma. qi, qj: K of the inputs with themselves;
    ei, ej: E phi(h)^2. With 2 |K| = P cos x, P^2 = (1 + 2 qi) (1 + 2 qj), |E phi phi| is
    1 - 2 x / pi; ``turn`` is x minus the mean of its two diagonal values, from its sine and cosine.
    """
    a0, a1, sigma = form[0], form[1], form[2]
    fi, wi = math.sqrt(1.0 + 4.0 * qi), 1.0 + 2.0 * qi
    gi = 4.0 * qi / (1.0 + fi)
    for t in range(d.size):
        fj = math.sqrt(1.0 + 4.0 * qj[t])
        gj = 4.0 * qj[t] / (1.0 + fj)
        both, gap, ff = qi + qj[t], qi - qj[t], fi + fj
        product = gi * gj + (gi + gj)  # fi fj - 1
        square = wi * (1.0 + 2.0 * qj[t])
        level = 1.0 + 2.0 * both
        m = abs(d[t])
        turned = m > 0.5 * both  # K has changed its sign
        near = (d[t] >= 0.0) != turned
        m = max(both - m, 0.0) if turned else m
        inner = 0.5 * both - m
        root = math.sqrt(max(level + 4.0 * m * (both - m) - gap * gap, level))
        shift = max(4.0 * m - 8.0 * gap * gap / (ff * ff), 0.0)
        under = max(root * product + 2.0 * inner * ff, TINY)
        sine = 0.5 * shift * (product + 4.0 * inner) / under
        cosine = (2.0 * inner * product + root * ff) / (2.0 * square)
        s = min(sine * sine / (2.0 + 2.0 * cosine), 0.5)
        turn = math.sqrt(s) * angle(s)
        size = 0.5 * (ei + ej[t]) - (2.0 / PI) * turn
        value = size if near else -size
        w[t] = w[t] * (a0 + a1 * (4.0 / PI) / root) + a1 * value + sigma
        k[t] = a0 * (inner if near else -inner) + a1 * value + sigma
        after = a0 * m + a1 * (2.0 / PI) * turn + (0.0 if near else 2.0 * sigma)
        d[t] = after if near else -max(after, TINY)


@inner
def _erf_row(
    d: Array,
    k: Array,
    w: Array,
    squares: tuple[float, Array],
    own: Array,
    others: Array,
    start: int,
    stop: int,
    forms: Array,
) -> None:
    """Pairs of one input through erf; squared norms of inputs, and moments layer by layer."""
    xi, xj = squares
    _erf_first(d, w, xi, xj[start:stop], own[0], others[0][start:stop], forms[0])
    for layer in range(1, forms.shape[0]):
        at = 2 * layer - 2
        q, e = others[at][start:stop], others[at + 1][start:stop]
        _erf_layer(d, k, w, own[at], own[at + 1], q, e, forms[layer])


@exact
def run_tiles(
    kind: int,
    pair: Pair,
    factors: tuple[Array, Array],
    tables: tuple[Array, Array],
    forms: Array,
    layers: Index,
    job: Job,
) -> None:
    """Tiles of the kernels of one kind of chain; the last number of its forms is the readout."""
    tiles, same, x = job[0], pair[3], pair[0]
    u, k, w = np.empty((ROWS, PITCH)), np.empty((ROWS, PITCH)), np.empty((ROWS, PITCH))
    first, panel = np.empty(ROWS, np.int64), np.empty((PANEL, COLUMNS))
    readout = forms[-1, -1]
    for n in range(tiles.shape[0]):
        i0, j0 = tiles[n, 0], tiles[n, 1]
        if kind == ERF:
            gaps(pair, i0, j0, panel, u)
        else:
            versines(pair, i0, j0, panel, u)
        starts(same, i0, j0, first)
        wide = whole(min(COLUMNS, len(pair[1]) - j0))
        for r in range(min(ROWS, len(x) - i0)):
            i, begin = i0 + r, min(first[r], wide)
            state, value, tangent = u[r][begin:wide], k[r][begin:wide], w[r][begin:wide]
            own, others, start, stop = tables[0][:, i], tables[1], j0 + begin, j0 + wide
            if kind == PLAIN:
                _plain_row(state, value, tangent, forms[0], layers)
            elif kind == BIASED:
                _biased_row(state, value, tangent, own, others, start, stop, forms)
            elif kind == JUMP:
                _jump_row(state, value, tangent, own, others, start, stop, forms)
            else:
                squares = pair[4][i], pair[5]
                _erf_row(state, value, tangent, squares, own, others, start, stop, forms)
            for t in range(state.size):
                tangent[t] += readout * value[t]
        keep(k, w, same, factors[0], factors[1], i0, j0, first, job)
