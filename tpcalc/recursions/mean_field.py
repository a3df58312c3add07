"""The limit at alpha = 1, gamma >= 0: features are functions of the first and last weights."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np
from scipy.interpolate import CubicHermiteSpline

from tpcalc.arrays import Array
from tpcalc.doors.budget import spend
from tpcalc.errors import EvaluationError
from tpcalc.functions import Fn, Var
from tpcalc.functions.tape import values
from tpcalc.integrals import rules
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.slopes import jumps, slope
from tpcalc.progress import Progress
from tpcalc.recursions.averages import Averages
from tpcalc.recursions.kets import Recursion
from tpcalc.recursions.panels import Panels
from tpcalc.recursions.run import largest
from tpcalc.recursions.trunk import ROUNDED, Trunk

LEVELS = ((6, 14, 36), (8, 18, 50))  # degrees in p, points of a weight, of one of many kets
TARGET = 1e-9  # which tables keep
MOST = 4_000_000
ROUNDS = 60
TURNS = 18.0  # radians for each standard deviation that a lattice tells apart
WIDEST = 8.0  # standard deviations that it covers
TABLE = 8.0  # and that tables of averages over the last Gaussian take
STEP = 0.01  # of these tables
HELD = 8  # arrays of all points that are held at once, besides two for each sample
PROBED, TYPICAL = 100_000, 6  # points that an estimate of the time takes, and rounds of a pass


@dataclass(frozen=True, eq=False)
class MeanField(Recursion):
    """A run at alpha = 1 in the limit; sample i = t B + b after sample."""

    trunk: Trunk  # the network and its run
    outputs: Array  # f, of shape (T, B, k)
    chi: Array  # the derivative of the loss by the outputs
    errors: Array  # relative, by step, as bounds takes them; by comparison with coarser rules
    _solved: _Solved

    def features(self, place: float = 1.0) -> Bounded:
        return self._answer(self._solved.kernel(self._solved.x, place), square=True)

    def gradients(self, place: float = 0.0) -> Bounded:
        return self._answer(self._solved.kernel(self._solved.d, place), square=True)

    def preactivations(self, place: float) -> Bounded:
        return self._answer(self._solved.preactivations(place), square=True)

    def distances(self, first: float, last: float) -> Bounded:
        return self._answer(self._solved.distances(first, last), square=True)


def mean_field(
    trunk: Trunk, passes: int | None = None, progress: Progress | None = None
) -> MeanField:
    """A run in the limit n -> infinity, then L -> infinity, at alpha = 1 and gamma >= 0.

    Preactivations of a block are independent of the features, but those of one block at different
    steps go together, and each moves with phi' of those before. So averages are over all of them
    at once: points grow like a power with the number of samples.

    Source: Tensor Programs VI, section F.2, with the joint law of preactivations and the term of
        W^T that are missing there.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> sin = lookup("sin").fn.expr
        >>> run = Trunk([1, 1], [2, 2], sin, 1, 0, multiplier=1.2, rates=0.5)
        >>> round(float(mean_field(run, passes=3).outputs[1, 0, 0]), 4)
        0.4538
    """
    count = 2 * trunk.steps if passes is None else passes
    moves = trunk.gamma <= 0 and bool(trunk.rates[: (count - 1) // 2].any())
    if trunk.alpha != 1 or (moves and trunk.gamma < 0):
        raise EvaluationError(
            f"alpha = 1, gamma >= 0 has a mean-field limit, not {trunk.alpha}, {trunk.gamma}.",
            hint="limit() has the others.",
        )
    phi = trunk.activation
    if moves and (jumps(phi, Var(0)) or jumps(slope(phi, Var(0)), Var(0))):
        raise EvaluationError(
            f"the mean-field limit of updates needs phi'', which {phi.text} does not have.",
            hint="Take a smooth activation.",
        )
    coarse, fine = runs = [_Solved(trunk, level) for level in LEVELS]
    order = product(range(count), range(trunk.batch))
    samples = [(index, index // 2 * trunk.batch + b) for index, b in order]
    plan = [(run, place, run.seconds(*place)) for run in runs for place in samples]
    total, past = sum(seconds for *_, seconds in plan), 0.0
    said = f"mean-field limit up to step {trunk.steps - 1}, about {total:.2g} s"
    for run, place, seconds in plan:
        if progress is not None:
            progress(past / total, said)
        run.follow(*place)
        past += seconds
    errors = np.full(trunk.steps, TARGET)
    for what, (one, two) in enumerate(zip(coarse.seen(), fine.seen(), strict=True)):
        gap, size = (largest(part, trunk.steps, what > 0) for part in (one - two, two))
        errors = np.maximum(errors, gap / np.maximum(size, TARGET))
    return MeanField(trunk, fine.outputs, fine.chi, errors, fine)


def _spanned(samples: Array) -> Array:
    """Inputs in coordinates of what they span: what is beyond moves nothing."""
    *_, sizes, axes = np.linalg.svd(samples, full_matrices=False)
    rank = int((sizes > ROUNDED * sizes.max()).sum())
    return samples if rank == samples.shape[1] else samples @ axes[:rank].T


def _grid(count: int, nodes: Array, weights: Array) -> tuple[Array, Array]:
    """Points and weights for so many independent Gaussians, by a rule for one."""
    if len(nodes) ** count > MOST:
        raise EvaluationError(
            f"the mean-field limit averages over {count} Gaussians at once, which is too many.",
            hint="Take fewer steps, samples, features or outputs; or alpha < 1.",
        )
    grid = np.array(list(product(nodes, repeat=count))).reshape(len(nodes) ** count, count)
    shares = [weights / weights.sum()] * count
    return grid, reduce(np.multiply.outer, shares, np.ones(1)).ravel()


def _lattice(points: int) -> tuple[Array, Array]:
    """The trapezoidal rule for one Gaussian: it tells quick turns better than that of Gauss."""
    # What is left out beyond is as small as what a turn so quick is taken for.
    reach = min((np.sqrt(TURNS**2 + 4 * np.pi * points) - TURNS) / 2, WIDEST)
    nodes = np.linspace(-reach, reach, points)
    return nodes, np.exp(-(nodes**2) / 2)


class _Solved:
    """The passes of a run, with rules of one size."""

    def __init__(self, trunk: Trunk, level: tuple[int, int, int]) -> None:
        order, points, self.inner = level
        self.trunk, self.panels = trunk, Panels(1, order)
        self.inputs = _spanned(trunk.samples)
        features = self.inputs.shape[1]
        self.kets = features + trunk.targets.shape[2]
        grid, self.mass = _grid(features + trunk.targets.shape[2], *rules.normal(points))
        self.first, self.last = grid[:, :features].T, grid[:, features:].T
        self.x = np.zeros((order + 1, trunk.count, len(grid)))
        self.d = np.zeros_like(self.x)
        self.outputs, self.chi = np.zeros_like(trunk.targets), np.zeros_like(trunk.targets)
        self.averages = Averages(trunk.activation)
        self.rates = trunk.updates(1) * (trunk.gamma == 0)
        self.slopes = [trunk.activation]

    def follow(self, index: int, i: int) -> None:
        """A pass of a sample."""
        self._backward(i) if index % 2 else self._forward(i)
        if not index % 2 and not (i + 1) % self.trunk.batch:
            self._read(index // 2)

    def seconds(self, index: int, i: int) -> float:
        """About what it takes, by its change at some of the points."""
        felt, some = len(self._felt(i)), copy(self)
        points = len(self.mass) * self._points(felt) ** felt
        spend(
            f"the average of step {index // 2} over {felt} samples at once",
            memory=8 * points * (2 * felt + HELD),
            hint="Take fewer steps, samples, features or outputs; or alpha < 1.",
        )
        every = max(points // PROBED, 1)
        some.mass, first, last = (part[..., ::every] for part in (self.mass, self.first, self.last))
        shape = (len(self.x), self.trunk.count, len(some.mass))
        some.x = np.broadcast_to(self.inputs @ first, shape)
        some.d = np.broadcast_to(last.sum(axis=0), shape)
        for _ in range(2):  # the first call compiles
            started = time.perf_counter()
            some._pulled(i, 0) if index % 2 else some._moved(i, 0)
        spent = time.perf_counter() - started
        return spent * len(self.mass) / len(some.mass) * len(self.x) * TYPICAL

    def seen(self) -> tuple[Array, ...]:
        """What rules are compared by."""
        return (
            self.outputs.reshape(len(self.outputs), -1),
            *(self.kernel(part, place) for part in (self.x, self.d) for place in (0.0, 0.5, 1.0)),
        )

    def kernel(self, kets: Array, place: float) -> Array:
        """Inner products of kets at p.

        Args:
            kets: Features or gradients.
            place: p.
        """
        return self._inner(self.panels.at(kets, place))

    def distances(self, first: float, last: float) -> Array:
        """The kernel of x(last) - x(first)."""
        return self._inner(self.panels.at(self.x, last) - self.panels.at(self.x, first))

    def preactivations(self, place: float) -> Array:
        """The kernel of preactivations at p."""
        count, nodes = self.trunk.count, len(self.x)
        found = np.zeros((nodes, count, count))
        for node, i in product(range(nodes), range(count)):
            felt = self._felt(i)
            for j in (*sorted({*range(i)} - {*felt}), i):
                samples, states, size, _, mass = self._states(i, node, (j,))
                for col in (*range(len(felt)), len(samples) - 1 - (j < i)):
                    value = self.mass @ (states[col] * states[-1]) @ mass
                    value += size**2 * (col == len(samples) - 1)
                    found[node, i, samples[col]] = found[node, samples[col], i] = value
        return self.panels.at(found, place)

    def _inner(self, kets: Array) -> Array:
        return (kets * self.mass) @ np.swapaxes(kets, -1, -2)

    def _earlier(self, sample: int) -> range:
        """Samples of the steps before that of one."""
        return range(sample // self.trunk.batch * self.trunk.batch)

    def _felt(self, sample: int) -> list[int]:
        """Those of them whose updates move preactivations of blocks."""
        return [j for j in self._earlier(sample) if self.rates[j]]

    def _forward(self, i: int) -> None:
        trunk, before = self.trunk, self._earlier(i)
        xi, low = self.inputs, len(before)
        rates, _ = trunk.ends(i // trunk.batch)
        start = xi[i] @ self.first - (xi[:low] @ xi[i] * rates) @ self.d[0, :low]
        self._repeated(self.x, i, start, self.panels.from_left(0), self._moved)

    def _backward(self, i: int) -> None:
        trunk, low = self.trunk, len(self._earlier(i))
        chi = self.chi.reshape(trunk.count, -1)
        _, rates = trunk.ends(i // trunk.batch)
        start = chi[i] @ self.last - (chi[:low] @ chi[i] * rates) @ self.x[-1, :low]
        self._repeated(self.d, i, start, self.panels.from_right(0), self._pulled)

    def _repeated(
        self,
        kets: Array,
        i: int,
        start: Array,
        integral: Array,
        change: Callable[[int, int], Array],
    ) -> None:
        kets[:, i] = start
        for _ in range(ROUNDS):
            by = np.stack([change(i, node) for node in range(len(kets))])
            moved = start + integral @ by
            gap = np.abs(moved - kets[:, i]).max()
            kets[:, i] = moved
            if not gap > 1e-12 * np.abs(moved).max():
                return

    def _read(self, step: int) -> None:
        trunk = self.trunk
        low, high = step * trunk.batch, (step + 1) * trunk.batch
        _, rates = trunk.ends(step)
        end = self.x[-1]
        found = (end[low:high] * self.mass) @ self.last.T
        chi = self.chi.reshape(trunk.count, -1)[:low]
        found -= self._inner(end[:high])[low:, :low] * rates @ chi
        self.outputs[step] = found if step else 0.0  # V is independent of the stream
        self.chi[step] = trunk.slope(self.outputs[step], trunk.targets[step])

    def _centred(self, values: Array) -> Array:
        return values - values @ self.mass if self.trunk.centred else values

    def _states(
        self, i: int, node: int, beside: tuple[int, ...] = ()
    ) -> tuple[list[int], list[Array], float, Array, Array]:
        """Preactivations of a sample and those before it, at all points; shares of these points.

        Others of its step come before it. The last is without the Gaussian that it alone has,
        whose size is given.
        """
        samples = [*self._felt(i), *(j for j in beside if j != i), i]
        kernel = self._inner(self.x[node, samples])
        count = len(samples) - 1
        grid, mass = _grid(count, *_lattice(self._points(count)))
        root = _root(kernel)
        fresh = grid @ root[:, :count].T
        found: list[Array] = []
        for row, sample in enumerate(samples):
            own = np.broadcast_to(fresh[:, row], (len(self.mass), len(mass)))
            for col in range(len(self._felt(sample))):
                other = samples[col]
                size = self.rates[other] * kernel[row, col]
                by = self._centred(self.d[node, other])[:, None]
                own = own - size * self._slope(1, found[col]) * by
            found.append(own)
        return samples, found, float(root[-1, -1]), kernel, mass

    def _slope(self, order: int, at: Array) -> Array:
        """A slope of phi; those of a phi with kinks are not asked for."""
        while len(self.slopes) <= order:
            self.slopes.append(slope(self.slopes[-1], Var(0)))
        found: Array = values(Fn(self.slopes[order], 1), np.ascontiguousarray(at))
        return found

    def _mean(self, order: int, centre: Array, size: float) -> Array:
        """E of a slope of phi, the Gaussian of the last preactivation averaged over by a table."""
        if not centre.any():
            return np.full_like(centre, self.averages.mean(np.array([size**2]), order).value[0])
        if size == 0.0:
            return self._slope(order, centre)
        low, high = float(centre.min()), float(centre.max())
        places = np.linspace(low, high + STEP, 2 + int((high - low) / STEP))
        z = np.linspace(-TABLE, TABLE, 1 + int(8 * TABLE))
        weights = np.exp(-(z**2) / 2)
        at = places[:, None] + size * z
        values, rise = (self._slope(k, at) @ (weights / weights.sum()) for k in (order, order + 1))
        return np.asarray(CubicHermiteSpline(places, values, rise)(centre))

    def _points(self, count: int) -> int:
        """Points for each of so many Gaussians: fewer where there are many.

        Preactivations are functions of functions of them, which turn quickly. Where there is not
        room for all points, coarser rules keep their share, so that they stay the coarser ones.
        """
        _, most, inner = LEVELS[-1]
        room = (MOST / most**self.kets) ** (1 / max(count, 1))
        return max(min(self.inner * (2 if count < 2 else 1), int(room * self.inner / inner)), 6)

    def _moved(self, i: int, node: int) -> Array:
        """The change of x with p."""
        _, states, size, _, mass = self._states(i, node)
        return self.trunk.multiplier * self._centred(self._mean(0, states[-1], size) @ mass)

    def _pulled(self, i: int, node: int) -> Array:
        """The change of dx against the direction of p."""
        samples, states, size, kernel, mass = self._states(i, node)
        slopes, bends = (
            [*(self._slope(order, one) for one in states[:-1]), self._mean(order, states[-1], size)]
            for order in (1, 2)
        )
        kets = [self._centred(self.d[node, sample])[:, None] for sample in samples]
        last = len(samples) - 1
        pull = np.zeros(len(samples))
        for col, sample in enumerate(samples):
            # How far the last preactivation moves with what is fresh in this one.
            moves: dict[int, Array] = {col: np.ones_like(states[col])}
            for row in range(col + 1, len(samples)):
                moved = np.zeros_like(states[col])
                for mid in range(col, len(self._felt(samples[row]))):
                    share = self.rates[samples[mid]] * kernel[row, mid]
                    moved = moved - share * bends[mid] * kets[mid] * moves[mid]
                moves[row] = moved
            pull[col] = self.mass @ (bends[last] * kets[last] * moves[last]) @ mass
            if col < last:
                joint = slopes[col] * kets[col] * slopes[last] * kets[last]
                pull[col] -= self.rates[sample] * (self.mass @ joint @ mass)
        return self.trunk.multiplier * (pull @ self.x[node, samples])


def _root(kernel: Array) -> Array:
    """A lower triangular root of a covariance, with zeros where a Gaussian follows from others."""
    size = len(kernel)
    root = np.zeros((size, size))
    for i in range(size):
        for j in range(i + 1):
            left = kernel[i, j] - root[i, :j] @ root[j, :j]
            if i == j:
                root[i, i] = np.sqrt(left) if left > 1e-12 * kernel[i, i] else 0.0
            elif root[j, j] > 0:
                root[i, j] = left / root[j, j]
    return root
