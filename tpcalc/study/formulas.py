"""A network's forward pass and its update as formulas, for pages and for Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from tpcalc.catalog.parameterizations import Exponents, Parameterization
from tpcalc.orders import Ex
from tpcalc.results import Formula
from tpcalc.study.schema import Study

__all__ = ["network_formulas"]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a formula in three notations."""

    text: str
    latex: str
    mathml: str


def network_formulas(study: Study, exponents: Parameterization) -> tuple[tuple[str, Formula], ...]:
    """Forward pass, output and update of a study, with the powers of n filled in.

    Args:
        study: The study.
        exponents: Its parameterization.

    Returns:
        Names with formulas. Hidden layers of different powers get a formula each.

    Source: Hajjar, Chizat, Giraud, equations (2.1) and (2.2).
    """
    depth, bias = study.model.depth, study.model.bias
    table = exponents.exponents(depth)
    made = [
        (
            "First layer",
            _equation(
                _index("h", "1"),
                _layer(table, 0, "1", _name("ξ", r"\xi"), bias in ("first", "all")),
            ),
        ),
        (
            "Activation",
            _equation(_index("x", "l"), _call(study.model.act, _index("h", "l"))),
        ),
    ]
    hidden = {(table.a[k], table.bias_a[k]) for k in range(1, depth)}
    if len(hidden) == 1 and depth > 2:
        right = _layer(table, 1, "l", _index("x", "l-1"), bias == "all")
        title = f"Hidden layers l = 2, ..., {depth}"
        made.append((title, _equation(_index("h", "l"), right)))
    else:
        for k in range(1, depth):
            right = _layer(table, k, str(k + 1), _index("x", str(k)), bias == "all")
            made.append((f"Hidden layer {k + 1}", _equation(_index("h", str(k + 1)), right)))
    last = str(depth + 1)
    right = _layer(table, depth, last, _index("x", str(depth)), bias == "all")
    made.append(("Output", _equation(_name("f"), right)))
    if study.training.steps:
        made.append(("Update", _update()))
    return tuple((title, Formula(*_parts(piece))) for title, piece in made)


def _parts(piece: _Piece) -> tuple[str, str, str]:
    return piece.text, piece.latex, f"<mrow>{piece.mathml}</mrow>"


def _layer(table: Exponents, k: int, index: str, of: _Piece, biased: bool) -> _Piece:
    terms = [*_power(-table.a[k]), _index("W", index), of]
    if biased:
        terms += [_sign("+"), *_power(-table.bias_a[k]), _index("b", index)]
    return _row(*terms)


def _update() -> _Piece:
    rate = _Piece(
        "eta n^(-c_l)",
        r"\eta\, n^{-c_l}",
        "<mi>η</mi><msup><mi>n</mi><mrow><mo>-</mo><msub><mi>c</mi><mi>l</mi></msub></mrow></msup>",
    )
    slope = _Piece(
        "dloss/dW^l",
        r"\frac{\partial \mathrm{loss}}{\partial W^l}",
        "<mfrac><mrow><mo>∂</mo><mtext>loss</mtext></mrow>"
        "<mrow><mo>∂</mo><msup><mi>W</mi><mi>l</mi></msup></mrow></mfrac>",
    )
    weight = _index("W", "l")
    arrow = _Piece("<-", r"\leftarrow", "<mo>←</mo>")
    return _row(weight, arrow, weight, _sign("-"), rate, slope)


def _equation(left: _Piece, right: _Piece) -> _Piece:
    return _row(left, _sign("="), right)


def _row(*pieces: _Piece) -> _Piece:
    return _Piece(
        " ".join(piece.text for piece in pieces),
        " ".join(piece.latex for piece in pieces),
        "".join(piece.mathml for piece in pieces),
    )


def _name(letter: str, latex: str = "") -> _Piece:
    return _Piece(letter, latex or letter, f"<mi>{letter}</mi>")


def _index(letter: str, index: str) -> _Piece:
    base, upper = f"<mi>{letter}</mi>", _mathml_of(index)
    return _Piece(f"{letter}^{index}", f"{letter}^{{{index}}}", f"<msup>{base}{upper}</msup>")


def _sign(sign: str) -> _Piece:
    return _Piece(sign, sign, f"<mo>{sign}</mo>")


def _call(function: str, arg: _Piece) -> _Piece:
    latex = re.sub(r"([_&%#$])", r"\\\1", function).replace("^", r"\^{}")
    return _Piece(
        f"{function}({arg.text})",
        rf"\text{{{latex}}}({arg.latex})",
        f"<mtext>{escape(function)}</mtext><mo>(</mo>{arg.mathml}<mo>)</mo>",
    )


def _power(power: Ex) -> list[_Piece]:
    """A power of n in front; nothing for n^0."""
    text = str(power)
    if text == "0":
        return []
    mathml = f"<msup><mi>n</mi>{_mathml_of(text)}</msup>"
    return [_Piece(f"n^({text})", f"n^{{{text}}}", mathml)]


def _mathml_of(text: str) -> str:
    parts = re.findall(r"\d+|[A-Za-z]\w*|[-+*/^()]", text)
    tags = []
    for part in parts:
        tag = "mn" if part.isdigit() else "mi" if part[0].isalpha() else "mo"
        tags.append(f"<{tag}>{part}</{tag}>")
    return f"<mrow>{''.join(tags)}</mrow>"
