"""What becomes of each parameter: the size of its own updates, and whether they contribute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain

from tpcalc.exponents import Ex, as_ex
from tpcalc.exponents.chamber import Chamber
from tpcalc.names import USE, Name, what_of
from tpcalc.program.base import scale_of
from tpcalc.program.family import Mark
from tpcalc.questions.verdict.judge import Settled
from tpcalc.questions.verdict.probe import Probe
from tpcalc.questions.verdict.sizes import Order, grows, plain, power
from tpcalc.training.training import Training

UNKNOWN = "not known"
UNFOLLOWED = "the size of the gradient is not followed"
SUMS = ("hidden", "readout")  # roles whose product with a vector sums over the width


@dataclass(frozen=True)
class Contributions:
    """The updates of all parameters of a run, and what they add."""

    training: Training  # the run
    run: Probe  # the names of its outputs
    settled: Settled  # what is known of their sizes
    chamber: Chamber  # where comparisons are decided

    def word(self, label: str, bias: bool = False) -> str:
        """What becomes of the weights or the bias of a map; "" where there are none.

        ``"moves"``: at some step its update contributes order one to what its map writes, and
        ``"starts later"`` where it certainly did not at first. ``"cut off"``: it would by its own
        size, but it acts on vectors that vanish or that it is not aligned with, or the output does
        not feel it. ``"frozen"``: however aligned, it is too small. ``"0"``: it is identically 0.
        ``"vanishes"``: it does at the steps that are followed, and no more is known.
        """
        own = [mark for mark in self._marks(label) if mark.bias == bias]
        return self._word(own[0]) if own else ""

    def notes(self) -> Iterator[str]:
        """What decay takes beside what updates add, and where eps stands beside gradients."""
        decays: dict[tuple[str, str], list[str]] = {}
        regimes: dict[str, list[str]] = {}
        labels = self.run.maps if self.run.first in self.run.followed else ()
        for label in labels:
            for mark in self._marks(label):
                if not mark.rate * self.training.own(mark).lr:
                    continue
                called = f"{'b' if mark.bias else 'w'}[{label}]"
                if share := self._decay(mark):
                    names = self._names(mark, self.run.first)
                    size = self.settled.sizes.largest_words(names)
                    decays.setdefault((share, size), []).append(called)
                if regime := self._regime(mark):
                    regimes.setdefault(regime, []).append(called)
        for (share, size), who in decays.items():
            yield (
                f"decay takes {share} of {_listed(who)} in a step, beside first updates that "
                f"contribute {size}"
            )
        for regime, who in regimes.items():
            yield f"eps beside the gradients by {_listed(who)}: {regime}"

    def _marks(self, label: str) -> tuple[Mark, ...]:
        return tuple(mark for mark in self.training.network.marks if mark.label == label)

    def _names(self, mark: Mark, step: int) -> tuple[str, ...]:
        """What the update before a step contributes at the query."""
        names = self.run.updates(mark.label, step)
        return tuple(name for name in names if (what_of(name) == "dB") == mark.bias)

    @property
    def _steps(self) -> tuple[int, ...]:
        """The steps that are followed and that an update comes before."""
        return tuple(t for t in self.run.followed if self.training.factors[t - 1])

    def _word(self, mark: Mark) -> str:
        steps, waiting = self._steps, False
        for step in steps:
            answer = self.settled.moves(step, self._names(mark, step))
            if answer.holds:
                if len(steps) > 1 and self._still(steps):
                    return "cut off"
                return "moves" if waiting or step == steps[0] else "starts later"
            waiting = waiting or answer.holds is None
        if waiting or not steps:
            return UNKNOWN
        names = [name for step in steps for name in self._names(mark, step)]
        if len(steps) == 1:  # which tells nothing of later gradients
            by_exponents = not self.training.optimizer_of(mark).degree and self._eps(mark) is None
            return "frozen" if by_exponents and self._why(mark, steps) == "frozen" else "vanishes"
        if all(self.settled.ledger.orders[name].zero for name in names):
            return "0"
        return self._why(mark, steps)

    def _still(self, steps: Sequence[int]) -> bool:
        """Whether the output certainly does not move."""
        changes = self.run.changes
        return all(self.settled.moves(step, changes(step)).holds is False for step in steps)

    def _why(self, mark: Mark, steps: Sequence[int]) -> str:
        """Why contributions vanish at all steps: for their own size, or for what they act on."""
        sign, own = self.chamber.sign, [self._own(mark, t - 1) for t in steps]
        if all(o.zero or (o.n is not None and sign(plain(o.n)) < 0) for o in own):
            return "frozen"
        right = (o.status == "exact" and o.n is not None and sign(plain(o.n)) >= 0 for o in own)
        return "cut off" if any(right) else "vanishes"

    def _own(self, mark: Mark, step: int) -> Order:
        """The size of what an update by itself adds to a vector of order one, fully aligned."""
        training, probe = self.training, self.run
        _, rate = training.rate(mark, step)
        a = training.parameterization.power(mark, training.tables[0])
        size = as_ex(1 if mark.role in SUMS else 0) - a - rate + self._behind(mark)
        uses = probe.at("between", step).items()
        own = [names for use, names in uses if use.partition(USE)[0] == mark.label]
        added = self._product(size, [tuple(chain.from_iterable(own))] if own else [], ())
        if training.optimizer_of(mark).degree:
            return _times(self._gradients(mark, step), added)
        eps = self._eps(mark)
        if eps is None:
            return added
        gradient = self._gradients(mark, step)
        known, sign = gradient.n is not None, self.chamber.sign
        if gradient.zero or (known and sign(plain(as_ex(gradient.n or 0) - eps)) < 0):
            return _times(_times(gradient, Order(-eps, "exact", "")), added)
        return _times(Order(as_ex(0), gradient.status, ""), added)  # a quotient is bounded

    def _behind(self, mark: Mark) -> Ex:
        """The power of n that is written behind the map of a parameter, the sum's own left out."""
        program, own = self.training.network.smallest, as_ex(mark.role == "readout")
        names = [(Name.of(name), ref) for name, ref in program.outputs]
        uses = [ref for own, ref in names if (own.what, own.label) == ("W_x", mark.label)]
        found = (scale_of(program.nodes[ref]) for ref in uses)
        powers = [(as_ex(0) if scale is None else scale.n_power) - own for scale in found]
        return max(powers, key=lambda power: power.at(self.chamber.point))

    def _gradients(self, mark: Mark, step: int) -> Order:
        """The size of what an update is made of: the last gradient, or at most all so far."""
        if self.training.optimizer_of(mark).is_plain or not step:
            return self._gradient(mark, step)
        found = self._largest([self._gradient(mark, each) for each in range(step + 1)])
        return replace(found, status="upper") if found.n is not None else found

    def _gradient(self, mark: Mark, step: int) -> Order:
        """The size of an entry of the gradient by w: n^-a times slope of the loss, dh and x.

        It is known of chains of layers; a sum over samples is at most as large as its largest term.
        """
        probe, training = self.run, self.training
        if not all(label.isdigit() for label in probe.maps):
            return Order(None, "upper", UNFOLLOWED)
        layer, depth = int(mark.label), len(probe.features)
        a = training.parameterization.power(mark, training.tables[0])
        found: list[Order] = []
        for sample in range(training.batch):
            vectors = []
            if layer <= depth:
                vectors.append(probe.at("dh", step, sample)[mark.label])
            if layer > 1 and not mark.bias:
                vectors.append(probe.at("x", step, sample)[str(layer - 1)])
            found.append(self._product(-a, vectors, probe.f(step, sample)))
        largest = self._largest(found)
        return largest if training.batch == 1 or largest.zero else replace(largest, status="upper")

    def _largest(self, orders: Sequence[Order]) -> Order:
        found = [order for order in orders if not order.zero]
        if any(order.n is None for order in found):
            return Order(None, "upper", UNFOLLOWED)
        point = self.chamber.point
        exact = Order(None, "exact", "")
        return max(
            found, key=lambda o: (as_ex(o.n or 0).at(point), o.status == "exact"), default=exact
        )

    def _product(
        self, factor: Ex, vectors: Sequence[Sequence[str]], outputs: Sequence[str]
    ) -> Order:
        """n^factor times vectors and the slope of a loss: of order one if outputs are bounded."""
        self.settled.ledger.settle((), [*outputs, *(name for names in vectors for name in names)])
        sizes = self.settled.sizes
        largest = [name for names in vectors if (name := sizes.largest(names))]
        if len(largest) < len(vectors):
            return Order(None, "exact", "")
        orders = [sizes[name] for name in largest]
        output = sizes.largest(outputs)
        if output and grows(sizes[output], self.chamber.sign) is not False:
            orders.append(replace(sizes[output], status="upper"))
        if any(order.n is None for order in orders):
            return Order(None, "upper", UNFOLLOWED)
        status = "exact" if all(order.status == "exact" for order in orders) else "upper"
        return Order(sum((order.n for order in orders if order.n is not None), factor), status, "")

    def _eps(self, mark: Mark) -> Ex | None:
        """The power of n of what is added to the root of squared gradients; None: nothing is."""
        number, exponent = self.training.optimizer_of(mark).settings.get("eps", (0, as_ex(0)))
        stored = self.training.parameterization.stored(mark, self.training.tables[0])
        return exponent - stored if number else None  # beside the gradient by w

    def _regime(self, mark: Mark) -> str:
        """Where eps stands beside the first gradients that are not 0; "" where there is none."""
        eps = self._eps(mark)
        if eps is None:
            return ""
        for step in self._steps:
            gradient = self._gradient(mark, step - 1)
            if gradient.zero:
                continue
            if gradient.n is None:
                return f"which is larger is not known, as {gradient.reason}"
            sign = self.chamber.sign(plain(eps - gradient.n))
            exact = gradient.status == "exact"
            if sign > 0:
                word = "it is dominant, and updates are linear"
            elif sign == 0:
                word = "it is critical" if exact else "it is critical or dominant"
            else:
                word = "it is negligible" if exact else "which is larger is not known"
            if exact and sign > 0:
                beside = gradient.n + self.training.parameterization.stored(
                    mark, self.training.tables[0]
                )
                word += f", unless it is a number times n^({beside}) or smaller"
            how = "" if exact else "at most "
            return f"{word} (eps {power(eps)}, gradients {how}{power(gradient.n)})"
        return "they are 0 at all steps that are followed"

    def _decay(self, mark: Mark) -> str:
        """The share of a parameter that its decay takes at the first step; "" where none is."""
        path = self.training.path(mark)
        rate = self.training.rate(mark, self.run.first - 1)
        start = {as_ex(0): Fraction(1)} if path is None else dict(path([rate]).start)
        kept = start.get(as_ex(0), Fraction(0)) - 1
        lost = [p for p in start if p != as_ex(0)] + [as_ex(0)] * (kept != 0)
        point = self.chamber.point
        most = max(lost, key=lambda p: p.at(point), default=None)
        return "" if most is None else f"a share of {power(most)}"


def _times(one: Order, other: Order) -> Order:
    if one.n is None or other.n is None:
        return one if one.zero or other.n is not None else other
    return Order(one.n + other.n, max(one.status, other.status), "")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + (" and " if names[1:] else "") + names[-1]
