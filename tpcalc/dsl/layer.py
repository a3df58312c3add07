"""``Layer``: the number of a repetition of a block, as a word for names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layer:
    """The number l of a repetition where the depth is a symbol: ``f"W{l + 1}"`` is a name.

    Args:
        shift: What is added to it.

    Example:
        >>> f"W{Layer() + 1}"
        'W{l+1}'
    """

    shift: int = 0

    def __add__(self, other: int) -> Layer:
        return Layer(self.shift + other)

    def __sub__(self, other: int) -> Layer:
        return Layer(self.shift - other)

    def __str__(self) -> str:
        return f"{{l{self.shift:+d}}}" if self.shift else "{l}"
