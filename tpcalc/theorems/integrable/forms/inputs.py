"""Inputs of a formula: the covariances of first-layer preactivations at the start."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tpcalc import checks
from tpcalc.errors import UsageError
from tpcalc.integrals.bounded import bounded
from tpcalc.theorems.integrable.forms.gaussian import Pair

Input = Sequence[float]


def covariances(xi0: Input | None, xi: Input | None, bias: str, k: Sequence[float] | None) -> Pair:
    """k(xi_0, xi_0), k(xi_0, xi) and k(xi, xi), with k = xi . xi' + 1 under a first-layer bias."""
    _placed(bias)
    if k is not None:
        if xi0 is not None or xi is not None:
            raise UsageError("both inputs and their covariances k are given.", hint="Give one.")
        given = [Fraction(checks.real(value, "an entry of k")) for value in checks.sequence(k, "k")]
        if len(given) != 3:
            raise UsageError(
                f"k has {len(given)} numbers; it must have 3.", hint="k00, k01 and k11, in order."
            )
        k00, k01, k11 = given
    else:
        rows = [exact_row(xi0, "xi0"), exact_row(xi, "xi")]
        (k00, k01), (_, k11) = table(rows, bias)
    if k00 <= 0 or k11 < 0 or k01 * k01 > k00 * k11:
        raise UsageError(
            f"k00 = {float(k00):g}, k01 = {float(k01):g}, k11 = {float(k11):g} are no covariances "
            "of preactivations that move.",
            hint="k00 is positive, k11 is not negative and k01^2 is at most k00 k11.",
        )
    return Pair(bounded(k00), bounded(k01), bounded(k11))


def table(rows: Sequence[Sequence[Fraction]], bias: str) -> list[list[Fraction]]:
    """The covariances of first-layer preactivations, exactly."""
    _placed(bias)
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1:
        raise UsageError(f"the inputs have {lengths[0]} and {lengths[-1]} features.")
    one = Fraction(1 if bias == "first" else 0)
    return [[_dot(left, right) + one for right in rows] for left in rows]


def exact_row(value: Input | None, name: str) -> tuple[Fraction, ...]:
    """An input as exact numbers."""
    if value is None:
        raise UsageError(f"{name} is not given.", hint="Give xi0 and xi, or k=(k00, k01, k11).")
    found = checks.sequence(value, name)
    if not found:
        raise UsageError(f"{name} is empty.")
    return tuple(Fraction(checks.real(entry, f"an entry of {name}")) for entry in found)


def _placed(bias: str) -> None:
    if bias not in ("first", "none"):
        raise UsageError(
            f"bias is {bias!r}; the formula is for biases in the first layer or nowhere.",
            hint="Write bias='first' or bias='none'; tp.limit takes all networks.",
        )


def _dot(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))
