"""What the calculus claims of an output, and whether networks of two widths contradict it.

A test is made of two statistics (a mean and a median, or a deviation and a quartile range), and a
claim is doubted only where both say so: of heavy tails the first alone is not to be trusted, of
mixtures the second. Biases of finite width shrink with the width; what does not shrink is no bias.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tests.fuzz.networks import Data, Values
from tpcalc.results import Estimate

__all__ = ["Claim", "Heavy", "Number", "Pair", "Size", "Zero", "doubt", "paired"]

Statistic = Callable[[Values], float]
DRIFT = 0.12  # of slopes between finite widths
SHRINKS = 0.85  # a bias of n^(-1/4) falls to 0.71 over a factor of 4 in the width
TINY = 1e-10  # rounding


@dataclass(frozen=True)
class Size:
    """The output is of size n^power, or (``upper``) at most of it, or (``lower``) at least.

    Args:
        power: The power.
        upper: Whether it is an upper bound.
        lower: Whether it is a lower bound.
        drift: By how much slopes between finite sizes may be off.
    """

    power: float
    upper: bool
    lower: bool = False
    drift: float = DRIFT


@dataclass(frozen=True)
class Zero:
    """The output is identically 0."""


@dataclass(frozen=True)
class Heavy:
    """The output has a mean square, which by construction it has not."""


@dataclass(frozen=True)
class Number:
    """The output over n^power tends to a number (of a vector: a moment of a coordinate).

    Args:
        power: The power of n.
        value: The number; of a random scalar its mean and its deviation.
        moment: 1, or 2 for the mean square of a coordinate of a vector.
        vector: Whether it is an average over the coordinates, networks and coordinates alike.
    """

    power: float
    value: Estimate
    moment: int = 1
    vector: bool = False


Claim = Size | Zero | Heavy | Number


Pair = tuple[Data, Data]  # of a small and a large width


def paired(
    found: Mapping[int, Sequence[Mapping[str, tuple[float, float]]]], prefix: str = ""
) -> dict[str, Pair]:
    """For each name what networks are at a small and at a large size, of networks of both."""
    made = {}
    for name in next(iter(found.values()))[0]:
        small, large = (
            Data(size, *np.array([one[name] for one in networks]).T)
            for size, networks in found.items()
        )
        made[prefix + name] = small, large
    return made


def doubt(
    claim: Claim, small: Data, large: Data, z: float, before: Pair | None = None
) -> str | None:
    """What speaks against a claim, None if nothing does.

    Args:
        claim: The claim.
        small: What networks are at one width.
        large: At a larger one.
        z: The standard errors that count.
        before: The same at smaller widths.
    """
    if not all(np.isfinite(d.second).all() and np.isfinite(d.first).all() for d in (small, large)):
        return None  # outside of floating point: nothing is known
    if isinstance(claim, Heavy):
        return "there is no mean square, and no word of it"
    if isinstance(claim, Zero):
        size = math.sqrt(float(np.max(large.second)))
        return None if size < 1e-6 else f"identically 0, but of size {size:.3g}"
    if isinstance(claim, Size):
        return _size(claim, small, large, z, before)
    return _number(claim, small, large, z)


def _error(values: Values, of: Statistic, rng: np.random.Generator) -> float:
    """The standard error of a statistic, by the bootstrap."""
    picks = rng.integers(0, len(values), (200, len(values)))
    return float(np.std([of(values[pick]) for pick in picks]))


def _log_rms(squares: Values) -> float:
    return 0.5 * math.log(max(float(np.mean(squares)), 1e-300))


def _log_median(squares: Values) -> float:
    return 0.5 * math.log(max(float(np.median(squares)), 1e-300))


def _slope(of: Statistic, small: Data, large: Data) -> tuple[float, float]:
    rng, a, b = np.random.default_rng(0), small.second, large.second
    length = math.log(large.width / small.width)
    error = math.hypot(_error(a, of, rng), _error(b, of, rng))
    return (of(b) - of(a)) / length, error / length


def _size(claim: Size, small: Data, large: Data, z: float, before: Pair | None) -> str | None:
    a, b = small.second, large.second
    if float(np.mean(b)) < TINY**2:  # rounding has no slope
        gone = not claim.upper and large.width**claim.power > 1e-4
        return "0 within rounding" if gone else None
    statistics: list[Statistic] = [_log_rms]
    if float(np.median(a)) > TINY**2 and float(np.median(b)) > TINY**2:
        statistics.append(_log_median)
    over, under, texts = [], [], []
    for of, times in zip(statistics, (z, z - 2), strict=False):
        slope, error = _slope(of, small, large)
        off, slack = slope - claim.power, times * error + claim.drift
        earlier = _slope(of, *before)[0] - claim.power if before else 0.0
        nearer = abs(off) < SHRINKS * abs(earlier)  # it may tend there
        over.append(off > slack and not nearer)
        under.append(off < -slack and not nearer)
        texts.append(f"{slope:.3f} +- {error:.3f}")
    if (all(over) and not claim.lower) or (all(under) and not claim.upper):
        how = "O" if claim.upper else "Omega" if claim.lower else "Theta"
        return f"{how}(n^{claim.power:g}), but slopes {' and '.join(texts)}"
    return None


def _number(claim: Number, small: Data, large: Data, z: float) -> str | None:
    parts = [
        (d.first if claim.moment == 1 else d.second) * d.width ** (-claim.power * claim.moment)
        for d in (small, large)
    ]
    found, places = claim.value, [np.mean, np.median]
    if not all(np.isfinite(part).all() for part in parts):
        return None
    if claim.vector and _moves(*parts):
        places = places[:1]  # random in the limit: the average over networks alone is claimed
    far = _far(places, found, parts, z)
    if all(far):
        return f"{found.value:.5g} +- {found.stderr:.1g}, but {' and '.join(map(str, far))}"
    if claim.vector:
        return None
    widths: list[Statistic] = [np.std, _quartiles]
    if found.std is not None:
        far = _far(widths, found, parts, z)
        return f"sd {found.std:.4g}, but {' and '.join(map(str, far))}" if all(far) else None
    if _moves(*parts) and float(np.std(parts[1])) > 5 * found.stderr:
        both = [f"{of(part):.4g}" for of in widths for part in parts]
        return f"{found.value:.5g} and not random, but deviations {', '.join(both)}"
    return None


def _far(
    statistics: list[Statistic], found: Estimate, parts: list[Values], z: float
) -> list[str | None]:
    """What is off by z errors: of the second statistic fewer will do, it has to agree only."""
    return [
        _off(of, *_said(found, of), *parts, times)
        for of, times in zip(statistics, (z, z - 2), strict=False)
    ]


def _said(found: Estimate, of: Statistic) -> tuple[float, float]:
    """What an estimate says of a statistic over networks, and its error."""
    if found.draws and found.std is not None and of is not np.mean:
        draws = np.array(found.draws)
        return float(of(draws)), _error(draws, of, np.random.default_rng(0))
    if of in (np.std, _quartiles):
        return found.std or 0.0, 0.0
    return found.value, found.stderr


def _quartiles(values: Values) -> float:
    """The quartile range, as the deviation of the Gaussian that has it."""
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low) / 1.34898


def _off(of: Statistic, value: float, error: float, a: Values, b: Values, z: float) -> str | None:
    """How far a statistic is from a value, unless it is near it or gets nearer."""
    rng = np.random.default_rng(0)
    before, after = float(of(a)) - value, float(of(b)) - value
    spread = math.hypot(_error(b, of, rng), error)
    near = abs(after) <= z * spread + 1e-9 * max(abs(value), 1.0)
    if near or abs(after) < SHRINKS * abs(before):
        return None
    return f"{after + value:.5g} +- {spread:.2g}"


def _moves(a: Values, b: Values) -> bool:
    """Whether values differ from network to network as much at the larger width."""
    if float(np.std(b)) < TINY:
        return False
    return all(
        of(a) > TINY and of(b) > 0.8 * of(a) and of(b) > 1e-7 * abs(float(np.mean(b)))
        for of in (np.std, _quartiles)
    )
