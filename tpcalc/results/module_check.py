"""``ModuleCheck``: first steps of real modules, beside what is derived of them."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.results.exponent import Exponent
from tpcalc.results.first_order import MeasuredSize
from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown


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
