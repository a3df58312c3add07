"""Names of outputs, blocks and arrays of numbers in formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tpcalc.functions.notation import Piece, call, index, subscript, word
from tpcalc.functions.numbers import Number
from tpcalc.names import Name

WIDEST = 6  # rows and columns of an array that is printed


def block(name: str) -> Piece:
    """A block: a capital.

    Example:
        >>> block("h[2,1,:]").text
        'H[2,1]'
    """
    own = Name.of(name)
    letter = word(own.what[:-1] + own.what[-1].upper())
    shown = replace(own, what=letter.text, first=own.first or None)
    if not shown.parts:
        return letter
    return Piece("output", (subscript(letter, ",".join(shown.parts)),), str(shown))


def indexed(own: Piece, axes: Sequence[str]) -> Piece:
    """A block with names of its axes."""
    return call(own, word(",".join(axes))) if axes else own


def array(name: str, values: Sequence[Number], shape: Sequence[int]) -> tuple[str, str, str]:
    """Given numbers as a matrix, or as their range where there are too many."""
    numbers = np.array([float(value) for value in values]).reshape(shape)
    if len(shape) > 2 or max(shape) > WIDEST:
        ends = f"[{numbers.min():.6g}, {numbers.max():.6g}]"
        return (
            f"{name} in {ends}",
            rf",\quad \mathrm{{{name}}} \in {ends}",
            f"<mo>;</mo><mi>{name}</mi><mo>&#x2208;</mo><mtext>{ends}</mtext>",
        )
    rows = [[f"{x:.6g}" for x in row] for row in np.atleast_2d(numbers)]
    plain = ", ".join("[" + ", ".join(row) + "]" for row in rows)
    tex = r" \\ ".join(" & ".join(row) for row in rows)
    cells = "".join(
        "<mtr>" + "".join(f"<mtd><mn>{x}</mn></mtd>" for x in row) + "</mtr>" for row in rows
    )
    return (
        f"{name} = {plain if numbers.ndim == 1 else f'[{plain}]'}",
        rf",\quad \mathrm{{{name}}} = \begin{{pmatrix}}{tex}\end{{pmatrix}}",
        f"<mo>;</mo><mi>{name}</mi><mo>=</mo><mo>(</mo><mtable>{cells}</mtable><mo>)</mo>",
    )


def label(name: str) -> Piece:
    """A name, its numbers as indices."""
    own = Name.of(name)
    if not own.parts or own.since or not all(part.isdecimal() for part in own.parts):
        return word(name)
    layer, *rest = own.parts
    layered = len(rest) == 2
    letter = index(own.what, layer) if layered else word(own.what)
    return Piece("output", (subscript(letter, ",".join(rest if layered else own.parts)),), name)


def variable(name: str) -> Piece:
    """The Z of a name."""
    return Piece("variable", (label(name),))
