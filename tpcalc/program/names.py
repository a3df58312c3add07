"""Names of cells: what a cell of a block that has a name is called."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["cell_name"]


def cell_name(name: str, cell: Sequence[int]) -> str:
    """The name of a cell; numbers that a name ends with come first, ``16:`` counts on from there.

    Args:
        name: Of the block.
        cell: The cell; () where it is none.

    Example:
        >>> cell_name("f", (0, 1)), cell_name("f[2]", (0,)), cell_name("f[2,16:]", (3,))
        ('f[0,1]', 'f[2,0]', 'f[2,19]')
    """
    if not cell:
        return name
    numbers = list(map(str, cell))
    if not name.endswith("]"):
        return f"{name}[{','.join(numbers)}]"
    head, _, last = name[:-1].rpartition(",")
    if last.endswith(":"):
        return f"{head},{','.join([str(int(last[:-1]) + cell[0]), *numbers[1:]])}]"
    return f"{name[:-1]},{','.join(numbers)}]"
