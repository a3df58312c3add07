"""How a parameter starts, as a function of the width: read, declared, or fitted to draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor, isclose, sqrt
from typing import Any

import numpy as np

from tpcalc.errors import ScaleError, StudyError
from tpcalc.networks.tracer import scaled
from tpcalc.torch.building import Build
from tpcalc.torch.draws import CONSTANT, FIXED, UNSET, Draw
from tpcalc.torch.powers import Scaling, scaling

GRID = 4  # the denominator of powers that are fitted
SURE = 5  # standard errors around a fitted number
WRONG = 8  # standard errors that no draw lies away from its law
LEAST = 0.01  # the least standard error of a fitted power: small widths have further terms
SEEN = 100_000  # entries at most that are looked at beside a law
SEEDS = 10  # of modules whose inits are fitted
ZERO = Scaling(Fraction(0))
Far = Callable[[], Mapping[int, Build]]


@dataclass(frozen=True)
class Init:
    """How the entries of a parameter are drawn, as a function of the width."""

    mean: Scaling  # their mean
    std: Scaling  # their standard deviation; for an orthogonal matrix too, it is that of one entry
    # A word: zero, constant, normal, uniform, truncated normal, orthogonal, identity, fixed
    # (numbers that no seed changes) or random (a law that is not known).
    law: str
    how: str  # whether it was read, fitted or declared
    line: str = ""  # the user's line that wrote it

    @property
    def text(self) -> str:
        """In words: ``"uniform, std 0.577 n^(-1/2)"``."""
        mean = f", mean {self.mean.text}" if self.mean.number else ""
        if not self.std.number:
            return f"{self.law}{mean.removeprefix(', mean')}"
        return f"{self.law}, std {self.std.text}{mean}"


def sample(tensor: Any) -> tuple[float, float]:
    """The mean of the entries of a tensor, and their deviation from it."""
    values = tensor.detach().double().numpy()
    alike = values.min() == values.max()
    return (float(values.flat[0]), 0.0) if alike else (float(values.mean()), float(values.std()))


def undeclared(message: str, name: str, where: str) -> StudyError:
    """What to answer where an init is needed that was not found."""
    return StudyError(message, where=where, hint=f'Declare it: init={{"{name}": "n^(-1/2)"}}.')


def declared(value: Any, name: str, found: Any) -> Init:
    """An init that the user states: the deviation, of mean 0."""
    number, power = scaled(value, f"the init of {name}")
    law = found.law if isinstance(found, Init) and found.std.number else "normal"
    std = Scaling(number, power.constant or Fraction(0))
    return Init(ZERO, std, law if number else "zero", "declared")


def read(
    name: str, builds: Mapping[int, Build], again: Build, far: Far, notes: list[str]
) -> Init | None:
    """The init that was followed; None where it was not, and draws are to be fitted."""
    least, most = min(builds), max(builds)
    where = builds[least].line(name)
    pieces = {n: _believed(one, name) for n, one in builds.items()}
    laws = {tuple(draw.law if draw else "" for _, draw in one) for one in pieces.values()}
    words = {word for one in laws for word in one}
    if UNSET in words:
        raise undeclared(f"{name} is never written: it holds what was in memory.", name, where)
    if len(laws) > 1 or words & {"", FIXED}:
        repeated = again.tensors[name].equal(builds[least].tensors[name])
        if not repeated or not words <= {FIXED, CONSTANT}:
            return None
        seen = {n: sample(one.tensors[name]) for n, one in builds.items()}
        means, stds = ({n: one[index] for n, one in seen.items()} for index in (0, 1))
        powers = [_tends(means, "mean", name, where), _tends(stds, "std", name, where)]
        return _init(powers, FIXED, where)
    parts = []
    for index, (_, last) in enumerate(pieces[most]):
        found = {n: one[index][1] for n, one in pieces.items()}
        powers = [_power(found, key, name, index, far, where) for key in ("mean", "std")]
        parts.append(_init(powers, last.law if last else "", last.line if last else ""))
    sizes, before = ([size for size, _ in pieces[n]] for n in (most, least))
    # A part of zeros decides only where all else is a vanishing part.
    weights = [
        (size * sum(before) > old * sum(sizes) / 2 and part.law != "zero", size)
        for size, old, part in zip(sizes, before, parts, strict=True)
    ]
    main = parts[weights.index(max(weights))]
    notes += [
        f"{size} of {sum(sizes)} entries of {name} start apart ({part.text}; {part.line}): it is "
        f"read as its other part ({main.text})."
        for size, part in zip(sizes, parts, strict=True)
        if part.text != main.text
    ]
    return main


def _init(powers: Sequence[Scaling], law: str, line: str) -> Init:
    mean, std = powers
    plain = CONSTANT if mean.number else "zero"
    return Init(mean, std, law if std.number else plain, "read", line)


def _believed(build: Build, name: str) -> tuple[tuple[int, Draw | None], ...]:
    """What was followed, unless the entries tell that torch was passed by."""
    entries = build.tensors[name].flatten()
    seen = entries[:: 1 + len(entries) // SEEN]
    pieces, (mean, std) = build.pieces(name), sample(seen)
    draw = pieces[0][1]
    if len(pieces) > 1 or draw is None or draw.law in (FIXED, UNSET):
        return pieces
    slack = WRONG * draw.std / sqrt(len(seen)) + 0.01 * abs(draw.mean)  # half precision rounds
    moved = mean - draw.mean
    close = abs(moved) <= slack and abs(sqrt(std**2 + moved**2) - draw.std) <= slack
    return pieces if close else ((len(entries), Draw(FIXED)),)


def _tends(values: Mapping[int, float], key: str, name: str, where: str) -> Scaling:
    try:
        return scaling(values, f"the {key} of {name}")
    except ScaleError as error:
        raise undeclared(error.message, name, where) from error


def _power(
    draws: Mapping[int, Draw | None], key: str, name: str, index: int, far: Far, where: str
) -> Scaling:
    """A number by small widths, and by large ones where those show no power."""
    values = {n: getattr(draw, key) for n, draw in draws.items()}
    with suppress(ScaleError):
        found = scaling(values, name)
        if all(isclose(found.at(n), values[n], rel_tol=1e-6) for n in values):
            return found
    try:
        values = {n: getattr(one.pieces(name)[index][1], key) for n, one in far().items()}
    except (StudyError, AttributeError, IndexError) as error:
        small = f"the {key} of {name} is no power of n at widths {tuple(draws)}"
        words = f"{small}, and large ones cannot be followed on fake tensors: {error}"
        raise undeclared(words, name, where) from error
    return _tends(values, key, name, where)


def independent(tensor: Any) -> bool:
    """Whether entries look drawn on their own: few are equal, and the matrix has no low rank."""
    values = tensor.detach().double().numpy()
    rows = (values - values.mean()).reshape(len(values) if values.ndim else 1, -1)
    if np.unique(abs(values)).size < 0.9 * values.size:
        return False
    if min(rows.shape) < 8:
        return True
    # Of independent entries the fourth power of the singular values has this mean.
    tail = ((rows / rows.std()) ** 4).mean()
    expected = rows.size * rows.var() ** 2 * (sum(rows.shape) - 2 + tail)
    return bool(abs(((rows @ rows.T) ** 2).sum() / expected - 1) < 0.2)


def fitted(draws: Any, builds: Mapping[int, Build], name: str) -> Init:
    """The init of which draws alone are known, where they leave one power."""
    where, last = builds[min(builds)].line(name), builds[max(builds)].tensors[name]
    what = f"{name}: init exponent not identified from {last.numel()} entries"
    if (draws == draws[0]).all():
        raise undeclared(f"{what}: make seeds torch, and draws the same every time.", name, where)
    if not independent(last):
        raise undeclared(f"{name}: its init is no independent draw of each entry.", name, where)
    counts = np.array([one.tensors[name].numel() for one in builds.values()])
    means, stds = draws[..., 0], draws[..., 1]
    std = _fit(stds, list(builds), 0.5 / counts, what, name, where)
    square, mean = (stds**2).mean(axis=0) / counts, means.mean(axis=0)
    errors = np.sqrt(np.maximum(square, means.var(axis=0, ddof=1)) / len(means))
    if (abs(mean) <= SURE * errors).all():
        return Init(ZERO, std, "random", "fitted", where)
    power = _fit(means, list(builds), square / mean**2, f"{what}, of the mean", name, where)
    return Init(power, std, "random", "fitted", where)


def _fit(
    values: Any, widths: Sequence[int], noise: Any, what: str, name: str, where: str
) -> Scaling:
    """The one power on the grid that is compatible with all seeds, and with their known noise."""
    sign = np.sign(values[0, 0])
    if not (values * sign > 0).all():
        raise undeclared(f"{what}: they vanish or change their sign.", name, where)
    x, y = np.log(widths), np.log(values * sign)
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    slopes = y @ weights
    slope, spread = slopes.mean(), max(slopes.var(ddof=1), (weights**2 * noise).sum())
    error = max(LEAST, sqrt(spread / len(slopes)))
    ends = ceil(GRID * (slope - SURE * error)), floor(GRID * (slope + SURE * error))
    grid = [Fraction(step, GRID) for step in range(ends[1], ends[0] - 1, -1)]
    if len(grid) != 1:
        several = ", ".join(map(str, grid)) or f"no multiple of 1/{GRID}"
        told = f"{slope:.2f} ± {error:.2f} is compatible with {several}"
        raise undeclared(f"{what} ({told}).", name, where)
    return Scaling(float(sign * exp((y - float(grid[0]) * x).mean())), grid[0])
