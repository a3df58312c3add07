"""Closed forms of papers: a number that a formula gives, with its place, and records of such."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from tpcalc.exponents import Ex
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.results import Estimate
from tpcalc.shown import Shown
from tpcalc.sources import INTEGRABLE, Source

RESNETS = Source(
    "Marion, Fermanian, Biau, Vert, Scaling ResNets in the large-depth regime", arxiv="2206.06929"
)


@dataclass(frozen=True, slots=True)
class ClosedForm(Shown):
    r"""A number that a formula of a paper gives.

    Args:
        name: What it is called there: ``"lambda_1"``.
        value: The number, how it was found and how sure it is.
        formula: The formula, in LaTeX.
        source: Where it is.

    Example:
        >>> from tpcalc.results import Method
        >>> half = Estimate(0.5, 0.0, Method.EXACT)
        >>> print(ClosedForm("mu_2", half, r"\mathbb{E}[U_+^2]", Source("a paper", "App. M")))
        mu_2 = 0.5 (exact)
        >>> float(ClosedForm("mu_2", half, "", Source("a paper")))
        0.5
    """

    name: str
    value: Estimate
    formula: str
    source: Source

    def __float__(self) -> float:
        return self.value.value

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"


class Told:
    """Records of closed forms and exponents, printed a line for each field."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = []
        for item in fields(self):  # type: ignore[arg-type]  # dataclasses inherit from this
            value = getattr(self, item.name)
            rows = value if isinstance(value, tuple) else (value,)
            if any(isinstance(row, Ex) for row in rows):
                lines.append(f"{item.name}: {', '.join(map(str, rows))}")
            else:
                lines += [str(row) for row in rows]
        return "\n".join(lines)


def closed(name: str, value: Bounded | float, formula: str, item: str) -> ClosedForm:
    """A number with its formula and its place in the paper."""
    return ClosedForm(name, bounded(value).estimate(), formula, INTEGRABLE.at(item))


def per_layer(
    name: str, values: Iterable[Bounded], formula: str, item: str, first: int = 1
) -> tuple[ClosedForm, ...]:
    """One number for each layer."""
    return tuple(
        closed(f"{name}_{layer}", value, formula, item) for layer, value in enumerate(values, first)
    )
