"""Pieces of formulas in three notations: plain text, LaTeX, MathML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from math import sqrt

from tpcalc.functions import Call, Const, Expr, Par, Var
from tpcalc.functions.expr import Add, Mul, Pow
from tpcalc.functions.numbers import Number

__all__ = [
    "Piece",
    "call",
    "equation",
    "held",
    "index",
    "negative",
    "number",
    "placed",
    "power",
    "product",
    "subscript",
    "total",
    "word",
    "written",
]

ATOM, PRODUCT, SUM = range(3)
OPEN, SHUT = "\ue000", "\ue001"  # around the number of a layer, until it is known how it is told
GREEK = {"ξ": r"\xi", "η": r"\eta"}
HATS = {"hhat": "h"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a formula, and what holds it together: nothing, a product, or a sum."""

    text: str
    latex: str
    mathml: str
    kind: int = ATOM


def word(name: str) -> Piece:
    """A name."""
    if name in HATS:
        base = HATS[name]
        return Piece(name, rf"\hat{{{base}}}", f"<mover><mi>{base}</mi><mo>^</mo></mover>")
    plain = len(name) == 1 or name.isdigit()
    latex = GREEK.get(name, name if plain else rf"\mathrm{{{_escaped(name)}}}")
    return Piece(name, latex, f"<mi>{escape(name)}</mi>")


def index(base: str, label: str) -> Piece:
    """A name with the label of a layer: ``h^2``, ``h^up.0``."""
    over = f"{OPEN}{label}{SHUT}" if label.isdigit() else label
    tex = over if label.isdigit() else rf"\mathrm{{{_escaped(label)}}}"
    tag = over if label.isdigit() else f"<mtext>{escape(label)}</mtext>"
    own = word(base)
    return Piece(
        f"{base}^{over}", f"{own.latex}^{{{tex}}}", f"<msup>{own.mathml}<mrow>{tag}</mrow></msup>"
    )


def subscript(base: Piece, below: str) -> Piece:
    """A piece with something below."""
    own = held(base, ATOM)
    return Piece(
        f"{own.text}_({below})",
        rf"{{{own.latex}}}_{{{_escaped(below)}}}",
        f"<msub>{_mrow(own)}<mtext>{escape(below)}</mtext></msub>",
    )


def placed(piece: Piece, layer: int | None = None) -> Piece:
    """A piece with its layers as numbers, or told from the layer l."""

    def told(found: re.Match[str]) -> str:
        if layer is None:
            return found[1]
        off = int(found[1]) - layer
        return "l" if off == 0 else f"l{off:+d}"

    pattern = re.compile(f"{OPEN}(\\d+){SHUT}")

    def plain(found: re.Match[str]) -> str:
        said = told(found)
        return said if said.isalnum() else f"({said})"

    return replace(
        piece,
        text=pattern.sub(plain, piece.text),
        latex=pattern.sub(told, piece.latex),
        mathml=pattern.sub(lambda found: _tags(told(found)), piece.mathml),
    )


def number(value: Number) -> Piece:
    """A number; a float that is the root of a simple one is written so."""
    if isinstance(value, float) and not value.is_integer():
        simple = Fraction(value * value).limit_denominator(10**4)
        if simple and sqrt(simple) == abs(value):
            sign, own = "-" if value < 0 else "", number(simple)
            tag = f"<msqrt>{own.mathml}</msqrt>"
            tag = f"<mrow><mo>-</mo>{tag}</mrow>" if sign else tag
            return Piece(f"{sign}sqrt({own.text})", rf"{sign}\sqrt{{{own.latex}}}", tag)
        text = f"{value:.6g}"
        return Piece(text, text, f"<mn>{text}</mn>")
    exact = Fraction(value)
    sign, over, under = "-" * (exact < 0), abs(exact.numerator), exact.denominator
    if under == 1:
        return Piece(f"{sign}{over}", f"{sign}{over}", f"<mn>{sign}{over}</mn>")
    tag = f"<mfrac><mn>{sign}{over}</mn><mn>{under}</mn></mfrac>"
    return Piece(f"{sign}{over}/{under}", rf"{sign}\frac{{{over}}}{{{under}}}", tag)


def power(base: Piece, exponent: str) -> Piece:
    """A power; of exponent 1 the base itself."""
    if exponent == "1":
        return base
    own = held(base, ATOM)
    simple = exponent.isalnum()
    return Piece(
        f"{own.text}^{exponent if simple else f'({exponent})'}",
        f"{{{own.latex}}}^{{{exponent}}}" if len(own.latex) > 1 else f"{own.latex}^{{{exponent}}}",
        f"<msup>{_mrow(own)}{_tags(exponent)}</msup>",
    )


def call(function: Piece, arg: Piece) -> Piece:
    """A function of something."""
    return Piece(
        f"{function.text}({arg.text})",
        f"{function.latex}({arg.latex})",
        f"{function.mathml}<mo>(</mo>{arg.mathml}<mo>)</mo>",
    )


def product(*factors: Piece) -> Piece:
    """Factors side by side; 1 of none."""
    if len(factors) == 1:
        return factors[0]
    if not factors:
        return number(Fraction(1))
    return _row([held(one, PRODUCT) for one in factors], PRODUCT)


def total(*terms: Piece) -> Piece:
    """A sum; 0 of none."""
    if len(terms) == 1:
        return terms[0]
    if not terms:
        return number(Fraction(0))
    parts = [terms[0]]
    for term in terms[1:]:
        minus = term.text.startswith("-") and term.latex.startswith("-")
        parts.append(_sign("-" if minus else "+"))
        parts.append(_without_sign(term) if minus else term)
    return _row(parts, SUM)


def equation(left: Piece, right: Piece) -> Piece:
    """An equality."""
    return _row([left, _sign("="), right], SUM)


def written(expr: Expr, vectors: Sequence[Piece], scalars: Sequence[Piece]) -> Piece:
    """A function of pieces."""
    match expr:
        case Const(value=value):
            return number(value)
        case Var(index=place):
            return vectors[place]
        case Par(index=place):
            return scalars[place]
        case Add(terms=terms):
            pieces = [written(term, vectors, scalars) for term in terms]
            return total(*sorted(pieces, key=lambda one: one.text.startswith("-")))
        case Mul(factors=(Const(value=value), *factors)) if value in (1, -1):
            rest = product(*(written(one, vectors, scalars) for one in factors))
            return rest if value == 1 else negative(rest)
        case Mul(factors=factors):
            return product(*(written(one, vectors, scalars) for one in factors))
        case Pow(base=base, exponent=exponent):
            return power(written(base, vectors, scalars), str(exponent))
        case Call(atom=atom, arg=arg):
            name = Piece(atom.text, rf"\text{{{_escaped(atom.text)}}}", _text(atom.text))
            return call(name, written(arg, vectors, scalars))
    raise AssertionError(expr)


def _row(pieces: Sequence[Piece], kind: int) -> Piece:
    return Piece(
        " ".join(piece.text for piece in pieces),
        " ".join(piece.latex for piece in pieces),
        "".join(piece.mathml for piece in pieces),
        kind,
    )


def held(piece: Piece, by: int = ATOM) -> Piece:
    """A piece in brackets, where what it becomes a part of binds it no looser than it is."""
    if piece.kind <= by:
        return piece
    return Piece(f"({piece.text})", f"({piece.latex})", f"<mo>(</mo>{piece.mathml}<mo>)</mo>")


def negative(piece: Piece) -> Piece:
    """A piece with a minus in front."""
    own = held(piece, PRODUCT)
    return Piece(f"-{own.text}", f"-{own.latex}", f"<mo>-</mo>{own.mathml}", PRODUCT)


def _without_sign(piece: Piece) -> Piece:
    tags = piece.mathml.replace("<mo>-</mo>", "", 1) if "<mo>-" in piece.mathml else piece.mathml
    tags = tags.replace("<mn>-", "<mn>", 1)
    return Piece(piece.text[1:], piece.latex[1:], tags, piece.kind)


def _sign(sign: str) -> Piece:
    return Piece(sign, sign, f"<mo>{sign}</mo>")


def _text(text: str) -> str:
    return f"<mtext>{escape(text)}</mtext>"


def _mrow(piece: Piece) -> str:
    return f"<mrow>{piece.mathml}</mrow>"


def _escaped(name: str) -> str:
    return re.sub(r"([_&%#$])", r"\\\1", name).replace("^", r"\^{}")


def _tags(text: str) -> str:
    """The MathML of a power or of the label of a layer."""
    tags = []
    for part in re.findall(r"\d+|[A-Za-z]\w*|[-+*/^()]", text):
        tag = "mn" if part.isdigit() else "mi" if part[0].isalpha() else "mo"
        tags.append(f"<{tag}>{part}</{tag}>")
    return f"<mrow>{''.join(tags)}</mrow>"
