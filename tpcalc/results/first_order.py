"""``FirstOrder``: what first steps do: to the output, and to what functions read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tpcalc.results.exponent import NONE, Exponent
from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown

FINE = ("learns", "output later", "exactly 0")  # of what first steps of a parameter do


def kind_of(name: str) -> str:
    """The name of a parameter or a read point without the number of its block.

    Example:
        >>> kind_of("attn.0.query"), kind_of("h[fc.11]"), kind_of("W1")
        ('attn.*.query', 'h[fc.*]', 'W1')
    """
    return re.sub(r"(?<=\.)\d+\b", "*", name)


@dataclass(frozen=True, slots=True)
class MeasuredSize:
    """A size in explicit networks, beside its power of n.

    Args:
        widths: Of the networks.
        sizes: Geometric means over them, width by width.
        errors: Standard errors of their logarithms.
        slope: Of their logarithms in that of n; None where they are 0, or no numbers.
        error: Its standard error.
        word: agrees, differs or open, as two standard errors tell half powers apart; of a bound
            agrees what lies below it.
        value: The size at the width that was asked for, by the power, from the widest networks;
            None where slope and power do not agree.
        one: The width at which what grows is 1.
    """

    widths: tuple[int, ...]
    sizes: tuple[float, ...]
    errors: tuple[float, ...]
    slope: float | None
    error: float | None
    word: str
    value: float | None = None
    one: int | None = None


@dataclass(frozen=True, slots=True)
class ParameterMove:
    """What the first steps of a parameter do. Sizes are powers of the width n.

    Rate and gradient are those of the weights as they stand in the network, powers of n included.

    Args:
        name: The parameter.
        role: Its role: input, hidden, readout, bias, finite.
        rate: The p of its learning rate n^p.
        gradient: The size of the entries of its gradient at the start.
        output: Of what its first step adds to the output.
        later: The same at the later steps that were followed, or at the first where it is larger.
        inside: The largest change that its first step makes where a function reads.
        where: There.
        starts: The step at which it first has a gradient, from 1; 0: at none.
        word: explodes, learns, output later, inside only, slow, frozen or exactly 0; "may explode"
            where that rests on a bound.
        status: Of the size of the gradient: exact, measured, bound or open.
        why: What decided it.
        measured: What its first step adds to the output, in explicit networks.
        line: The user's line that declares it.
    """

    name: str
    role: str
    rate: Exponent
    gradient: Exponent
    output: Exponent
    later: Exponent
    inside: Exponent
    where: str
    starts: int
    word: str
    status: str
    why: str = ""
    measured: MeasuredSize | None = None
    line: str = ""


@dataclass(frozen=True, slots=True)
class ReadPoint:
    """An output, or what a function with a scale of its own reads.

    Args:
        name: What reads it, and where it is written.
        size: Its size at the start.
        change: The largest change that a first step makes of it.
        later: The largest change of later steps that were followed.
        who: The parameters whose first steps make the largest change.
        status: Of the change: exact, measured, bound or open.
        why: What decided it.
        start: Its size at the start, in explicit networks.
        moved: Its change by the first step of the one of them that changes it most there.
        by: This one.
    """

    name: str
    size: Exponent
    change: Exponent
    later: Exponent
    who: tuple[str, ...]
    status: str
    why: str = ""
    start: MeasuredSize | None = None
    moved: MeasuredSize | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class StableRate:
    """The largest learning rate n^p of a parameter at which none of its steps grows.

    Of the weights as they stand in the network, powers of n included.

    Args:
        name: The parameter.
        role: Its role.
        rate: p; nothing where no rate has an effect.
        given: The p of the parameterization.
        where: What decides: a read point or the output.
        factor: Of the rate at one width what it is at another, where two are given.
        other: What the output alone would allow where a read point decides, or read points alone
            where the output does, if that is more.
        beside: What allows it.
    """

    name: str
    role: str
    rate: Exponent
    given: Exponent
    where: str
    factor: float | None = None
    other: Exponent = NONE
    beside: str = ""


@dataclass(frozen=True, slots=True)
class StableEdit:
    """Edits of a network after which no first step grows, as was tried by bounds.

    Args:
        lines: What to write, a line each.
        word: What the network does then, of ``FirstOrder.word``.
    """

    lines: tuple[str, ...]
    word: str


@dataclass(frozen=True, slots=True)
class FirstOrder(Shown):
    """What a network does at first order: one step of every parameter from the start.

    Args:
        word: unstable at the start, unstable, may be unstable, output grows, trivial, kernel or
            feature learning.
        status: Of the facts that decide it, the least certain: exact, measured, bound or open.
        facts: What decides it.
        rows: The parameters.
        points: The read points.
        optimizer: The optimizer.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.
        width: The width of measured values.
    """

    word: str
    status: str
    facts: tuple[str, ...]
    rows: tuple[ParameterMove, ...]
    points: tuple[ReadPoint, ...]
    optimizer: str
    provenance: Provenance
    notes: tuple[str, ...] = ()
    width: int | None = None

    def __getitem__(self, name: str) -> ParameterMove:
        """A parameter.

        Args:
            name: Its name.

        Raises:
            KeyError: There is none.
        """
        return {row.name: row for row in self.rows}[name]


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """A size in modules of several widths.

    Args:
        name: A parameter, or a call of a module: its path, ``@1`` after that of its second call,
            ``""`` of the whole.
        module: The class of the module.
        line: Where it is written.
        what: ``"term"``: what the step of a parameter adds to a linear function of the outputs, to
            first order; ``"gradient"``, ``"step"``: root mean squares of its entries; ``"start"``,
            ``"change"``: those of the output of a module at the start, and of its change since.
        step: The step, from 1; 0 at the start.
        low: The lowest power that is derived; nothing where none is, -oo where a bound is.
        high: The highest.
        measured: What was measured, with its word: agrees, differs or open beside these powers.
        last: The slope between the two widest, where it is another one: the curve still bends.
    """

    name: str
    module: str
    line: str
    what: str
    step: int
    low: Exponent
    high: Exponent
    measured: MeasuredSize
    last: float | None = None

    @property
    def label(self) -> str:
        """The name in a sentence."""
        return self.name or "the module"

    @property
    def powers(self) -> str:
        """The powers that are derived, as ``"n^(-1/2) to n^0"``; ``"0"`` of what is 0."""
        if not self.predicted:
            return ""
        if self.high.is_zero:
            return "0"
        high = self.high.raised("n")
        if self.low == self.high:
            return high
        return f"at most {high}" if self.low.is_zero else f"{self.low.raised('n')} to {high}"

    @property
    def predicted(self) -> bool:
        """Whether anything is derived of it."""
        return self.high.exact is not None or self.high.is_zero

    @property
    def word(self) -> str:
        """Agrees, differs or open; nothing where nothing is derived."""
        return self.measured.word if self.predicted else ""

    @property
    def is_zero(self) -> bool:
        """Whether it is exactly 0, but for rounding."""
        return self.measured.slope is None and self.measured.word != "open"


@dataclass(frozen=True, slots=True)
class ModuleCheck(Shown):
    """First steps of real modules of several widths, beside what is derived of them.

    Args:
        code: Whether the code does what the recipe says, as it was derived: ``"agrees"``,
            ``"differs"`` or ``"open"``.
        recipe: What the recipe does by its first steps, of ``FirstOrder.word``; empty: not asked.
        facts: What decides the first.
        rows: The sizes: modules in the order of their calls, parameters, step by step.
        rate: The factor of the learning rates: small, so that steps are nearly linear.
        seeds: Modules of each width.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.
    """

    code: str
    recipe: str
    facts: tuple[str, ...]
    rows: tuple[ModuleRow, ...]
    rate: float
    seeds: int
    provenance: Provenance
    notes: tuple[str, ...] = ()

    def __getitem__(self, spot: tuple[str, str, int]) -> ModuleRow:
        """A size.

        Args:
            spot: What, of which name, at which step: ``("term", "head.weight", 1)``.

        Raises:
            KeyError: There is none.
        """
        return {(row.what, row.name, row.step): row for row in self.rows}[spot]
