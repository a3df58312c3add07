"""``DepthPowers``: powers of the depth in front of a block and in the updates of its weights."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from tpcalc import checks
from tpcalc.errors import StudyError
from tpcalc.exponents import Ex
from tpcalc.functions.numbers import Number, root


def one_base(own: int, given: int | None, name: str, where: str = "") -> int:
    """The base depth, where a parameterization has one (1: none) and one may be given besides."""
    if given is None:
        return own
    found = checks.whole(given, "base", least=1, hint="A number of blocks.")
    if own not in (1, found):
        raise StudyError(
            f"the base is {found}, and that of {name} is {own}.", where=where, hint="Say it once."
        )
    return found


@dataclass(frozen=True, slots=True)
class DepthPowers:
    """L^(-alpha) in front of a block, L^(-gamma) in the updates of its weights.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, sections 6.3 and 10.2, Table 1.

    Example:
        >>> from tpcalc.exponents import as_ex
        >>> ode = DepthPowers(as_ex(1), as_ex(0), base=8)
        >>> str(ode.raw(1)), str(ode.raw(0)), str(ode.power(16, -ode.alpha))
        ('1', '0', '1/2')
    """

    alpha: Ex  # the power in front of a block
    gamma: Ex  # the power of updates
    base: int = 1  # the number of blocks L0 that counts as one: powers are of L / L0

    def gradient(self, degree: int) -> Ex:
        """The delta that counts: gradients are L^(-alpha), and degree 0 does not see that."""
        return self.alpha if degree == 1 else Ex()

    def raw(self, degree: int) -> Ex:
        """The power of L of a learning rate as it is typed."""
        return self.gradient(degree) - self.gamma

    @classmethod
    def of_raw(cls, alpha: Ex, raw: Ex, degree: int, base: int = 1) -> Self:
        """The powers of a script.

        Example:
            >>> from tpcalc.exponents import as_ex
            >>> str(DepthPowers.of_raw(as_ex(1), as_ex(1), 1).gamma)
            '0'
        """
        return cls(alpha, cls(alpha, Ex(), base).gradient(degree) - raw, base)

    def power(self, depth: int, power: Ex) -> Number:
        """(L / L0)^power."""
        number: Fraction | None = power.constant
        with suppress(OverflowError):
            if number is not None:
                return root(Fraction(depth, self.base), number)
        raise StudyError(
            f"({depth}/{self.base})^({power}) is no number in the range of a float.",
            hint="Symbols are for the depth L; give powers such as 1/2.",
        )
