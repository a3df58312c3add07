"""Numbers times powers of n as a user writes them: ``init="0.02 n^(-1/2)"``."""

from __future__ import annotations

import re
from fractions import Fraction

from tpcalc.dsl.lines import misuse
from tpcalc.dsl.operands import number_or_none
from tpcalc.dsl.powers import Power
from tpcalc.errors import ScaleError
from tpcalc.exponents import Ex, parse_ex
from tpcalc.functions.numbers import Number

Scaled = Number | str | Power
_TEXT = re.compile(
    r"(?P<number>[0-9.]+(?:e[+-]?[0-9]+)?(?:\s*/\s*[0-9]+)?)?\s*\*?\s*"
    r"(?P<n>n(?:\s*(?:\^|\*\*)\s*(?:\((?P<inner>[^()]*)\)|(?P<bare>[+-]?[0-9.]+)))?)?"
)


def scaled(value: Scaled, what: str) -> tuple[Number, Ex]:
    """A number from 0 and a power of n.

    Example:
        >>> [(str(k), str(power)) for k, power in (scaled(t, "init") for t in ("n^(-1/2)", "3/2"))]
        [('1', '-1/2'), ('3/2', '0')]
    """
    found = _read(value)
    if found is None or not 0 <= found[0] < float("inf") or found[1].constant is None:
        raise misuse(
            f"{what} is {value!r}.",
            "It is a number from 0, a power of n, or both: 'n^(-1/2)', '0.02 n^(-1/2)'.",
        )
    return found


def _read(value: object) -> tuple[Number, Ex] | None:
    if isinstance(value, Power):
        return (value.factor, value.n_power) if value.depth_power == Ex() else None
    if not isinstance(value, str):
        number = number_or_none(value)
        return None if number is None else (number, Ex())
    found = _TEXT.fullmatch(value.strip())
    if found is None or not value.strip():
        return None
    try:
        exponent = found["inner"] or found["bare"] or ("1" if found["n"] else "0")
        factor = Fraction((found["number"] or "1").replace(" ", ""))
        return factor, parse_ex(exponent)
    except (ScaleError, ValueError, ZeroDivisionError):
        return None
