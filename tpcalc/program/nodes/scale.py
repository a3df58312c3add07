"""``Scale``: powers of the width and of the depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tpcalc.exponents import Ex
from tpcalc.program.types import Kind, Ref, Type
from tpcalc.program.typing import Typing


@dataclass(frozen=True, slots=True)
class Scale:
    """A vector or scalar times n**n_power * L**depth_power."""

    of: Ref
    n_power: Ex
    depth_power: Ex = Ex()

    grammar: ClassVar[str] = "scale <of> n^(<n_power>)<depth_power? L^(|)>"

    def type(self, before: Typing) -> Type:
        """The type of what is scaled."""
        found = before.types[self.of]
        if found.kind is Kind.MATRIX:
            raise before.fail(
                "a power of n in front of a matrix.", hint="Put it in front of the product W @ x."
            )
        if not isinstance(self.n_power, Ex) or not isinstance(self.depth_power, Ex):
            raise before.fail("the powers of n and L must be exponents.", hint="Use orders.as_ex.")
        return found
