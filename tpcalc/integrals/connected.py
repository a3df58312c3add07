"""Variables in groups that are independent of each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def connected(variables: Iterable[int], joined: Callable[[int, int], bool]) -> list[list[int]]:
    """The groups that variables fall into, where two that are joined are in one.

    Example:
        >>> connected(range(4), lambda i, j: {i, j} == {0, 2})
        [[0, 2], [1], [3]]
    """
    left, groups = list(variables), []
    while left:
        group, stack = [], [left.pop(0)]
        while stack:
            own = stack.pop()
            group.append(own)
            near = [other for other in left if joined(own, other)]
            left = [other for other in left if other not in near]
            stack += near
        groups.append(sorted(group))
    return groups
