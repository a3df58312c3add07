"""Free tables of exponents: ``ac`` as the package writes them, ``abc`` with initial scales."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tpcalc.errors import StudyError
from tpcalc.exponents import Ex
from tpcalc.sources import INTEGRABLE
from tpcalc.training.parameterization import (
    Argument,
    Exponents,
    ParameterizationFamily,
    Rule,
    exponent,
)

SOURCE = INTEGRABLE.at("Definition 2.1, Remark 2.1")
ROW = "one exponent for all layers, three for (first, hidden, last), or L + 1"
Table = Callable[[int, int], tuple[Ex, ...]]


def _entries(value: object, what: str) -> tuple[Ex, ...]:
    """A row of exponents from a sequence, a text with commas, or a single number."""
    if isinstance(value, str):
        parts: Sequence[object] = value.split(",")
    elif isinstance(value, Sequence):
        parts = value
    else:
        parts = (value,)
    if not parts:
        raise StudyError(f"the table {what} is empty.", hint=f"Give {ROW}.")
    return tuple(exponent(part, what=f"an entry of {what}") for part in parts)


def _row(entries: tuple[Ex, ...], depth: int, what: str) -> tuple[Ex, ...]:
    """The row spread over the layers 1..L+1."""
    if len(entries) == 1:
        return entries * (depth + 1)
    if len(entries) == 3:
        return (entries[0], *(entries[1],) * (depth - 1), entries[2])
    if len(entries) != depth + 1:
        raise StudyError(
            f"the table {what} has {len(entries)} exponents; a network of depth {depth} has "
            f"{depth + 1} layers.",
            hint=f"Give {ROW}.",
        )
    return entries


def table(value: object, what: str) -> Table:
    """Exponents by depth and step; rows one for each step, the last one for all that follow.

    Example:
        >>> [str(c) for c in table("-1, -2, c", "c")(3, 0)]
        ['-1', '-2', '-2', 'c']
    """
    by_step = (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and any(isinstance(row, Sequence) and not isinstance(row, str) for row in value)
    )
    given: Sequence[object] = value if by_step and isinstance(value, Sequence) else (value,)
    rows = [_entries(row, what) for row in given]
    return lambda depth, step: _row(rows[min(step, len(rows) - 1)], depth, what)


def make_ac(a: object, c: object, bias_a: object = None, bias_c: object = None) -> Rule:
    """The parameterization with the tables a and c.

    Source: Hajjar, Chizat, Giraud, Definition 2.1.
    """
    weights, rates = _entries(a, "a"), table(c, "c")
    biases = weights if bias_a is None else _entries(bias_a, "bias_a")
    bias_rates = rates if bias_c is None else table(bias_c, "bias_c")

    def exponents(depth: int, step: int) -> Exponents:
        return Exponents(
            _row(weights, depth, "a"),
            rates(depth, step),
            _row(biases, depth, "bias_a"),
            bias_rates(depth, step),
        )

    return exponents


def make_abc(a: object, b: object, c: object, *, gauge: int = 2) -> Rule:
    """The parameterization with multipliers n^(-a), initial entries N(0, n^(-2b)), rates n^(-c).

    With w' = n^b w of order-one entries the multiplier is n^(-a-b), and a step of w by
    -eta n^(-c) grad_w is one of w' by -eta n^(b-c) grad_w = -eta n^(2b-c) grad_{w'}: so a_l + b_l
    and c_l - 2 b_l are the exponents of the ac form; c_l - b_l where steps do not grow with the
    gradient.

    Source: Hajjar, Chizat, Giraud, Remark 2.1; Yang and Hu, section 3.
    """
    multipliers, scales, rates = _entries(a, "a"), _entries(b, "b"), table(c, "c")

    def exponents(depth: int, step: int) -> Exponents:
        start = _row(scales, depth, "b")
        weights = tuple(x + y for x, y in zip(_row(multipliers, depth, "a"), start, strict=True))
        moved = tuple(x - gauge * y for x, y in zip(rates(depth, step), start, strict=True))
        return Exponents(weights, moved, weights, moved, stored=start)

    return exponents


ENTRIES = (
    ParameterizationFamily(
        "ac",
        make=make_ac,
        text="free tables: weights n^(-a_l) w with N(0, 1) entries, learning rates n^(-c_l)",
        source=SOURCE,
        parameters=(
            Argument("a", f"powers of the weights: {ROW}", required=True),
            Argument("c", f"powers of the learning rates: {ROW}; rows by step", required=True),
            Argument("bias_a", "powers of the biases; as the weights by default"),
            Argument("bias_c", "learning rates of the biases; as the weights by default"),
        ),
        entrywise=make_ac,
    ),
    ParameterizationFamily(
        "abc",
        make=make_abc,
        text="free tables: weights n^(-a_l) w with N(0, n^(-2 b_l)) entries, rates n^(-c_l)",
        source=SOURCE,
        parameters=(
            Argument("a", f"multipliers: {ROW}", required=True),
            Argument("b", f"initial scales: {ROW}", required=True),
            Argument("c", f"learning rates: {ROW}; rows by step", required=True),
        ),
        entrywise=partial(make_abc, gauge=1),
    ),
)
