"""Formulas in four notations, each a table of how a kind of piece is spelled."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

from tpcalc.functions.notation import Piece, bracketed

Spelling = dict[str, Callable[[Piece, list[str]], str]]
SIGNS = {"ξ": r"\xi", "η": r"\eta", "∂": r"\partial"}
HATS = {"hhat": "h"}
SPACE = '<mspace width="0.2em"/>'  # between factors, whose names would run together


def notations(piece: Piece) -> tuple[str, str, str, str]:
    """A piece as text, LaTeX, MathML and HTML.

    Example:
        >>> from tpcalc.functions.notation import index, power, product, word
        >>> notations(power(product(word("W"), index("x", "2")), "-1/2"))[0]
        '(W x^2)^(-1/2)'
    """
    whole = bracketed(piece)
    text, latex, mathml, html = (_spelled(whole, own) for own in (TEXT, LATEX, MATHML, HTML))
    return text, latex, _row(mathml), html


def plain(piece: Piece) -> str:
    """A piece as text."""
    return _spelled(bracketed(piece), TEXT)


def _spelled(piece: Piece, spelling: Spelling) -> str:
    return spelling[piece.kind](piece, [_spelled(part, spelling) for part in piece.parts])


def _terms(minus: str, plus: str, sign: str) -> Callable[[Piece, list[str]], str]:
    """Terms with their signs; that of a negative one stands in front of it already."""

    def spelled(own: Piece, parts: list[str]) -> str:
        found = parts[0]
        for term, part in zip(own.parts[1:], parts[1:], strict=True):
            is_negative = term.kind == "negative"
            found += (sign + part.removeprefix(minus)) if is_negative else plus + part
        return found

    return spelled


def _grouped(text: str) -> str:
    return text if re.fullmatch(r"[\w.]+", text) else f"({text})"


def _escaped(name: str) -> str:
    return re.sub(r"([_&%#$])", r"\\\1", name).replace("^", r"\^{}")


def _latex(name: str) -> str:
    if name in HATS:
        return rf"\hat{{{HATS[name]}}}"
    plain = len(name) == 1 or name.isdigit()
    style = "mathrm" if re.fullmatch(r"[\w.]+", name) else "text"
    return SIGNS.get(name, name if plain else rf"\{style}{{{_escaped(name)}}}")


def _single(latex: str) -> str:
    return latex if len(latex) == 1 else f"{{{latex}}}"


def _row(tags: str) -> str:
    return f"<mrow>{tags}</mrow>"


def _fenced(tags: str, left: str = "(", right: str = ")") -> str:
    return _row(f"<mo>{left}</mo>{tags}<mo>{right}</mo>")  # in a row brackets are as high as it


def _tags(text: str) -> str:
    """The MathML of a power or of the label of a layer."""
    tags = []
    for part in re.findall(r"\d+|[A-Za-z]\w*|[-+*/^()]", text):
        tag = "mn" if part.isdigit() else "mi" if part[0].isalpha() else "mo"
        own, _, below = part.partition("_")
        lower = f"<msub><mi>{own}</mi><mi>{below}</mi></msub>"
        tags.append(lower if below else f"<{tag}>{part}</{tag}>")
    return _row("".join(tags))


def _sup(base: str, above: str) -> str:
    return f"<msup>{_row(base)}{above}</msup>"


def _mi(name: str) -> str:
    if name in HATS:
        return f"<mover><mi>{HATS[name]}</mi><mo>^</mo></mover>"
    return f"<mi>{escape(name)}</mi>"


def _raised(text: str) -> str:
    return f"<sup>{escape(text).replace('-', '−')}</sup>"


def _html(name: str) -> str:
    shown = f"{HATS[name]}\u0302" if name in HATS else escape(name)
    return f"<i>{shown}</i>" if len(name) == 1 or name in HATS else shown


TEXT: Spelling = {
    "word": lambda own, parts: own.text.replace("∂", "d"),
    "number": lambda own, parts: own.text,
    "quotient": lambda own, parts: "/".join(parts),
    "root": lambda own, parts: f"sqrt({parts[0]})",
    "layer": lambda own, parts: f"{parts[0]}^{_grouped(own.text)}",
    "over": lambda own, parts: f"{parts[0]}^{own.text}",
    "under": lambda own, parts: f"{parts[0]}_({own.text})",
    "power": lambda own, parts: f"{parts[0]}^{_grouped(own.text)}",
    "transposed": lambda own, parts: f"{parts[0]}^T",
    "product": lambda own, parts: " ".join(parts),
    "map": lambda own, parts: " ".join(parts),
    "summed": lambda own, parts: f"sum_({own.text}) {parts[0]}",
    "call": lambda own, parts: f"{parts[0]}({parts[1]})",
    "list": lambda own, parts: f"[{', '.join(parts)}]",
    "bracket": lambda own, parts: f"({parts[0]})",
    "negative": lambda own, parts: f"-{parts[0]}",
    "total": _terms("-", " + ", " - "),
    "equation": lambda own, parts: " = ".join(parts),
    "update": lambda own, parts: " <- ".join(parts),
    # Of limits: outputs by their names, random variables, averages over them.
    "output": lambda own, parts: own.text,
    "start": lambda own, parts: parts[0],
    "variable": lambda own, parts: f"Z[{parts[0]}]",
    "hat": lambda own, parts: f"hat({parts[0]})",
    "expectation": lambda own, parts: f"E[{parts[0]}]",
    "fluctuation": lambda own, parts: f"G[{', '.join(parts)}]",
}
LATEX: Spelling = TEXT | {
    "word": lambda own, parts: _latex(own.text),
    "quotient": lambda own, parts: rf"\frac{{{parts[0]}}}{{{parts[1]}}}",
    "root": lambda own, parts: rf"\sqrt{{{parts[0]}}}",
    "layer": lambda own, parts: f"{parts[0]}^{{{own.text}}}",
    "over": lambda own, parts: rf"{parts[0]}^{{\mathrm{{{_escaped(own.text)}}}}}",
    "under": lambda own, parts: f"{_single(parts[0])}_{{{_escaped(own.text)}}}",
    "power": lambda own, parts: f"{_single(parts[0])}^{{{own.text}}}",
    "transposed": lambda own, parts: rf"{_single(parts[0])}^{{\top}}",
    "product": lambda own, parts: r" \, ".join(parts),
    "map": lambda own, parts: r" \, ".join(parts),
    "summed": lambda own, parts: rf"\sum_{{{_escaped(own.text)}}} {parts[0]}",
    "call": lambda own, parts: rf"{parts[0]}\left({parts[1]}\right)",
    "list": lambda own, parts: rf"\left[{', '.join(parts)}\right]",
    "bracket": lambda own, parts: rf"\left({parts[0]}\right)",
    "update": lambda own, parts: r" \leftarrow ".join(parts),
    "output": lambda own, parts: parts[0],
    "start": lambda own, parts: f"Z^{{{parts[0]}}}",
    "variable": lambda own, parts: f"Z^{{{parts[0]}}}",
    "hat": lambda own, parts: rf"\hat Z^{{{parts[0]}}}",
    "expectation": lambda own, parts: rf"\mathbb E\left[{parts[0]}\right]",
    "fluctuation": lambda own, parts: rf"G\left({', '.join(parts)}\right)",
}
MATHML: Spelling = {
    "word": lambda own, parts: _mi(own.text),
    "number": lambda own, parts: f"<mn>{own.text}</mn>",
    "quotient": lambda own, parts: f"<mfrac>{''.join(map(_row, parts))}</mfrac>",
    "root": lambda own, parts: f"<msqrt>{parts[0]}</msqrt>",
    "layer": lambda own, parts: _sup(parts[0], _tags(own.text)),
    "over": lambda own, parts: _sup(parts[0], f"<mtext>{escape(own.text)}</mtext>"),
    "under": lambda own, parts: f"<msub>{_row(parts[0])}<mtext>{escape(own.text)}</mtext></msub>",
    "power": lambda own, parts: _sup(parts[0], _tags(own.text)),
    "transposed": lambda own, parts: _sup(parts[0], "<mo>&#x22A4;</mo>"),
    "product": lambda own, parts: SPACE.join(parts),
    "map": lambda own, parts: SPACE.join(parts),
    "summed": lambda own, parts: (
        f"<munder><mo>∑</mo><mtext>{escape(own.text)}</mtext></munder>{parts[0]}"
    ),
    "call": lambda own, parts: parts[0] + _fenced(parts[1]),
    "list": lambda own, parts: _fenced("<mo>,</mo>".join(parts), "[", "]"),
    "bracket": lambda own, parts: _fenced(parts[0]),
    "negative": lambda own, parts: f"<mo>-</mo>{parts[0]}",
    "total": _terms("<mo>-</mo>", "<mo>+</mo>", "<mo>-</mo>"),
    "equation": lambda own, parts: "<mo>=</mo>".join(parts),
    "update": lambda own, parts: "<mo>←</mo>".join(parts),
    "output": lambda own, parts: parts[0],
    "start": lambda own, parts: _sup("<mi>Z</mi>", _row(parts[0])),
    "variable": lambda own, parts: _sup("<mi>Z</mi>", _row(parts[0])),
    "hat": lambda own, parts: _sup("<mover><mi>Z</mi><mo>^</mo></mover>", _row(parts[0])),
    "expectation": lambda own, parts: "<mi>E</mi>" + _fenced(parts[0], "[", "]"),
    "fluctuation": lambda own, parts: "<mi>G</mi>" + _fenced("<mo>,</mo>".join(parts)),
}
HTML: Spelling = TEXT | {
    "word": lambda own, parts: _html(own.text),
    "root": lambda own, parts: f"√({parts[0]})",
    "layer": lambda own, parts: parts[0] + _raised(own.text),
    "over": lambda own, parts: parts[0] + f"<sup>{escape(own.text)}</sup>",
    "under": lambda own, parts: f"{parts[0]}<sub>{escape(own.text)}</sub>",
    "power": lambda own, parts: parts[0] + _raised(own.text),
    "transposed": lambda own, parts: f"{parts[0]}<sup>⊤</sup>",
    "summed": lambda own, parts: f"∑<sub>{escape(own.text)}</sub> {parts[0]}",
    "negative": lambda own, parts: f"−{parts[0]}",
    "total": _terms("−", " + ", " − "),
    "update": lambda own, parts: " ← ".join(parts),
    "output": lambda own, parts: parts[0],
}
