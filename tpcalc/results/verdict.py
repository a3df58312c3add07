"""Verdicts on training: of a network as its width grows, or its number of blocks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tpcalc import checks
from tpcalc.results.estimate import Estimate
from tpcalc.results.exponent import NONE, UNKNOWN, Exponent
from tpcalc.results.first_order import FirstOrder
from tpcalc.results.orders import OrderRow, OrderTable
from tpcalc.results.tables import Explosion, FiniteTable, LimitTable, Provenance
from tpcalc.results.theorem import Theorems
from tpcalc.shown import Shown


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """What training does to one layer; None where it is not known.

    Args:
        layer: Its number from 1; L + 1 is the output.
        moves: Whether its update contributes Theta(1) to its own preactivations.
        features: Whether its features change by Theta(1).
        kernel: Whether its kernel evolves.
        step: The first step at which it does.
        reason: What decided it.
        name: What it is called, where it has more than a number.
        weights: What becomes of its weights. ``"moves"``: their update contributes order one;
            ``"starts later"``: it does, but not at the first step that is followed. A contribution
            that vanishes at all of them is ``"frozen"`` where the update is too small for its role,
            however aligned; ``"cut off"`` where its size is right and what it acts on vanishes, is
            not aligned with it, or does not reach the output; ``"0"`` where it is identically 0;
            else ``"vanishes"``. ``"not known"``: bounds do not tell.
        biases: The same of its bias; "" where it has none.

    Example:
        >>> LayerFacts(2, True, True, None, 1, "dW_x[2,1,0] is of size 1").kernel is None
        True
    """

    layer: int
    moves: bool | None
    features: bool | None
    kernel: bool | None
    step: int | None
    reason: str
    name: str = ""
    weights: str = ""
    biases: str = ""

    @property
    def label(self) -> str:
        """Its name, or its number."""
        return self.name or str(self.layer)

    @property
    def update(self) -> str:
        """What becomes of its weights and its bias, in one word where it is the same."""
        if self.biases in ("", self.weights):
            return self.weights
        return f"{self.weights}, its bias: {self.biases}"


@dataclass(frozen=True, slots=True)
class BlockRate:
    """The learning rate of a parameter of a block, as a power of the depth.

    Args:
        label: What it is called.
        gradient: delta: its gradient is of size L^(-delta); infinite: it is 0 at the first step.
        update: gamma: its updates are of size L^(-gamma), as in Tensor Programs VI.
        raw: The power of L of its learning rate: delta - gamma under SGD, -gamma under optimizers
            that normalise gradients.
        alike: The cosine of its first gradients in two neighbouring blocks, at the first blocks and
            a stream of mean square 1: 1 where all learn the same, 0 where each learns its own. For
            phi(W x) it is (E phi')^2 / E phi'^2. None: not asked, or not known.

    Example:
        >>> half = Exponent.of("1/2")
        >>> str(BlockRate("2", half, half, Exponent.number(0)).raw)
        '0'
    """

    label: str
    gradient: Exponent
    update: Exponent
    raw: Exponent
    alike: Estimate | None = None

    @property
    def starts(self) -> bool:
        """Whether it has an update at the first step."""
        return UNKNOWN not in (self.gradient, self.update)


@dataclass(frozen=True, slots=True)
class SetRow:
    """What the updates of several matrices of a block do together, summed over the blocks.

    Args:
        labels: The matrices.
        L: The power of L of the sum: 1 - alpha - sum of gammas.
        status: ``"exact"`` of one matrix, ``"bound"`` of several.
        degree: With which power of the gradients their product grows: of SGD their number, 0 of
            optimizers that normalise.

    Example:
        >>> row = SetRow(("2.1", "2.2"), Exponent.of("-1/2"), "bound")
        >>> str(row.L), str(row.slope)
        ('-1/2', '-2')
    """

    labels: tuple[str, ...]
    L: Exponent
    status: str
    degree: int = 0

    @property
    def slope(self) -> Fraction:
        """The slope of its level sets: log of the number in front of a block by log of the rate.

        A number a and a rate eta add a (a^d eta)^k of k matrices whose updates grow with the d-th
        power of the gradient.

        Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, section 9.3 and Figure 7.
        """
        return Fraction(-len(self.labels), 1 + self.degree)


@dataclass(frozen=True, slots=True)
class CriticalPower:
    """The power of 1/L in front of a block at which it neither vanishes nor explodes at the start.

    Args:
        of: ``"outputs"`` or ``"gradients"``.
        width: ``"oo"``: the width goes to infinity first; ``"n"``: at a fixed width.
        alpha: The power.
        here: What the network has: ``"unstable"`` below it (or ``"vanishing"``), ``"stationary"``
            at it, ``"identity"`` above it; "" where that is not known. Between two rows of one
            kind, of matrices that turn pairs of coordinates, it is ``"stationary"``.
        status: As of a row: ``"proved"`` or ``"derived"``.

    Example:
        >>> str(CriticalPower("outputs", "oo", Exponent.of("3/4"), "stationary", "proved").alpha)
        '3/4'
    """

    of: str
    width: str
    alpha: Exponent
    here: str
    status: str


@dataclass(frozen=True, slots=True)
class Verdict(Shown):
    """What becomes of training as the width grows, or of L blocks of infinite width as L does.

    Args:
        verdict: ``"trivial"``, ``"unstable"``, ``"kernel"`` (of the width), ``"feature-learning"``
            or ``"undecided"``. Where only the start is followed ``"unstable"``, ``"stationary"`` or
            ``"identity"``; ``"vanishing"`` where matrices that are not random shrink the stream to
            nothing.
        status: ``"exact"``, or what it rests on. Of L blocks ``"proved"``, or ``"heuristic"``: what
            sums over blocks rest on for nonlinear blocks after the first update; ``"derived"``:
            without proof, of matrices that add up to less than independent ones, and of updates of
            matrices that are correlated.
        facts: What decides, the first fact first.
        steps: The steps that were asked for; of L blocks those that were followed, 0: the start.
        provenance: What it was computed from and with.
        at: What grows: ``"width"``, ``"depth"``; ``"start"``: the depth, before any step.
        valid_for: ``"all t"``, or the steps that were followed (``"t<=3"``); "" of L blocks.
        region: Conditions on the symbols under which all of this holds.
        notes: What a reader should know besides.
        stable_start: Whether nothing that is read grows at the start, nor of L blocks the adjoint;
            None: not known.
        stable: The same at all steps that were followed.
        moves: Whether the outputs move; of L blocks by updates of these.
        features: Whether the last features move; of L blocks the stream at the last one.
        initial: Of the width ``"ok"``, ``"vanishes"`` or ``"explodes"``: the network at the start.
        stationary_start: Of the width whether the start is a stationary point in the limit.
        layers: Of the width one entry for each layer.
        rates: The learning rates of the parameters of a block.
        updates: Of the width the orders of the contributions of updates, ``dW_x``.
        rows: Of the width the orders of f and of the changes of f and of the last features; of L
            blocks how the parts of the stream grow, pass by pass.
        sets: For blocks of several matrices what their updates do together; of more than 10
            matrices each alone and all together.
        critical: The powers of 1/L in front of a block that would be critical at the start.
        exploded: Of the width the first explosion; later steps are not followed.
        first_order: What the first steps do in the width, from sizes alone; None where that was not
            asked.
        faithful: Whether preactivations in the blocks stay of order one.
        diversity: kappa: features of blocks at distance epsilon differ by epsilon^kappa in all
            that is random: ``"1/2"``, or ``"0"`` (redundant); "" where it is not known.
        linearized: Whether a block is linear in the updates of its weights, in the limit.
        alpha: The power of L in front of a block, as it is found.
        start: What becomes of the stream of L blocks at the start and of its adjoint:
            ``"unstable"`` (it explodes), ``"stationary"`` (what blocks add is of order one) or
            ``"identity"`` (it vanishes); the adjoint does not feel whether the stream explodes.

    Example:
        >>> fact = "the update of layer 3 is of size n^(-1/2)"
        >>> found = Verdict("trivial", "exact", (fact,), 3, Provenance("0", "ab"))
        >>> found.facts[0], found.at
        ('the update of layer 3 is of size n^(-1/2)', 'width')
    """

    verdict: str
    status: str
    facts: tuple[str, ...]
    steps: int
    provenance: Provenance
    at: str = "width"
    valid_for: str = ""
    region: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stable_start: bool | None = None
    stable: bool | None = None
    moves: bool | None = None
    features: bool | None = None
    initial: str = ""
    stationary_start: bool = False
    layers: tuple[LayerFacts, ...] = ()
    rates: tuple[BlockRate, ...] = ()
    updates: tuple[OrderRow, ...] = ()
    rows: tuple[OrderRow, ...] = ()
    sets: tuple[SetRow, ...] = ()
    critical: tuple[CriticalPower, ...] = ()
    exploded: Explosion | None = None
    first_order: FirstOrder | None = None
    faithful: bool | None = None
    diversity: str = ""
    linearized: bool | None = None
    alpha: Exponent = NONE
    start: tuple[str, ...] = ()

    @property
    def outputs(self) -> Any:
        """The rows; of L blocks what becomes of the stream at the start."""
        return self.start[0] if self.start else self.rows

    def level_slopes(self, blocks: str = "many") -> tuple[Fraction, ...]:
        """Slopes of level sets of the loss, log number in front of blocks against log rate.

        Args:
            blocks: ``"many"``: of the sets of updates whose sum over L blocks has the largest power
                of L; ``"few"``: of the product of the updates of all matrices, which counts before.

        Returns:
            The slopes, the steepest first; none of blocks of one matrix.

        Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, section 9.
        """
        checks.one_of("number of blocks", blocks, ("few", "many"))
        kept = self.sets[-1:]
        if blocks == "many":
            powers = [row.L.constant for row in self.sets]
            known = [power for power in powers if power is not None]
            kept = tuple(r for r in self.sets if known and r.L.constant == max(known))
        return tuple(sorted({row.slope for row in kept}))

    @property
    def gradients(self) -> str:
        """What becomes of the adjoint of the stream of L blocks at the start."""
        return self.start[1] if self.start else ""


@dataclass(frozen=True, slots=True)
class Card(Shown):
    """The answers about one parameterization.

    Args:
        name: The parameterization.
        exponents: Its tables as pairs of words: what, and the powers of the layers.
        check: The verdict on training, with the orders of updates and outputs.
        orders: Orders of features and gradients over the steps.
        limit: Limits of the outputs.
        theorems: What is proved of it elsewhere.
        finite: Networks of finite width, where some were run.

    Example:
        >>> verdict = Verdict("trivial", "exact", ("nothing moves",), 3, Provenance("0", "ab"))
        >>> Card("naive-ip", (("a", "0, 1, 1"),), verdict).check.verdict
        'trivial'
    """

    name: str
    exponents: tuple[tuple[str, str], ...]
    check: Verdict
    orders: OrderTable | None = None
    limit: LimitTable | None = None
    theorems: Theorems | None = None
    finite: FiniteTable | None = None

    __repr__ = Shown.__str__


@dataclass(frozen=True, slots=True)
class Contrast(Shown):
    """Two parameterizations of one network, trained on the same data.

    Args:
        left: One.
        right: The other.

    Example:
        >>> Contrast.__slots__
        ('left', 'right')
    """

    left: Card
    right: Card
