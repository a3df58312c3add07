"""Formulas as one tree: what holds its parts together is decided here, before it is spelled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

from tpcalc.functions.atoms import Call
from tpcalc.functions.expr import Add, Const, Expr, Mul, Par, Pow, Var
from tpcalc.functions.numbers import Number

# How tightly a kind holds its parts together, in rising order; those that are not here the most.
ORDER: tuple[tuple[str, ...], ...] = (
    ("equation", "update"),
    ("total",),
    ("negative",),
    ("product", "map", "summed", "quotient"),
    ("power",),
    ("transposed", "layer", "over"),
    ("under",),
)
BINDS = {kind: place for place, kinds in enumerate(ORDER) for kind in kinds}
# How tightly a part must hold together to stand in another one without brackets.
NEEDS = {"total": 2, "negative": 3, "product": 3, "summed": 3, "quotient": 3}
NEEDS |= {"map": 5, "under": 5, "power": 6, "transposed": 6}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a formula."""

    kind: str  # what it is: a word, a number, a total, a power, ..
    parts: tuple[Piece, ...] = ()  # what it is made of
    text: str = ""  # a word, the label of a layer, an exponent, axes, the digits of a number

    @property
    def size(self) -> int:
        """How many pieces it is made of."""
        return 1 + sum(part.size for part in self.parts)


def word(name: str) -> Piece:
    """A name."""
    return Piece("word", text=name)


def index(base: str, label: str) -> Piece:
    """A name with the label of a layer: ``h^2``, ``h^up.0``."""
    return Piece("layer" if label.isdigit() else "over", (word(base),), label)


def subscript(base: Piece, below: str) -> Piece:
    """A piece with something below."""
    return Piece("under", (base,), below)


def listed(pieces: Iterable[Piece]) -> Piece:
    """Pieces one after the other, in brackets."""
    return Piece("list", tuple(pieces))


def summed(axes: str, piece: Piece) -> Piece:
    """A sum over axes."""
    return Piece("summed", (piece,), axes)


def mapped(matrix: Piece, arg: Piece) -> Piece:
    """What a matrix, or a row of weights, makes of what stands next to it."""
    if arg.kind == "negative":
        return negative(mapped(matrix, arg.parts[0]))
    return Piece("map", (matrix, arg))


def transposed(matrix: Piece) -> Piece:
    """The transpose of a matrix."""
    return Piece("transposed", (matrix,))


def number(value: Number) -> Piece:
    """A number; a float that is the root of a simple one is written so."""
    if value < 0:
        return negative(number(-value))
    if isinstance(value, float) and not value.is_integer():
        shown = f"{value:.6g}"
        simple = Fraction(value * value).limit_denominator(10**4)
        if float(shown) != value and simple and sqrt(simple) == value:
            return Piece("root", (number(simple),))
        digits, _, ten = shown.partition("e")
        own = Piece("number", text=digits)
        return product(own, power(Piece("number", text="10"), str(int(ten)))) if ten else own
    over, under = (Piece("number", text=str(part)) for part in Fraction(value).as_integer_ratio())
    return over if under.text == "1" else quotient(over, under)


def quotient(over: Piece, under: Piece) -> Piece:
    """One piece over another."""
    return Piece("quotient", (over, under))


def power(base: Piece, exponent: str) -> Piece:
    """A power; of exponent 1 the base itself."""
    return base if exponent == "1" else Piece("power", (base,), exponent)


def call(function: Piece, arg: Piece) -> Piece:
    """A function of something."""
    return Piece("call", (function, arg))


def product(*factors: Piece) -> Piece:
    """Factors side by side; 1 of none."""
    flat: list[Piece] = []
    minus = False
    for factor in factors:
        if factor.kind == "negative":
            minus, factor = not minus, factor.parts[0]
        flat += factor.parts if factor.kind == "product" else (factor,)
    if not flat:
        return number(Fraction(1))
    made = flat[0] if len(flat) == 1 else Piece("product", tuple(flat))
    return negative(made) if minus else made


def total(*terms: Piece) -> Piece:
    """A sum; 0 of none."""
    flat = [own for term in terms for own in (term.parts if term.kind == "total" else (term,))]
    if not flat:
        return number(Fraction(0))
    return flat[0] if len(flat) == 1 else Piece("total", tuple(flat))


def equation(left: Piece, right: Piece) -> Piece:
    """An equality."""
    return Piece("equation", (left, right))


def negative(piece: Piece) -> Piece:
    """A piece with a minus in front."""
    return piece.parts[0] if piece.kind == "negative" else Piece("negative", (piece,))


def difference(piece: Piece, by: Piece) -> Piece:
    """The derivative of a piece by another."""
    return quotient(mapped(word("∂"), piece), mapped(word("∂"), by))


def placed(piece: Piece, layer: int | None = None) -> Piece:
    """A piece with its layers as numbers, or told from the layer l."""
    parts = tuple(placed(part, layer) for part in piece.parts)
    text = piece.text
    if piece.kind == "layer" and layer is not None:
        off = int(text) - layer
        text = "l" if off == 0 else f"l{off:+d}"
    return replace(piece, parts=parts, text=text)


def written(expr: Expr, vectors: Sequence[Piece], scalars: Sequence[Piece]) -> Piece:
    """A function of pieces."""

    def of(part: Expr) -> Piece:
        return written(part, vectors, scalars)

    match expr:
        case Const(value=value):
            return number(value)
        case Var(index=place):
            return vectors[place]
        case Par(index=place):
            return scalars[place]
        case Add(terms=terms):
            return total(*sorted(map(of, terms), key=lambda one: one.kind == "negative"))
        case Mul(factors=(Const(value=value), *factors)) if value in (1, -1):
            rest = product(*map(of, factors))
            return rest if value == 1 else negative(rest)
        case Mul(factors=factors):
            return product(*map(of, factors))
        case Pow(base=base, exponent=exponent):
            return power(of(base), str(exponent))
        case Call(atom=atom, arg=arg):
            return call(word(atom.text), of(arg))
    raise AssertionError(expr)


def bracketed(piece: Piece) -> Piece:
    """A piece with brackets wherever a part holds together less tightly than it must there."""
    last = len(piece.parts) - 1
    parts = []
    for place, part in enumerate(piece.parts):
        own = bracketed(part)
        # A sum over axes reaches to the end of what it stands in.
        open_ = piece.kind == "product" and part.kind == "summed" and place < last
        if open_ or BINDS.get(part.kind, 9) < NEEDS.get(piece.kind, 0):
            own = Piece("bracket", (own,))
        parts.append(own)
    return replace(piece, parts=tuple(parts))
