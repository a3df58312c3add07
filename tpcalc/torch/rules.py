"""Rules of operations: what torch calls them, and what they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tpcalc import checks
from tpcalc.dsl.powers import Power
from tpcalc.errors import UsageError
from tpcalc.torch.arrays import Array
from tpcalc.torch.graph import Count, Op
from tpcalc.torch.powers import scaling
from tpcalc.torch.space import Space

Rule = Callable[..., Any]
Made = TypeVar("Made", bound=Rule)
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Made], Made]:
    """Say what operations are made of; a decorator.

    Args:
        names: What torch calls them, without the overload: ``"aten.linear"``, ``"mylib.scan"``.

    Returns:
        The decorator. The rule takes the ``Space`` that the tensors live in, the operation, and its
        arguments, tensors as ``Array``; it gives an ``Array``, or a tuple of them.

    Raises:
        UsageError: A name without the library before it.

    Example:
        >>> @rule("mylib.twice")
        ... def twice(space, op, x):
        ...     return space.apply(lambda value: 2 * value, x)
        >>> RULES.pop("mylib.twice") is twice
        True
    """
    for name in names:
        if "." not in checks.text(name, "name").strip("."):
            raise UsageError(
                f"there is no operation {name!r}.",
                hint="Write the library before it, 'mylib.scan' for torch.ops.mylib.scan.",
            )

    def keep(made: Made) -> Made:
        RULES.update(dict.fromkeys((name.replace("::", ".") for name in names), made))
        return made

    return keep


def rule_of(name: str) -> Rule | None:
    """The rule of an operation, be it in place or not."""
    return RULES.get(name) or RULES.get(name.rstrip("_"))


def place(space: Space, count: Any, rank: int) -> int:
    """The number of a dimension, counted from the first."""
    index = int(count.values[0]) if isinstance(count, Count) else int(count)
    if not -rank <= index < max(rank, 1):
        raise space.refuse(f"there is no dimension {index} of {rank}.")
    return index % rank if rank else 0


def places(space: Space, counts: Any, rank: int) -> tuple[int, ...]:
    """The numbers of dimensions; None means all of them."""
    if counts is None or counts == ():
        return tuple(range(rank))
    some = counts if isinstance(counts, tuple) else (counts,)
    return tuple(place(space, one, rank) for one in some)


def number(space: Space, value: Any, op: Op) -> Any:
    """A number of an operation, with its power of n."""
    if not isinstance(value, Count):
        return value
    if any(one != one or abs(one) == float("inf") for one in value.values):
        return value.values[0]
    found = scaling(dict(zip(space.widths, value.values, strict=True)), f"a number of {op.name}",
                    str(op.place))  # fmt: skip
    if not found.power:
        return found.number
    return Power(found.ex, factor=found.number)


def as_array(space: Space, value: Any, op: Op) -> Array:
    """A tensor or a number as an array."""
    if isinstance(value, Array):
        return value
    return Array((), None if space.tracer is None else number(space, value, op))
