"""``regularity``: what weights along the depth are, and which power of 1/L suits them.

Sums over m blocks of numbers with the autocovariance c are of variance V(m) = sum over |k| < m of
(m - |k|) c_k, which goes like m^(2H): of independent numbers m, of fractional noise m^(2H), of
continuous functions m^2 on short scales. Differences of numbers tell the last from the others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.doors.numbers import exact
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.finite.paths import draw_paths
from tpcalc.networks.architectures.resnet import ResNet
from tpcalc.program.along import FRESH, check_autocovariance
from tpcalc.questions.depth.check import critical_powers, verdict_at
from tpcalc.recursions.start import Displacement, Start
from tpcalc.results import Estimate, Method, Regularity, ScaleRow
from tpcalc.results.tables import provenance

LEAST = 16  # numbers along the depth below which no exponent is told
GROUPS = 24  # of sequences, for the error
DRAWS = 48  # of fractional noise, where there are too few sequences for that
MOST = 512  # sequences of such a draw
SURE = 3.0  # standard errors
STEP = Fraction(1, 100)
RES3 = ResNet("L", "relu", nonlin="between", layers=2)
SHORT = (
    "neighbours are correlated over a few blocks (short memory), and long sums grow like those of "
    "independent blocks, which decides in more blocks"
)
EITHER = (
    "a memory of some blocks, however many there are, is not excluded: of such weights the power "
    "is 1/2"
)
STACKED = (
    "Weights are numbers along the depth, shape (L, ...): "
    "np.stack([block.weight.detach().numpy() for block in blocks])."
)
MEMORY = 16  # in a depth at least, before it is called short
COARSE = (
    "long sums grow faster than short ones: the power is that of the long ones, which decide in "
    "more blocks"
)
ONE_DEPTH = "a law of L is told from one L: it holds as long as deeper networks continue it"
FEW = (
    "few sequences: errors are those of independent sequences of fractional noise of this exponent"
)
APART = 0.05  # of exponents: what should be told from the nearest law
UNSURE = (
    "the exponent lies between {:.2f} and {:.2f}: laws there are not told from the nearest one, "
    "and the power is no surer than that"
)
SPREAD = "errors are from the spread over groups of sequences, which are taken to be independent"


def regularity(
    weights: Any = None,
    *,
    autocovariance: Sequence[float] | None = None,
    sequences: int = 1,
    network: ResNet | None = None,
    alphas: Sequence[Fraction | float | str] = ("1/2", "1"),
    seed: int = 0,
) -> Regularity:
    """How weights depend on each other along the depth, and which power of 1/L suits them.

    Args:
        weights: Numbers along the depth, shape (L, ...): a matrix of each block, say, of a network
            that was trained. They are taken as they are: with mean 0 over all sequences.
        autocovariance: In place of them c_0, c_1, ..., c_(L-1), each an average over its pairs.
        sequences: How many independent sequences the latter are an average of, at least 1.
        network: A network of L blocks, whose critical powers are told; by default res-3: relu
            between two matrices.
        alphas: Powers of 1/L that are told besides.
        seed: Of draws, where there are few sequences.

    Returns:
        Exponents with their errors, the nearest law along the depth, the critical powers read from
        the network's program, and displacements at this L with this autocovariance.

    Raises:
        UsageError: Fewer than 16 blocks, numbers that are masked, not real or not finite, or all 0.
        EvaluationError: No sequences of so many numbers have such an autocovariance.

    Source: Marion, Fermanian, Biau, Vert, Scaling ResNets, section 4: the critical power is the
        regularity of the weights; exponents derived (docs/theory/depth.md).

    Example:
        >>> from tpcalc.finite.paths import draw_paths
        >>> noise = draw_paths("fgn(4/5)", 1000, 64, np.random.default_rng(0)).T  # (L, sequences)
        >>> found = regularity(noise)
        >>> found.kind, abs(found.hurst.z(0.8)) < 4, found.critical[0] == found.alpha
        ('persistent', True, True)
    """
    started = time.perf_counter()
    asked = [exact(one, what="alpha") for one in checks.sequence(alphas, "alphas")]
    average = checks.whole(sequences, "sequences", least=1)
    seed = checks.seed(seed)
    network = RES3 if network is None else checks.of_type(network, ResNet, "network")
    if (weights is None) == (autocovariance is None):
        raise UsageError("weights or an autocovariance: one of them is given.")
    if weights is not None and average > 1:
        raise UsageError("sequences are those of an autocovariance; weights are counted.")
    asks = ("autocovariance", autocovariance) if weights is None else ("weights", weights)
    given = _numbers(*asks)
    digest = blake2b(given.tobytes(), digest_size=8).hexdigest()
    # No answer depends on a common factor, and squares of large numbers would leave the range.
    table = np.ldexp(given, -np.frexp(np.abs(given).max())[1])
    if weights is not None:
        depth, count = table.shape
        few = count < 2 * GROUPS
        parts = np.array_split(table, 1 if few else GROUPS, axis=1)
        shares = np.array([part.shape[1] / count for part in parts])
        groups = [_curves(part) for part in parts]
        curves = _mixed(groups, shares)
        out = np.eye(len(parts), dtype=bool)
        rest = [] if few else [_mixed(groups, np.where(one, 0.0, shares)) for one in out]
    else:
        row = table.ravel()
        depth, count, few, rest = len(row), average, True, []
        # What averages over pairs are once all sums are divided by the same length.
        shown = f"{', '.join(f'{one:g}' for one in given.ravel()[:3])}, ..."
        check_autocovariance(row * np.arange(depth, 0, -1), shown, depth, endless=True)
        curves = _from_row(row)
    variance = curves[0][0]
    if not variance > 0:
        raise UsageError("all weights are 0.", hint="Give those of a block, before and after.")
    own = _exponents(curves)
    if few:
        hurst = min(max(own[0], 0.02), 0.98)
        generator, drawn = np.random.default_rng(seed), min(count, MOST)
        near = [
            _exponents(_curves(draw_paths(f"fgn({hurst:.3f})", depth, drawn, generator).T))
            for _ in range(DRAWS)
        ]
        errors = np.std(near, axis=0, ddof=1) * np.sqrt(drawn / count)
    else:  # the jackknife
        left = np.array([_exponents(one) for one in rest])
        errors = np.std(left, axis=0) * np.sqrt(len(left) - 1)
    found = [
        Estimate(float(value), float(error), Method.FINITE, samples=count)
        for value, error in zip(own, errors, strict=True)
    ]
    slope, smooth, local = found[0], found[1], found[3:]
    coarse = local[-1]
    correlation = curves[2] / curves[2][0]
    fits = _fits_memory(found[2], correlation)
    short = fits and _differ(slope, coarse) and abs(coarse.value - 0.5) < abs(slope.value - 0.5)
    gap = curves[1][0] / (2 * variance)
    kind, law, exponent = _kind(slope, coarse, smooth, gap, depth, short)
    network = replace(network, hurst=None, along=law)
    critical = critical_powers(network)
    best = max(critical[:2])
    powers = sorted({best, *asked})
    rows = tuple(_row(network, power, correlation) for power in powers)
    notes = [ONE_DEPTH, FEW if few else SPREAD]
    if short:
        notes.insert(0, SHORT)
    elif exponent is coarse and coarse.value > slope.value:
        notes.insert(0, COARSE)
    elif {"persistent": exponent is coarse or fits, "smooth": _is_half(coarse)}.get(kind):
        notes.insert(0, EITHER)
    if not short and kind != "smooth" and (width := SURE * exponent.stderr) > APART:
        notes.insert(0, UNSURE.format(exponent.value - width, exponent.value + width))
    made = provenance(digest, seed if few else None, {}, time.perf_counter() - started)
    return Regularity(
        depth,
        count,
        kind,
        slope,
        coarse,
        smooth,
        tuple(zip(_lags(depth)[:-1], local, strict=True)),
        tuple(map(float, correlation)),
        law,
        (str(critical[0]), str(critical[1])),
        str(best),
        rows,
        made,
        tuple(notes),
    )


def _differ(one: Estimate, other: Estimate) -> bool:
    errors = float(np.hypot(one.stderr, other.stderr))
    return abs(one.value - other.value) > SURE * errors


def _is_half(one: Estimate) -> bool:
    return abs(one.value - 0.5) <= SURE * one.stderr


def _fits_memory(excess: Estimate, correlation: Array) -> bool:
    """Whether the longest sums are those of a correlation a phi^lag, gone in a share of L."""
    kept = 1 - abs(_ratio(correlation))
    return abs(excess.value) <= SURE * excess.stderr and kept * len(correlation) > MEMORY


def _ratio(row: Array) -> float:
    """The phi of a correlation a phi^lag with these numbers at the lags 1 and 2."""
    return float(np.clip(row[2] / row[1], -1, 1)) if row[1] else 0.0


def _kind(
    hurst: Estimate, coarse: Estimate, smooth: Estimate, gap: float, depth: int, short: bool
) -> tuple[str, str, Estimate]:
    """What it is, the nearest law, and the exponent that decides."""
    if smooth.value - 2 * smooth.stderr > 0.5:
        # Neighbours of exp(-t^2 / (2 ell^2)) are correlated by 1 - 1 / (2 ell^2 L^2).
        ell = Fraction(1 / (depth * np.sqrt(2 * max(gap, 1e-12)))).limit_denominator(100)
        return "smooth", f"rbf({max(ell, Fraction(1, 100))})", hurst
    one = coarse if _differ(hurst, coarse) else hurst
    if short or _is_half(one):
        return "independent", FRESH, one
    exponent = min(max(Fraction(round(one.value / STEP)) * STEP, STEP), Fraction(1))
    return ("persistent" if exponent > Fraction(1, 2) else "rough"), f"fgn({exponent})", one


def _row(network: ResNet, power: Fraction, correlation: Array) -> ScaleRow:
    own = replace(network, alpha=power)
    verdict = verdict_at(network, power)
    moved: list[Estimate | None] = [None, None]
    try:
        at = _with(own, correlation)
        if at is not None:
            moved = [_root(at.stream), _root(at.gradient)]
    except EvaluationError:  # beyond the range of floating point
        pass
    return ScaleRow(str(power), verdict.outputs, verdict.gradients, moved[0], moved[1])


def _with(network: ResNet, correlation: Array) -> Displacement | None:
    """Displacements with this autocorrelation in place of a law; None of another shape."""
    from tpcalc.questions.depth.shape import Unlike, block_at_start, start_of

    try:
        start: Start = start_of(block_at_start(network))
    except Unlike:
        return None
    law = f"given({', '.join(f'{c:.12f}' for c in [1.0, *correlation[1:]])})"
    outer, inner = (law if one is not None else None for one in (start.outer, start.inner))
    return replace(start, outer=outer, inner=inner).at(len(correlation))


def _root(square: Estimate) -> Estimate:
    value = float(np.sqrt(max(square.value, 0.0)))
    error = square.stderr / (2 * value) if value else float(np.sqrt(square.stderr))
    return Estimate(value, error, square.method)


def _numbers(name: str, value: Any) -> Array:
    """Shape (L, sequences)."""
    table = checks.reals(value, name, hint=STACKED).astype(np.float64)
    if table.ndim == 0 or len(table) < LEAST:
        raise UsageError(
            f"{len(table) if table.ndim else 1} blocks are too few for an exponent.",
            hint=f"At least {LEAST}; the first axis is the depth.",
        )
    if not table.size or not np.isfinite(table).all():
        raise UsageError(f"{name} has no numbers, or some that are not finite.")
    return table.reshape(len(table), -1)


def _lags(depth: int) -> list[int]:
    """1, 2, 4, ... to a quarter of the depth."""
    return [2**k for k in range(int(np.log2(depth / 4)) + 1)]


Curves = tuple[Array, Array, Array]


def _curves(table: Array) -> Curves:
    """V at dyadic m, mean squares of differences at 1 and 2, the autocovariance."""
    depth, count = table.shape
    path = np.concatenate([np.zeros((1, count)), table.cumsum(axis=0)])
    sums = [np.square(path[m:] - path[:-m]).mean() for m in _lags(depth)]
    gaps = [np.square(table[m:] - table[:-m]).mean() for m in (1, 2)]
    size = 2 * depth
    power = np.zeros(depth + 1)
    for part in np.array_split(np.arange(count), max(1, count * depth // 2**20)):
        power += np.square(np.abs(np.fft.rfft(table[:, part], size, axis=0))).sum(axis=1)
    row = np.fft.irfft(power, size)[:depth] / (count * np.arange(depth, 0, -1))
    return np.array(sums), np.array(gaps), row


def _mixed(groups: Sequence[Curves], shares: Array) -> Curves:
    """Of several groups of sequences together."""
    parts = zip(*groups, strict=True)
    sums, gaps, rows = (np.average(part, axis=0, weights=shares) for part in parts)
    return sums, gaps, rows


def _from_row(row: Array) -> Curves:
    """The same from an autocovariance."""
    sums = [m * row[0] + 2 * ((m - np.arange(1, m)) * row[1:m]).sum() for m in _lags(len(row))]
    gaps = [2 * (row[0] - row[m]) for m in (1, 2)]
    return np.array(sums), np.array(gaps), row


def _exponents(curves: Curves) -> list[float]:
    """H by least squares, the smoothness, the last H less that of a phi^lag, H scale by scale."""
    sums, gaps, row = curves
    tiny = np.finfo(float).tiny
    logs = np.log2(np.maximum(sums, tiny))
    # As many independent sums as L / m.
    places = np.arange(len(logs))
    hurst = np.polyfit(places, logs, 1, w=np.sqrt(0.5**places))[0] / 2
    smooth = 0.5 * np.log2(max(gaps[1], tiny) / max(gaps[0], tiny))
    local = np.diff(logs) / 2
    short = _from_row(np.array([row[0], *(row[1] * _ratio(row) ** np.arange(len(row) - 1))]))[0]
    excess = local[-1] - 0.5 * np.log2(max(short[-1], tiny) / max(short[-2], tiny))
    return [float(hurst), float(smooth), float(excess), *map(float, local)]
