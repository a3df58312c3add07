"""Sizes and powers at a given width: what a program's dimension classes and scales become."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from tpcalc import checks
from tpcalc.errors import ScaleError, UsageError
from tpcalc.exponents import without_number
from tpcalc.program.nodes import Dim, Scale


def check_width(width: object) -> int:
    """A width as an integer of at least 1.

    Example:
        >>> check_width(256)
        256
    """
    return checks.whole(width, "a width", least=1, hint="Try 256.")


def check_widths(widths: Sequence[int]) -> list[int]:
    """Several widths, each once.

    Example:
        >>> check_widths((64, 256))
        [64, 256]
    """
    alone = hasattr(widths, "__index__") and not getattr(widths, "ndim", 0)
    given = checks.sequence(
        widths, "widths", hint=f"Write widths=[{widths if alone else '64, 256'}]."
    )
    found = [check_width(width) for width in given]
    if not found:
        raise UsageError("widths is empty.", hint="Write widths=[64, 256].")
    for index, width in enumerate(found):
        if width in found[:index]:
            raise UsageError(
                f"the width {width} is given twice.",
                hint="Give each width once; seeds= counts the networks of a width.",
            )
    return found


def dim_sizes(dims: Iterable[Dim], width: int) -> dict[str, int]:
    """The size ratio * width of each dimension class.

    Example:
        >>> dim_sizes([Dim("n"), Dim("m", Fraction(3, 2))], 10)
        {'n': 10, 'm': 15}
    """
    dims = tuple(dims)
    sizes: dict[str, int] = {}
    for dim in dims:
        size = dim.ratio * width
        if size.denominator != 1 or size < 1:
            step = math.lcm(*(other.ratio.denominator for other in dims))
            near = max(step, step * round(Fraction(width, step)))
            raise UsageError(
                f"the dimension {dim.name!r} has size {dim.ratio} * n, which is {size} at "
                f"width {width}, and no whole number of at least 1.",
                hint=f"The widths that work are the multiples of {step}: take {near}.",
            )
        sizes[dim.name] = int(size)
    return sizes


def scale_factor(
    node: Scale, width: int, values: Mapping[str, Fraction | int] | None, place: str
) -> float:
    """The number n**n_power * L**depth_power of a Scale node.

    Example:
        >>> from tpcalc.exponents import Ex
        >>> scale_factor(Scale(0, Ex.number(Fraction(-1, 2))), 100, None, "%0")
        0.1
    """
    point = {name: Fraction(value) for name, value in (values or {}).items()}
    for power in (node.n_power, node.depth_power):
        missing = sorted(power.symbols - set(point))
        if missing:
            raise without_number(missing[0], where=place)
    factor = _power(width, node.n_power.at(point))
    if node.depth_power.terms:
        if point.get("L", Fraction(0)) <= 0:
            raise ScaleError(
                f"the power L**({node.depth_power}) needs the depth L as a positive number.",
                where=place,
                hint="Give it, as in values={'L': 8}.",
            )
        factor *= _power(point["L"], node.depth_power.at(point))
    return factor


def _power(base: int | Fraction, exponent: Fraction) -> float:
    if exponent == Fraction(-1, 2):  # the commonest power, correctly rounded
        return 1 / math.sqrt(base)
    try:
        return float(float(base) ** float(exponent))
    except OverflowError:
        return math.inf


def rounded_up(width: float) -> int:
    """A width rounded up to two digits."""
    step: int = 10 ** max(math.floor(math.log10(width)) - 1, 0)
    return math.ceil(width / step) * step
