"""Variables in groups that do not depend on each other, and their arrays block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tpcalc.functions import Expr
from tpcalc.functions.expr import mul
from tpcalc.integrals.connected import connected
from tpcalc.integrals.exact.ball import Ball, finite_error


@dataclass(frozen=True, slots=True)
class Group:
    """Functions of jointly Gaussian variables."""

    factors: tuple[Expr, ...]  # the functions
    mean: tuple[Any, ...]
    cov: tuple[tuple[Any, ...], ...]  # covariances, full rows


def grouped(
    factors: tuple[Expr, ...], mean: Sequence[Any], cov: Sequence[Sequence[Any]]
) -> list[Group]:
    """The groups; the expectation is the product of theirs."""
    kept: list[int] = []
    functions: dict[int, Expr] = {}
    for i, factor in enumerate(factors):
        twin = next((j for j in kept if _equal_variables(i, j, mean, cov)), None)
        if twin is None:
            kept.append(i)
            functions[i] = factor
        else:
            functions[twin] = _product(functions[twin], factor)
    together = connected(kept, lambda i, j: not _is_zero(cov[i][j]))
    return [chosen(functions, mean, cov, members) for members in together]


def chosen(functions: Any, mean: Any, cov: Any, members: Sequence[int]) -> Group:
    """Some of the variables."""
    return Group(
        tuple(functions[i] for i in members),
        tuple(mean[i] for i in members),
        tuple(tuple(cov[i][j] for j in members) for i in members),
    )


@lru_cache(maxsize=1024)
def _product(one: Expr, other: Expr) -> Expr:
    return mul((one, other))


def _is_zero(value: Any) -> bool:
    return type(value) is int and value == 0


def _equal_variables(i: int, j: int, mean: Sequence[Any], cov: Sequence[Sequence[Any]]) -> bool:
    return (
        not _is_zero(cov[i][j])
        and _same(cov[i][i], cov[j][j])
        and _same(cov[i][i], cov[i][j])
        and _same(mean[i], mean[j])
    )


def _same(x: Any, y: Any) -> bool:
    """Whether two entries are the same everywhere."""
    if x is y:
        return True
    if hasattr(x, "shape") or hasattr(y, "shape"):
        import numpy as np

        return (
            (
                getattr(x, "shape", None) == getattr(y, "shape", None)
                and x.flat[0] == y.flat[0]
                and bool(np.array_equal(x, y))
            )
            if getattr(x, "size", 0) and getattr(y, "size", 0)
            else False
        )
    return bool(x == y)


BLOCK = 8192


def shape_of(group: Group) -> tuple[int, ...]:
    """The shape that all entries broadcast to."""
    import numpy as np

    rows = group.mean, *group.cov
    return np.broadcast_shapes(*(getattr(entry, "shape", ()) for row in rows for entry in row))


def mapped(group: Group, change: Callable[[Any], Any]) -> Group:
    """The group with every array changed; numbers stay."""

    def of(entry: Any) -> Any:
        return change(entry) if hasattr(entry, "shape") else entry

    return replace(
        group,
        mean=tuple(of(entry) for entry in group.mean),
        cov=tuple(tuple(of(entry) for entry in row) for row in group.cov),
    )


def by_code(codes: Any, group: Group, work: Callable[[Group, int], Ball]) -> Ball:
    """A function of a group on arrays whose entries are of kinds, one kind after the other."""
    import numpy as np

    flat = np.ravel(codes)
    if not flat.size or (flat == flat[0]).all():
        return work(group, int(flat[:1].sum()))
    shape = shape_of(group)
    codes = np.broadcast_to(codes, shape)
    value, error = np.empty(shape), np.empty(shape)
    for code in np.unique(codes):
        chosen = codes == code

        def pick(entry: Any, chosen: Any = chosen) -> Any:
            return np.broadcast_to(entry, shape)[chosen]

        found = work(mapped(group, pick), int(code))
        value[chosen], error[chosen] = found.value, found.error()
    return Ball(value, 0.0, error)


def _slices(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Parts of an array of at most so many entries (where an axis allows it)."""
    size = 1
    for length in shape:
        size *= length
    if size <= BLOCK or not shape:
        yield (slice(None),) * len(shape)
        return
    inner = size // shape[0]
    rows = max(1, BLOCK // inner)
    for start in range(0, shape[0], rows):
        own = slice(start, min(start + rows, shape[0]))
        if rows > 1 or inner <= BLOCK:
            yield (own, *(slice(None),) * (len(shape) - 1))
        else:
            for rest in _slices(shape[1:]):
                yield (own, *rest)


def in_blocks(group: Group, work: Callable[[Group], Ball]) -> Ball:
    """A function of a group on arrays, block by block."""
    import numpy as np

    shape = shape_of(group)
    parts = list(_slices(shape))
    if len(parts) < 2:
        found = work(group)
        return Ball(found.value, 0.0, finite_error(found.error()))
    value, error = np.empty(shape), np.empty(shape)
    for part in parts:

        def cut(entry: Any, part: tuple[slice, ...] = part) -> Any:
            own = part[len(part) - entry.ndim :]
            chosen = zip(own, entry.shape, strict=True)
            return entry[tuple(slice(None) if n == 1 else s for s, n in chosen)]

        found = work(mapped(group, cut))
        value[part] = found.value
        error[part] = finite_error(found.error())
    return Ball(value, 0.0, error)
