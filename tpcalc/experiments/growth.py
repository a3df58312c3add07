"""How far blocks carry a stream and its adjoint at the start: infinite width beside networks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, groupby, product

import numpy as np

from tpcalc.errors import EvaluationError, UsageError
from tpcalc.experiments.plans import Growth
from tpcalc.experiments.records import ANY, records, task_of
from tpcalc.finite.paths import draw_paths
from tpcalc.networks.architectures.resnet import ResNet
from tpcalc.program.along import along_of
from tpcalc.progress import Progress
from tpcalc.questions.depth.check import Critical, critical_powers
from tpcalc.questions.depth.regularity import regularity
from tpcalc.questions.depth.shape import Unlike, block_at_start, start_of
from tpcalc.questions.depth.simulate import NAMES, depth_simulate
from tpcalc.recursions.start import Start
from tpcalc.results import Agreement, CriticalRow, DepthGap, Estimate, Method, Ratio, WalkRow
from tpcalc.results.depth_sample import log10_of_root
from tpcalc.tasks.kept import Kept

OO, BEYOND = "oo", "-> oo"
CLOSE, SURE = 0.05, 5  # of decimal logarithms: what a finite width may add besides noise
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
POINTS = 256  # of a path that is shown


@dataclass
class GrowthRun:
    """The numbers of all laws, depths and widths."""

    network: ResNet  # a network of L blocks
    asked: Growth  # what is asked
    depths: tuple[int, ...]  # numbers of blocks
    widths: tuple[int, ...]  # widths of networks
    seeds: int  # networks of each
    seed: int  # the first seed
    lacking: list[tuple[str, str]] = field(default_factory=list)
    _critical: dict[str, Critical] = field(default_factory=dict)

    def own(self, law: str, alpha: str = "1") -> ResNet:
        """The network with a law along the depth and a power of 1/L."""
        return replace(own_law(self.network, law), alpha=Fraction(alpha))

    @property
    def critical(self) -> tuple[CriticalRow, ...]:
        """The powers of 1/L between explosion and identity, law by law."""
        rows = []
        for law in self.asked.along:
            self._critical[law] = found = critical_powers(self.own(law))
            side = "" if found.side is None else str(found.side)
            rows.append(CriticalRow(law, str(found.outputs), str(found.gradients), side))
        return tuple(rows)

    def rows(self, kept: Kept, progress: Progress) -> tuple[Ratio, ...]:
        """The ratios at infinite width, of networks, and of these their limit in the width."""
        asked = self.asked
        tasks = [
            task_of(GrowthRun.cell, f"{law}, L = {depth}, n = {width or OO}", law, depth, width)
            for law, depth, width in product(asked.along, self.depths, (0, *self.widths))
        ]
        made = records(tasks, kept, Ratio, DepthGap, shared=self, progress=progress, count=ANY)
        rows = [*chain(*made)]
        self.lacking += [(row.name, row.reason) for row in rows if isinstance(row, DepthGap)]
        found = [row for row in rows if isinstance(row, Ratio)]
        return tuple(row for row in (*found, *_extrapolated(found)) if row.name in asked.ratios)

    def cell(
        self, law: str, depth: int, width: int, progress: Progress
    ) -> Iterator[Ratio | DepthGap]:
        """The ratios of a law, a depth and a width."""
        return self._networks(law, depth, width, progress) if width else self._limit(law, depth)

    def _limit(self, law: str, depth: int) -> Iterator[Ratio | DepthGap]:
        for alpha in self.asked.alphas:
            network = self.own(law, alpha)
            try:
                start: Start = start_of(block_at_start(network))
                moves = start.along(depth, self.asked.places)
            except Unlike as reason:
                raise UsageError(
                    f"{network.words}: {reason}.", hint="Blocks x + a L^(-alpha) V phi(W x)."
                ) from None
            except EvaluationError as error:
                name = f"{law}, alpha = {alpha}, L = {depth}"
                yield DepthGap(str(depth), error.message, name)
                continue
            for place, moved in zip(self.asked.places, moves, strict=True):
                for name, one in zip(NAMES, moved, strict=True):
                    value = log10_of_root(one)
                    if value is not None:  # nothing moves in front of the first block
                        yield Ratio(law, alpha, str(depth), OO, name, place, value)

    def _networks(self, law: str, depth: int, width: int, progress: Progress) -> Iterator[Ratio]:
        found = depth_simulate(
            self.own(law),
            depth,
            width,
            self.seeds,
            alphas=self.asked.alphas,
            seed=self.seed,
            places=self.asked.places,
            progress=lambda share: progress(share, ""),
        )
        for alpha, shown in zip(self.asked.alphas, found.alphas, strict=True):
            for place in found.places:
                for name in found.names:
                    logs = np.array(found.values(name, shown, place)) / math.log(10)
                    if not np.isfinite(logs).all():
                        continue
                    mean = found.log10(name, shown, place)
                    value = replace(mean, std=mean.stderr * math.sqrt(mean.samples))
                    yield Ratio(
                        law, alpha, str(depth), str(width), name, place, value, _levels(10**logs)
                    )

    def agreements(self, rows: Sequence[Ratio]) -> tuple[Agreement, ...]:
        """Networks beside infinite width, at the end of all blocks."""
        if not self.widths:
            return ()
        ends = [row for row in rows if row.place == 1.0]
        known = {(r.along, r.alpha, r.depth, r.width, r.name): r.value for r in ends}
        found = []
        for row in ends:
            if row.width == OO:
                own = (row.along, row.alpha, row.depth)
                narrow = known[*own, str(min(self.widths)), row.name]
                beyond = known.get((*own, BEYOND, row.name))
                found.append(self._agreement(row, narrow, beyond))
        return tuple(found)

    def _agreement(self, row: Ratio, narrow: Estimate, beyond: Estimate | None) -> Agreement:
        critical = self._critical[row.along]
        adjoint, alpha = row.name.endswith("p"), Fraction(row.alpha)
        regime = critical.regime("gradients" if adjoint else "outputs", alpha)
        limit, networks, beside = row.value.value, narrow, "infinite width"
        lost, same = "", None
        if not math.isfinite(narrow.stderr):
            lost = "no number: one network has no error"
        elif adjoint and beyond is not None and regime != "unstable":
            networks, beside = beyond, "infinite width, networks by a line in 1/n"
        elif adjoint and critical.side is not None and regime != "unstable":
            if alpha < critical.side:
                lost = "no number: at a fixed width it explodes; give three widths"
            else:
                start = start_of(block_at_start(self.own(row.along, row.alpha)))
                square = 10 ** (2 * limit) + start.side(int(row.depth)) / min(self.widths)
                limit = math.log10(square) / 2
                beside = "infinite width with the term of size n^(-1/2)"
        if not lost:
            same = abs(networks.value - limit) <= CLOSE + SURE * networks.stderr
            if regime == "unstable":
                same, beside = same or (networks.value > 0) == (limit > 0), "the sign alone"
        return Agreement(
            row.along, row.alpha, row.depth, row.name, regime, limit, networks, lost or beside, same
        )


def own_law(network: ResNet, law: str) -> ResNet:
    """A network with a law along the depth; entries of another law than the Gaussian are fresh."""
    entries = network.law if along_of(law).fresh else "gaussian"
    return replace(network, along=law, hurst=None, law=entries)


def walks(asked: Growth, depth: int, seed: int) -> tuple[WalkRow, ...]:
    """Sequences of each law and the exponent that is measured of their sums."""
    rows = []
    for law in asked.along:
        own = along_of(law)
        table = draw_paths(law, depth, asked.walks, np.random.default_rng(seed)).T
        hurst = regularity(table, alphas=(), seed=seed).hurst
        expected = 0.5 if own.fresh else own.numbers[0] if own.row.name == "fgn" else None
        path = table[:, 0].cumsum() * float(depth) ** -(0.5 if expected is None else expected)
        shown = path[:: max(1, depth // POINTS)]
        rows.append(WalkRow(law, hurst, expected, tuple(map(float, shown))))
    return tuple(rows)


def _levels(ratios: np.ndarray) -> tuple[tuple[float, Estimate], ...]:
    """Quantiles, each with half the width of the interval of one binomial standard error."""
    count = len(ratios)
    found = []
    for p in LEVELS if count >= 20 else ():
        off = math.sqrt(p * (1 - p) / count)
        low, value, high = np.quantile(ratios, [max(p - off, 0.0), p, min(p + off, 1.0)])
        error = float(high - low) / 2
        found.append((p, Estimate(float(value), error, Method.FINITE, samples=count)))
    return tuple(found)


def _extrapolated(rows: Sequence[Ratio]) -> Iterator[Ratio]:
    """Of three widths or more the value of a line in 1/n at 0, by weighted least squares."""

    def place(row: Ratio) -> tuple[str, str, str, str, float]:
        return row.along, row.alpha, row.depth, row.name, row.place

    networks = sorted((row for row in rows if row.width != OO), key=place)
    for _, group in groupby(networks, place):
        own = list(group)
        if len(own) < 3 or not all(0 < row.value.stderr < math.inf for row in own):
            continue
        x, w = [1 / int(row.width) for row in own], [1 / row.value.stderr for row in own]
        line, cov = np.polyfit(x, [row.value.value for row in own], 1, w=w, cov="unscaled")
        made = Estimate(float(line[1]), math.sqrt(cov[1, 1]), Method.FINITE)
        yield replace(own[0], width=BEYOND, value=made, quantiles=())
