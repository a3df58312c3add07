"""Names of outputs, blocks and arrays of numbers in formulas: text, LaTeX and MathML."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tpcalc.functions.numbers import Number

__all__ = ["array", "block", "escape", "indexed", "label", "variable"]

WIDEST = 6  # rows and columns of an array that is printed
_Text = tuple[str, str, str]


def block(name: str) -> _Text:
    r"""A block in three notations: an upright capital.

    Args:
        name: Of an output, or of data.

    Example:
        >>> block("h[2,1,:]")
        ('H[2,1]', '\\mathrm{H}_{2,1}', '<msub><mi mathvariant="normal">H</mi><mn>2,1</mn></msub>')
    """
    base, _, rest = name.partition("[")
    index = re.sub(r",?:?\]$", "", rest) if rest.endswith(",:]") else rest.removesuffix("]")
    letter = base[:-1] + base[-1].upper()
    sign = f'<mi mathvariant="normal">{letter}</mi>'
    tex = rf"\mathrm{{{letter}}}".replace("_", r"\_")
    if not index:
        return letter, tex, sign
    return f"{letter}[{index}]", f"{tex}_{{{index}}}", f"<msub>{sign}<mn>{index}</mn></msub>"


def indexed(own: _Text, axes: Sequence[str]) -> _Text:
    """A block with names of its axes."""
    if not axes:
        return own
    inside = ",".join(axes)
    tex = rf"{own[1]}(\text{{{inside}}})"
    return f"{own[0]}({inside})", tex, f"<mrow>{own[2]}<mtext>({inside})</mtext></mrow>"


def array(name: str, values: Sequence[Number], shape: Sequence[int]) -> _Text:
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


def escape(text: str) -> str:
    """A text in MathML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def label(name: str) -> _Text:
    """A name in three notations, its numbers as indices."""
    found = re.fullmatch(r"(\w+)\[([\d,\s]+)\]", name)
    if found is None:
        return name, rf"\mathrm{{{name}}}", f"<mi>{escape(name)}</mi>"
    base, index = found.groups()
    parts = index.replace(" ", "").split(",")
    if len(parts) == 3:
        layer, step, sample = parts
        return (
            name,
            rf"{_tex_base(base)}^{{{layer}}}_{{{step},{sample}}}",
            f"<msubsup><mi>{base}</mi><mrow><mn>{step}</mn><mo>,</mo><mn>{sample}</mn></mrow>"
            f"<mn>{layer}</mn></msubsup>",
        )
    return name, rf"{_tex_base(base)}_{{{index}}}", f"<msub><mi>{base}</mi><mn>{index}</mn></msub>"


def _tex_base(base: str) -> str:
    return base if len(base) == 1 else rf"\mathrm{{{base}}}"


def variable(name: str) -> _Text:
    """The Z of a name."""
    plain, tex, tag = label(name)
    return f"Z[{plain}]", f"Z^{{{tex}}}", f"<msup><mi>Z</mi>{tag}</msup>"
