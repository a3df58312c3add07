"""Names of cells: what a cell of a block that has a name is called."""

from __future__ import annotations

from collections.abc import Sequence


def cell_name(name: str, cell: Sequence[int]) -> str:
    """The name of a cell; ``:`` at the end of a name stands for the first number, ``16:`` from 16.

    Example:
        >>> cell_name("f", (0, 1)), cell_name("f[2,:]", (0,)), cell_name("f[2,16:]", (3,))
        ('f[0,1]', 'f[2,0]', 'f[2,19]')
    """
    if not cell:
        return name
    head, _, last = name.removesuffix(":]").rpartition(",")
    if not name.endswith(":]"):
        return f"{name}[{','.join(map(str, cell))}]"
    return f"{head},{','.join(map(str, (int(last or 0) + cell[0], *cell[1:])))}]"
