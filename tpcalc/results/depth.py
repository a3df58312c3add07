"""Answers about the depth: what becomes of training as the number of blocks grows.

Exponents are texts; the field ``L`` of a row is a growth exponent e: size ~ L^e, after the width.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log, sqrt
from statistics import fmean, variance

from tpcalc.results.estimate import Estimate, Method
from tpcalc.results.tables import Provenance

__all__ = [
    "BlockRate",
    "DepthOrders",
    "DepthRow",
    "DepthSample",
    "DepthTable",
    "DepthValue",
    "DepthVerdict",
    "SetRow",
]


@dataclass(frozen=True, slots=True)
class DepthRow:
    """How something grows with the number of blocks.

    Args:
        name: What it is: ``x[1]``, the stream in the forward pass of step 1; ``dx[1]``, its
            adjoint; ``h[l,1]``, a preactivation.
        part: Which part of it: ``"noise"``, a random walk over the blocks; a drift, what all
            blocks add alike, with what it depends on; "" for all of it.
        L: The growth exponent; ``"-oo"`` where it is identically 0.
        status: ``"proved"``, ``"heuristic"``, ``"derived"`` (without proof, of matrices that are
            correlated along the depth), or ``"bound"`` where L is an upper bound.

    Example:
        >>> DepthRow("x[0]", "noise", "0", "proved").L
        '0'
    """

    name: str
    part: str
    L: str
    status: str


@dataclass(frozen=True, slots=True)
class DepthOrders:
    """How large everything in a run of L blocks is; all of it is of order n^0 in the width.

    Args:
        rows: The parts of the stream pass by pass; then ``h[...,t]`` preactivations of a block,
            ``dW_x[...,t]`` what the updates of a matrix add, next to its product.
        region: Conditions on the symbols under which all of this holds.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.
    """

    rows: tuple[DepthRow, ...]
    region: tuple[str, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> DepthRow:
        """The largest part of something.

        Args:
            name: Its name.

        Raises:
            KeyError: It is not there.
        """
        found = [row for row in self.rows if row.name == name]
        if not found:
            raise KeyError(name)
        return found[0]

    def __str__(self) -> str:
        return "\n".join(
            f"{row.name}{f' ({row.part})' if row.part else ''} -> "
            f"{'<= ' if row.status == 'bound' else ''}n^(0) L^({row.L}) ({row.status})"
            for row in self.rows
        )


@dataclass(frozen=True, slots=True)
class BlockRate:
    """The learning rate of a parameter of a block, as a power of the depth.

    Args:
        label: What it is called.
        gradient: delta: its gradient is of size L^(-delta).
        update: gamma: its updates are of size L^(-gamma), as in Tensor Programs VI.
        raw: The power of L of its learning rate: delta - gamma under SGD, -gamma under optimizers
            that normalise gradients.

    Example:
        >>> BlockRate("2", "1/2", "1/2", "0").raw
        '0'
    """

    label: str
    gradient: str
    update: str
    raw: str


@dataclass(frozen=True, slots=True)
class SetRow:
    """What the updates of several matrices of a block do together, summed over the blocks.

    Args:
        labels: The matrices.
        L: The power of L of the sum: 1 - alpha - sum of gammas.
        status: ``"exact"`` of one matrix, ``"bound"`` of several.

    Example:
        >>> SetRow(("2.1", "2.2"), "-1/2", "bound").L
        '-1/2'
    """

    labels: tuple[str, ...]
    L: str
    status: str


@dataclass(frozen=True, slots=True)
class DepthVerdict:
    """What becomes of training a network of L blocks, of infinite width, as L grows.

    Args:
        verdict: ``"unstable"``, ``"trivial"``, ``"feature-learning"`` or ``"undecided"``. Of
            matrices that are correlated along the depth, where only the start is followed:
            ``"unstable"``, ``"stationary"`` or ``"identity"``.
        status: ``"proved"``, or ``"heuristic"``: what sums over blocks rest on for nonlinear
            blocks after the first update; ``"derived"``: without proof, of matrices that add up to
            less than independent ones.
        stable_start: Whether the stream and its adjoint stay of order one at the start; None: not
            known.
        stable: The same at all steps that were followed.
        moves: Whether the outputs move by updates of the blocks.
        features: Whether the stream at the last block moves.
        faithful: Whether preactivations in the blocks stay of order one.
        diversity: kappa: features of blocks at distance epsilon differ by epsilon^kappa in all
            that is random: ``"1/2"``, or ``"0"`` (redundant); "" where it is not known.
        linearized: Whether a block is linear in the updates of its weights, in the limit.
        alpha: The power of L in front of a block, as it is found.
        rates: The learning rates of the parameters of a block.
        rows: How the parts of the stream grow, pass by pass.
        sets: For blocks of several matrices what their updates do together.
        facts: What decides, the first fact first.
        steps: The steps that were followed.
        region: Conditions on the symbols under which all of this holds.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.
        outputs: What becomes of the stream at the start: ``"unstable"`` (it explodes),
            ``"stationary"`` (what blocks add is of order one) or ``"identity"`` (it vanishes).
        gradients: The same of its adjoint, which does not feel whether the stream explodes.

    Example:
        >>> made = Provenance("0", "ab")
        >>> found = DepthVerdict(
        ...     "trivial", "proved", True, True, False, False, True, "", None, "1/2", (), (), (),
        ...     ("the updates of all blocks add up to L^(-1/5)",), 2, (), made,
        ... )
        >>> found.facts[0]
        'the updates of all blocks add up to L^(-1/5)'
    """

    verdict: str
    status: str
    stable_start: bool | None
    stable: bool | None
    moves: bool | None
    features: bool | None
    faithful: bool | None
    diversity: str
    linearized: bool | None
    alpha: str
    rates: tuple[BlockRate, ...]
    rows: tuple[DepthRow, ...]
    sets: tuple[SetRow, ...]
    facts: tuple[str, ...]
    steps: int
    region: tuple[str, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()
    outputs: str = ""
    gradients: str = ""


@dataclass(frozen=True, slots=True)
class DepthValue:
    """A number of a run at a number of blocks, or in the limit.

    Args:
        name: ``f[t,b]`` an output at step t of sample b (``f[t,b,k]`` of several outputs);
            ``x[t,b]`` and ``dx[t,b]`` the mean square of the stream after the last block and of its
            adjoint before the first; at the start of a network ``R^2``, ``D^2``, ``Rp^2``,
            ``Dp^2``: mean squares of the stream and of its adjoint, and of how far they moved.
        depth: The number of blocks, ``"oo"`` the limit.
        estimate: The number.
        route: How it was found, in words.

    Example:
        >>> from tpcalc.results import Estimate, Method
        >>> DepthValue("f[1,0]", "oo", Estimate(2.5, 1e-12, Method.QUADRATURE), "").depth
        'oo'
    """

    name: str
    depth: str
    estimate: Estimate
    route: str


@dataclass(frozen=True, slots=True)
class DepthTable:
    """Numbers of a run at several depths.

    Args:
        rows: The numbers, depth by depth.
        lacking: Depths without numbers, each with the reason.
        provenance: What they were computed from and with.
        notes: What a reader should know besides.
    """

    rows: tuple[DepthValue, ...]
    lacking: tuple[tuple[str, str], ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()

    @property
    def depths(self) -> tuple[str, ...]:
        """The depths with numbers."""
        return tuple(dict.fromkeys(row.depth for row in self.rows))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers."""
        return tuple(dict.fromkeys(row.name for row in self.rows))

    def at(self, name: str, depth: int | str) -> Estimate:
        """A number.

        Args:
            name: Its name.
            depth: The number of blocks, or ``"oo"``.

        Raises:
            KeyError: It is not there.
        """
        return {(row.name, row.depth): row.estimate for row in self.rows}[name, str(depth)]


@dataclass(frozen=True, slots=True)
class DepthSample:
    """How far L blocks of finite width carry the stream and its adjoint at the start.

    Args:
        depth: L.
        width: n.
        alphas: The powers of 1/L in front of a block.
        names: ``R``, ``D``: the norm of the stream after the last block, and of its difference to
            that before the first, over the latter; ``Rp``, ``Dp`` the same of the adjoint.
        logs: For each name and alpha the natural logarithm in each network. Networks of one seed
            have the same matrices for all alphas.
        provenance: What they were computed from and with.

    Example:
        >>> made = Provenance("0", "ab")
        >>> found = DepthSample(4, 8, ("1",), ("R",), (((0.0, 0.2),),), made)
        >>> round(found.log10("R", "1").value, 6)
        0.043429
    """

    depth: int
    width: int
    alphas: tuple[str, ...]
    names: tuple[str, ...]
    logs: tuple[tuple[tuple[float, ...], ...], ...]
    provenance: Provenance

    def values(self, name: str, alpha: str) -> tuple[float, ...]:
        """The natural logarithms of a ratio in all networks.

        Args:
            name: ``R``, ``D``, ``Rp`` or ``Dp``.
            alpha: One of the powers.

        Raises:
            ValueError: There is no such name or power.
        """
        return self.logs[self.names.index(name)][self.alphas.index(alpha)]

    def log10(self, name: str, alpha: str) -> Estimate:
        """The mean over the networks of the decimal logarithm of a ratio.

        Args:
            name: ``R``, ``D``, ``Rp`` or ``Dp``.
            alpha: One of the powers.

        Raises:
            ValueError: There is no such name or power.
        """
        return self._mean([value / log(10.0) for value in self.values(name, alpha)])

    def square(self, name: str, alpha: str) -> Estimate:
        """The mean over the networks of the square of a ratio.

        Args:
            name: ``R``, ``D``, ``Rp`` or ``Dp``.
            alpha: One of the powers.

        Raises:
            ValueError: There is no such name or power.
        """
        logs = self.values(name, alpha)
        return self._mean([exp(2.0 * value) if value < 350 else inf for value in logs])

    def _mean(self, values: list[float]) -> Estimate:
        count, mean = len(values), fmean(values)
        spread = sqrt(variance(values, mean) / count) if count > 1 else inf
        return Estimate(mean, spread, Method.FINITE, samples=count, replicates=count)
