"""Expectations of products of functions of jointly Gaussian variables, as floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tpcalc.errors import EvaluationError
from tpcalc.functions import Call, Expr, Fn
from tpcalc.functions.expr import walk
from tpcalc.functions.tape import evaluate
from tpcalc.integrals.computed import Computed
from tpcalc.integrals.exact.ball import UNIT, Ball, finite_error
from tpcalc.integrals.exact.blocks import in_blocks, mapped, shape_of
from tpcalc.integrals.exact.delta import DELTA, no_density
from tpcalc.integrals.exact.groups import Group, grouped
from tpcalc.integrals.exact.piece import Unsupported, level
from tpcalc.integrals.exact.pieces import decompose
from tpcalc.integrals.exact.plan import compiled
from tpcalc.integrals.exact.small import with_series


def supported(factors: Sequence[Expr]) -> bool:
    """Whether the functions have a form that is integrated, for means and covariances that allow.

    Three half-lines (powers of smooth steps count each) need means of 0, as do real powers.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> supported([lookup("gelu").fn.expr] * 2), supported([lookup("tanh").fn.expr])
        (True, False)
    """
    return compiled(tuple(factors)) is not None


def expectation(
    factors: Sequence[Expr], mean: Sequence[Any], cov: Sequence[Sequence[Any]]
) -> Computed | None:
    """E[f_1(G_1) ... f_k(G_k)] for jointly Gaussian G, in closed form.

    The covariances are taken to be exactly the floats given; they may be singular. A variance of 0
    makes its variable a number, at which the function itself is taken.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> relu = lookup("relu").fn.expr
        >>> found = expectation([relu, relu], [0, 0], [[1.0, 0.5], [0.5, 1.0]])
        >>> round(found.value, 11), found.error < 1e-14
        (0.30449889052, True)
    """
    means = [_entry(value) for value in mean]
    count = len(factors)
    rows = [[_entry(cov[min(i, j)][max(i, j)]) for j in range(count)] for i in range(count)]
    parts = []
    for group in grouped(tuple(factors), means, rows):
        part = _group(group)
        if part is None:
            return None
        parts.append(part)
    found = parts[0] if parts else Ball(1.0)
    for part in parts[1:]:
        found = found * part
    error = found.error() if len(parts) == 1 else finite_error(found.error())
    if not getattr(found.value, "shape", ()):
        return Computed(float(found.value), float(error))
    return _equal_apart(factors, means, rows, Computed(found.value, error))


def _equal_apart(
    factors: Sequence[Expr], mean: list[Any], cov: list[list[Any]], found: Computed
) -> Computed:
    """Entries of arrays where two variables are equal, and not in all: they are one function."""
    import numpy as np

    finite = np.isfinite(found.error)
    if finite.all() or not finite.any():
        return found
    lost = np.broadcast_to(~finite, found.value.shape)
    pairs = [(i, j) for j in range(len(factors)) for i in range(j)]
    for i, j in pairs:
        same = (cov[i][i] == cov[j][j]) & (cov[i][j] == cov[i][i]) & (mean[i] == mean[j])
        chosen = lost & same
        if chosen.any():

            def pick(entry: Any, chosen: Any = chosen) -> Any:
                whole = hasattr(entry, "shape")
                return np.broadcast_to(entry, chosen.shape)[chosen] if whole else entry

            own = expectation(factors, [*map(pick, mean)], [[*map(pick, row)] for row in cov])
            if own is not None:
                value = np.array(found.value)
                error = np.array(np.broadcast_to(found.error, value.shape))
                value[chosen], error[chosen] = own.value, own.error
                found, lost = Computed(value, error), lost & ~chosen
    return found


def _entry(value: Any) -> Any:
    """A float or an array; the number 0 as such."""
    import numpy as np

    if isinstance(value, np.ndarray) and value.ndim:
        return np.asarray(value, dtype=np.float64)
    number = float(value)
    return 0 if number == 0.0 else number


def _group(group: Group) -> Ball | None:
    """The expectation over variables that depend on each other."""
    if compiled(group.factors) is None:
        return None
    import numpy as np

    # What is infinite on the way ends as an infinite bound.
    with np.errstate(all="ignore"):
        try:
            return in_blocks(group, lambda part: by_regime(part, with_series))
        except Unsupported:
            return None


def by_regime(group: Group, work: Callable[[Group], Ball]) -> Ball:
    """The expectation, where variables without variance are numbers."""
    import numpy as np

    variances = [group.cov[i][i] for i in range(len(group.mean))]
    least = [x if isinstance(x, int | float) else x.min(initial=1.0) for x in variances]
    if any(x < 0 for x in least):
        raise EvaluationError("a variance is negative.", hint="Give covariances of Gaussians.")
    if not any(x == 0 for x in least):
        return work(group)
    codes: Any = 0
    for i, variance in enumerate(variances):
        codes = codes + (1 << i) * np.equal(variance, 0)
    if not np.ndim(codes) or np.all(codes == codes.flat[0]):
        return _some_fixed(group, int(np.asarray(codes).flat[0]), work)
    shape = shape_of(group)
    codes = np.broadcast_to(codes, shape)
    value, error = np.empty(shape), np.empty(shape)
    for code in np.unique(codes):
        chosen = codes == code

        def pick(entry: Any, chosen: Any = chosen) -> Any:
            return np.broadcast_to(entry, shape)[chosen]

        found = _some_fixed(mapped(group, pick), int(code), work)
        value[chosen] = found.value
        error[chosen] = found.error()
    return Ball(value, 0.0, error)


def _some_fixed(group: Group, code: int, work: Callable[[Group], Ball]) -> Ball:
    """The expectation where the variables of a bit set are numbers."""
    fixed = [i for i in range(len(group.mean)) if code >> i & 1]
    free = [i for i in range(len(group.mean)) if not code >> i & 1]
    out = Ball(1.0)
    for i in fixed:
        out = out * at_point(group.factors[i], group.mean[i])
    if not free:
        return out
    rest = Group(
        tuple(group.factors[i] for i in free),
        tuple(group.mean[i] for i in free),
        tuple(tuple(group.cov[i][j] for j in free) for i in free),
    )
    return out * work(rest)


def at_point(factor: Expr, point: Any) -> Ball:
    """f(point) for a float or an array.

    The bound is that of a sum of its pieces in any order.
    """
    import numpy as np

    if any(isinstance(part, Call) and part.atom == DELTA for part in walk(factor)):
        raise no_density()
    at = np.float64(point) if type(point) in (int, float) else point
    value = evaluate(Fn(factor, 1), [at])
    size: Any = 0.0
    z = np.abs(at)
    for piece, polynomial in decompose(factor).items():
        exponent = level(piece.square) * at * at + level(piece.slope) * at
        height = np.exp(exponent) * (1 + np.abs(exponent))
        if piece.wave is not None:
            height = height * (1 + np.abs(level(piece.wave.frequency) * at))
        if piece.positive is not None:
            height = height * z ** float(piece.positive[1]) * (1 + float(piece.positive[1]))
        for degree, coefficient in polynomial.items():
            size = size + abs(level(coefficient)) * (1 + degree) * z**degree * height
    if not np.ndim(value):
        value, size = float(value), float(size)
    return Ball(value, 0.0, 64 * UNIT * size)
