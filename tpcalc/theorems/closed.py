"""``ClosedForm``: a number that a formula of a paper gives."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.results import Estimate
from tpcalc.shown import Shown
from tpcalc.sources import Source


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
