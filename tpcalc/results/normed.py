"""``Normed``: activations that are made for a nonlinearity coefficient."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from tpcalc.errors import StudyError
from tpcalc.results.estimate import Estimate
from tpcalc.results.sheet import LengthRow
from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown

SLACK = 1e-9
IMPORT = "import torch"


@dataclass(frozen=True, slots=True)
class NormedRow(Shown):
    """An activation F(s) = c tau(l, s) + b, for s ~ N(0, q).

    Args:
        name: The activation that it is made of.
        method: How tau(l, s) is made of it.
        amount: l.
        scale: c.
        shift: b.
        nlc: n(q, 0), its nonlinearity coefficient.
        excess: The same less 1, known relative to itself.
        stability: The Gaussian stability number R.
        square: q.
        layers: The layers where it stands.
        formula: F, of x0.
        code: A function of torch; empty where there is none.
        expr: F, as activations are given.
    """

    name: str
    method: str
    amount: Estimate
    scale: Estimate
    shift: Estimate
    nlc: Estimate
    excess: Estimate
    stability: Estimate
    square: float
    layers: tuple[int, ...]
    formula: str
    code: str
    expr: Any = field(repr=False)


@dataclass(frozen=True)
class Normed(Shown):
    """An activation made more or less linear, of mean 0 and length 1: alone, or in a network.

    It is an activation itself: every question of ``tp.signal`` takes it for one.

    Args:
        target: The coefficient that was asked for; None where the amount was.
        nlc: The coefficient that there is, of the activation or of the network.
        rows: The activations; several where layers differ.
        roots: All amounts that were found to meet the target, the one that is taken first.
        monotone: The amounts around it over which the coefficient falls, or rises.
        reach: The least and the largest coefficient that amounts give.
        base: The coefficient of the activation scaled to length 1 and no more; None: not known.
        lengths: The first activation on inputs of other lengths, as when weights grow.
        depth: How many of these activations follow each other.
        growth: What relative deviations of lengths are multiplied by along them: R to the depth,
            less what sums and normalisations take out.
        steady: ``"stable"``, ``"edge"`` or ``"unstable"``: whether they grow.
        notes: What a reader should know besides.
        provenance: What it was computed from and with.
        network: The network with these activations; None where there is none.

    Source: Schoenherr, The nonlinearity coefficient, chapter 7.
    """

    target: float | None
    nlc: Estimate
    rows: tuple[NormedRow, ...]
    roots: tuple[float, ...]
    monotone: tuple[float, float]
    reach: tuple[float, float]
    base: Estimate | None
    lengths: tuple[LengthRow, ...]
    depth: int
    growth: float
    steady: str
    notes: tuple[str, ...]
    provenance: Provenance
    network: Any = field(repr=False, default=None)

    @property
    def only(self) -> NormedRow:
        """The one activation."""
        if len(self.rows) > 1:
            raise StudyError(
                f"there are {len(self.rows)} activations, one for each second moment.",
                hint="Take them from .rows.",
            )
        return self.rows[0]

    @property
    def name(self) -> str:
        """What it is called as an activation."""
        return f"normed {self.only.name}"

    expr = property(attrgetter("only.expr"), doc="F, as activations are given.")
    activation = property(attrgetter("only.expr"), doc="The same.")
    amount = property(attrgetter("only.amount"), doc="The amount l.")
    scale = property(attrgetter("only.scale"), doc="The factor c.")
    shift = property(attrgetter("only.shift"), doc="The constant b.")
    stability = property(attrgetter("only.stability"), doc="The Gaussian stability number R.")
    formula = property(attrgetter("only.formula"), doc="F, of x0.")

    @property
    def code(self) -> str:
        """Functions of torch, to be pasted: one for each activation."""
        return "\n\n\n".join(
            [IMPORT, *(row.code.removeprefix(f"{IMPORT}\n\n\n") for row in self.rows)]
        )

    @property
    def base_inside(self) -> bool:
        """Whether the base activation is known to have a coefficient that amounts give."""
        low, high = self.reach
        return self.base is not None and low - SLACK <= self.base.value <= high + SLACK


@dataclass(frozen=True, slots=True)
class StudyRow(Shown):
    """An activation of study B: a linearization method at an amount.

    Args:
        method: The linearization method.
        amount: l.
        fit: ``"both"``: mean 0 and length 1; ``"scale"``: length 1 alone, the base.
        scale: c.
        shift: b.
        nlc: n(1, 0).
        excess: The same less 1, known relative to itself.
        product: n(1, 0) to the number of activations.
        stability: The Gaussian stability number R.

    Source: Schoenherr, The nonlinearity coefficient, tables 3.1 and A.2.
    """

    method: str
    amount: float
    fit: str
    scale: Estimate
    shift: Estimate
    nlc: Estimate
    excess: Estimate
    product: Estimate
    stability: Estimate
