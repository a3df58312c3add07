"""What networks of many blocks do along their depth: profiles, best rates, reference numbers."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.results.estimate import Estimate
from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown


@dataclass(frozen=True, slots=True)
class LossRow:
    """The loss of a run.

    Args:
        recipe: The parameterization.
        depth: The number of blocks, ``"oo"`` the limit; "" of a network that has none.
        width: ``"oo"``, or the width of networks.
        multiplier: The number in front of a block, at the base depth.
        rate: The learning rate, at the base depth.
        loss: The loss; None where there is none, with the reason in ``note``.
        note: Why there is none.
    """

    recipe: str
    depth: str
    width: str
    multiplier: float
    rate: float
    loss: Estimate | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Optimum:
    """The learning rate and the multiplier of the least loss.

    Args:
        recipe: The parameterization.
        depth: The number of blocks, ``"oo"`` the limit; "" of a network that has none.
        width: ``"oo"``, or the width of networks.
        multiplier: The best number in front of a block, of those that were tried.
        rate: The best learning rate.
        low: Below it the loss is known to be larger; None: it is the smallest rate that was tried.
        high: Above it the loss is known to be larger; None: it is the largest rate.
        loss: The loss there.
        slope: d log(rate) / d log(L) since the depth before; None of the first.
        how: ``"minimised"`` of exact losses between the rates that were tried; ``"grid"``: the best
            rate of those that were tried, low and high the nearest that are known to be worse.
        width_slope: d log(rate) / d log(n) since the width before; None of the first.
    """

    recipe: str
    depth: str
    width: str
    multiplier: float
    rate: float
    low: float | None
    high: float | None
    loss: Estimate
    slope: float | None
    how: str
    width_slope: float | None = None


@dataclass(frozen=True, slots=True)
class Transfer(Shown):
    """Losses over learning rates, widths and depths, and where they are least.

    Args:
        rows: The losses.
        optima: The best rates.
        measured: What the loss is, in words.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.
    """

    rows: tuple[LossRow, ...]
    optima: tuple[Optimum, ...]
    measured: str
    provenance: Provenance
    notes: tuple[str, ...] = ()

    def best(self, recipe: str, depth: int | str = "", width: int | str = "oo") -> Optimum:
        """The best rate.

        Args:
            recipe: The parameterization.
            depth: The number of blocks, or ``"oo"``; "" of a network that has none.
            width: The width of networks, or ``"oo"``.

        Raises:
            KeyError: It is not there.
        """
        found = {(row.recipe, row.depth, row.width): row for row in self.optima}
        return found[recipe, str(depth), str(width)]


@dataclass(frozen=True, slots=True)
class Profile:
    """A number along the depth.

    Args:
        recipe: The parameterization of the depth.
        depth: The number of blocks, ``"oo"`` the limit.
        width: ``"oo"``, or the width of networks.
        step: The training step.
        what: ``"size"``, the root mean square of the stream; ``"distance"``, that of how far it
            moves between two places; ``"slope"``, d log(distance) / d log(place).
        place: The share of the depth, of distances how far the places are apart.
        value: The number.

    Example:
        >>> from tpcalc.results.estimate import Method
        >>> Profile("depth-mup", "oo", "oo", 1, "size", 0.5, Estimate(1, 0, Method.EXACT)).place
        0.5
    """

    recipe: str
    depth: str
    width: str
    step: int
    what: str
    place: float
    value: Estimate


@dataclass(frozen=True, slots=True)
class Ratio:
    """How far blocks carry a stream or its adjoint at the start.

    Args:
        along: The law of the weights along the depth.
        alpha: The power of 1/L in front of a block.
        depth: The number of blocks.
        width: ``"oo"``, the width of networks, or ``"-> oo"``: their limit, by a line in 1/n.
        name: ``D``, |x_l - x_0| / |x_0|; ``R``, |x_l| / |x_0|; ``Dp``, ``Rp`` of the adjoint.
        place: The share of the blocks that are gone through, the last ones for the adjoint.
        value: The decimal logarithm: at infinite width of the root of the mean square; of networks
            the mean of logarithms, with its spread over networks.
        quantiles: Of networks (p, the ratio that a share p of them is below).

    Example:
        >>> from tpcalc.results.estimate import Method
        >>> Ratio("fresh", "1", "9", "oo", "D", 1.0, Estimate(-0.7, 0, Method.EXACT)).width
        'oo'
    """

    along: str
    alpha: str
    depth: str
    width: str
    name: str
    place: float
    value: Estimate
    quantiles: tuple[tuple[float, Estimate], ...] = ()


@dataclass(frozen=True, slots=True)
class CriticalRow:
    """The powers of 1/L between explosion and identity, of one law along the depth.

    Args:
        along: The law.
        outputs: That of outputs.
        gradients: That of gradients, the width first.
        side: That of gradients at a fixed width; "" where it is the same.
    """

    along: str
    outputs: str
    gradients: str
    side: str = ""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Networks beside infinite width at one point.

    Args:
        along: The law of the weights along the depth.
        alpha: The power of 1/L.
        depth: The number of blocks.
        name: ``D``, ``R``, ``Dp`` or ``Rp``.
        regime: What exponents say: ``"unstable"``, ``"stationary"``, ``"identity"``.
        limit: The decimal logarithm at infinite width.
        networks: That of networks.
        beside: What they are compared with, in words.
        same: Whether they agree; None: not comparable.
    """

    along: str
    alpha: str
    depth: str
    name: str
    regime: str
    limit: float
    networks: Estimate
    beside: str
    same: bool | None


@dataclass(frozen=True, slots=True)
class WalkRow:
    """Drawn sequences along the depth.

    Args:
        along: Their law.
        hurst: The exponent that is measured of sums of them.
        expected: That of the law; None where there is none.
        path: Sums of the first sequence, over their number to the power of the exponent.
    """

    along: str
    hurst: Estimate
    expected: float | None
    path: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TrainedRow:
    """Networks that were trained from weights of a law along the depth.

    Args:
        along: The law at the start.
        alpha: The power of 1/L in front of a block.
        depth: The number of blocks.
        width: The width.
        regime: What exponents say of the outputs at the start.
        rate: The best learning rate.
        accuracy: The share of test images that are named, with that rate; 0 where all diverge. Its
            error is that of a sample of images, and of networks where there are several.
        rates: Learning rates with their accuracies.
        hurst: The exponent of sums of the trained weights along the depth; None: they diverge.
        smoothness: That of their differences.
        path: One weight along the depth, over its largest value.
    """

    along: str
    alpha: str
    depth: str
    width: str
    regime: str
    rate: float
    accuracy: Estimate
    rates: tuple[tuple[float, float], ...]
    hurst: Estimate | None
    smoothness: Estimate | None
    path: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference number.

    Args:
        where: Where it stands.
        what: As of a profile; ``"rate"``, the best learning rate; ``"log10"``, the logarithm of a
            ratio of networks; ``"quantile"``, that of networks at the share ``place``.
        recipe: The parameterization of the depth.
        depth: The number of blocks, ``"oo"`` the limit.
        value: The number.
        step: Of a profile the training step.
        place: Of a profile its place.
        digits: The unit of its last digit.
        along: Of a ratio the law along the depth.
        alpha: Of a ratio the power of 1/L.
        name: Of a ratio its name.
        width: Of a ratio the width of networks.
    """

    where: str
    what: str
    recipe: str
    depth: str
    value: float
    step: int = 0
    place: float = 0.0
    digits: float = 1e-6
    along: str = "fresh"
    alpha: str = ""
    name: str = ""
    width: str = ""


@dataclass(frozen=True, slots=True)
class DepthExperiment(Shown):
    """Networks of many blocks, at infinite width and as networks beside it.

    Args:
        name: Its name.
        title: What it is about.
        source: Where it was published.
        profiles: Numbers along the depth.
        transfer: Best learning rates; None: they are not asked.
        references: Reference numbers.
        lacking: What has no numbers, with the reason.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.
        ratios: How far blocks carry the stream and its adjoint at the start.
        critical: The powers of 1/L between explosion and identity.
        agreements: Networks beside infinite width.
        paths: Drawn sequences along the depth.
        trained: Networks that were trained.
    """

    name: str
    title: str
    source: str
    profiles: tuple[Profile, ...]
    transfer: Transfer | None
    references: tuple[Reference, ...]
    lacking: tuple[tuple[str, str], ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()
    ratios: tuple[Ratio, ...] = ()
    critical: tuple[CriticalRow, ...] = ()
    agreements: tuple[Agreement, ...] = ()
    paths: tuple[WalkRow, ...] = ()
    trained: tuple[TrainedRow, ...] = ()

    def beside(self, one: Reference) -> Estimate | None:
        """What was found of a reference number, at infinite width; None: it was not asked.

        Args:
            one: The reference number.
        """
        if one.what == "rate":
            for best in self.transfer.optima if self.transfer else ():
                if (best.recipe, best.depth, best.width) == (one.recipe, one.depth, "oo"):
                    off = 0.0 if best.low is None else best.rate - best.low
                    return Estimate(best.rate, off, best.loss.method)
            return None
        if one.name:
            return self._ratio(one)
        for row in self.profiles:
            own = (row.recipe, row.depth, row.width, row.step, row.what)
            same = own == (one.recipe, one.depth, "oo", one.step, one.what)
            if same and abs(row.place - one.place) < 1e-12:
                return row.value
        return None

    def _ratio(self, one: Reference) -> Estimate | None:
        asked = (one.along, one.alpha, one.depth, one.width, one.name)
        for row in self.ratios:
            if (row.along, row.alpha, row.depth, row.width, row.name) == asked:
                if one.what == "quantile":
                    return dict(row.quantiles).get(one.place)
                if row.place == (one.place or 1.0):
                    return row.value
        return None
