"""A network's forward pass and its update as formulas, for pages and for Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import Any

from tpcalc.catalog.architecture import deviation, named
from tpcalc.catalog.architectures.mlp import MLP
from tpcalc.catalog.architectures.resnet import ResNet
from tpcalc.catalog.architectures.rnn import RNN
from tpcalc.catalog.parameterizations import Exponents, Parameterization
from tpcalc.networks.network import Architecture
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


def network_formulas(
    study: Study, network: Architecture, exponents: Parameterization
) -> tuple[tuple[str, Formula], ...]:
    """Forward pass, output and update of a study, with the powers of n filled in.

    Args:
        study: The study.
        network: Its network.
        exponents: Its parameterization.

    Returns:
        Names with formulas. Hidden layers of different powers get a formula each. Of an
        architecture that is not one of the package the update alone.

    Source: Hajjar, Chizat, Giraud, equations (2.1) and (2.2).
    """
    table = exponents.exponents(network.hidden)
    made: list[tuple[str, _Piece]] = []
    if isinstance(network, MLP):
        made += _mlp(network, table)
    elif isinstance(network, ResNet):
        made += _resnet(network, table)
    elif isinstance(network, RNN):
        made += _rnn(network, table)
    if study.training.steps:
        made.append(("Update", _update()))
    return tuple((title, Formula(*_parts(piece))) for title, piece in made)


def _parts(piece: _Piece) -> tuple[str, str, str]:
    return piece.text, piece.latex, f"<mrow>{piece.mathml}</mrow>"


def _mlp(network: MLP, table: Exponents) -> list[tuple[str, _Piece]]:
    depth, every = network.depth, network.bias in ("hidden", "all")
    inside = network.variances == "factors"
    weight = network.weight_variances if inside else (1,) * depth
    shift = network.bias_variance if inside else None

    def layer(k: int, index: str, of: _Piece) -> _Piece:
        weights = _term(table.a[k], weight[k], _index("W", index), of)
        if not (every or (network.bias == "first" and k == 0)):
            return weights
        bias = _term(table.bias_a[k], shift, _index("b", index))
        return _row(weights, _sign("+"), bias)

    made = [
        ("First layer", _equation(_index("h", "1"), layer(0, "1", _name("ξ", r"\xi")))),
        *_features(network.act, network.norm, "l"),
    ]
    hidden = {(table.a[k], table.bias_a[k], weight[k]) for k in range(1, depth)}
    if len(hidden) == 1 and depth > 2:
        right = layer(1, "l", _index("x", "l-1"))
        made.append((f"Hidden layers l = 2, ..., {depth}", _equation(_index("h", "l"), right)))
    else:
        for k in range(1, depth):
            right = layer(k, str(k + 1), _index("x", str(k)))
            made.append((f"Hidden layer {k + 1}", _equation(_index("h", str(k + 1)), right)))
    last = str(depth + 1)
    right = _term(table.a[depth], 1, _index("W", last), _index("x", str(depth)))
    if network.bias == "all":
        right = _row(right, _sign("+"), _term(table.bias_a[depth], 1, _index("b", last)))
    return [*made, ("Output", _equation(_name("f"), right))]


def _resnet(network: ResNet, table: Exponents) -> list[tuple[str, _Piece]]:
    depth = network.depth
    last = str(depth + 2)
    size = str(depth)
    power = f"-{network.alpha}"
    factor = _Piece(
        f"{size}^({power})",
        f"{size}^{{{power}}}",
        f"<msup><mn>{size}</mn>{_mathml_of(power)}</msup>",
    )

    def block(k: int, layer: str, below: str) -> _Piece:
        parts = [_term(table.a[k], network.weight_variance, _index("W", layer), _index("x", below))]
        if network.bias_variance:
            bias = _term(table.bias_a[k], network.bias_variance, _index("b", layer))
            parts += [_sign("+"), bias]
        right = [_index("h", below), _sign("+"), factor, _sign("("), *parts, _sign(")")]
        return _equation(_index("h", layer), _row(*right))

    first = _term(table.a[0], 1, _index("W", "1"), _name("ξ", r"\xi"))
    made = [
        ("Input map", _equation(_index("h", "1"), first)),
        *_features(network.act, network.norm, "l"),
    ]
    if len({(table.a[k], table.bias_a[k]) for k in range(1, depth + 1)}) == 1:
        made.append((f"Blocks l = 1, ..., {depth}", block(1, "l+1", "l")))
    else:
        for k in range(1, depth + 1):
            made.append((f"Block {k}", block(k, str(k + 1), str(k))))
    output = _term(table.a[-1], 1, _index("W", last), _index("h", str(depth + 1)))
    return [*made, ("Output", _equation(_name("f"), output))]


def _rnn(network: RNN, table: Exponents) -> list[tuple[str, _Piece]]:
    every = network.outputs == "all"
    token = "s" if every else str(network.length)
    state = [
        _term(table.a[1], network.weight_variance, _name("W"), _index("x", "s-1")),
        _sign("+"),
        _term(table.a[0], network.input_variance, _name("U"), _index("ξ", "s", r"\xi")),
    ]
    if network.bias_variance:
        state += [_sign("+"), _term(table.bias_a[0], network.bias_variance, _name("b"))]
    output = _term(table.a[-1], 1, _name("v"), _index("x", token))
    return [
        (
            f"State at the tokens s = 1, ..., {network.length}",
            _equation(_index("h", "s"), _row(*state)),
        ),
        *_features(network.act, "none", "s"),
        ("Start", _equation(_index("x", "0"), _number("0"))),
        ("Output", _equation(_index("f", "s") if every else _name("f"), output)),
    ]


def _features(act: Any, norm: str, index: str) -> list[tuple[str, _Piece]]:
    """Act of the preactivation, or of the normalised one."""
    h, x = _index("h", index), _index("x", index)
    if norm == "none":
        return [("Activation", _equation(x, _call(named(act), h)))]
    hat = _Piece(
        f"hhat^{index}",
        rf"\hat{{h}}^{{{index}}}",
        f"<msup><mover><mi>h</mi><mo>^</mo></mover>{_mathml_of(index)}</msup>",
    )
    mean, spread = (
        _Piece(
            f"{word}({h.text})",
            rf"\mathrm{{{word}}}({h.latex})",
            f"<mtext>{word}</mtext><mo>(</mo>{h.mathml}<mo>)</mo>",
        )
        for word in ("mean", "sd")
    )
    quotient = _Piece(
        f"({h.text} - {mean.text}) / {spread.text}",
        rf"\frac{{{h.latex} - {mean.latex}}}{{{spread.latex}}}",
        f"<mfrac><mrow>{h.mathml}<mo>-</mo>{mean.mathml}</mrow>"
        f"<mrow>{spread.mathml}</mrow></mfrac>",
    )
    return [
        ("Normalised, over coordinates", _equation(hat, quotient)),
        ("Activation", _equation(x, _call(named(act), hat))),
    ]


def _term(power: Ex, variance: Any, *factors: _Piece) -> _Piece:
    """Factors behind a power of n and a standard deviation."""
    return _row(*_power(-power), *_deviation(variance), *factors)


def _deviation(variance: Any) -> list[_Piece]:
    text = deviation(variance).strip()
    if not text:
        return []
    inside = text.removeprefix("sqrt(").removesuffix(")")
    over, _, under = inside.partition("/")
    latex, mathml = over, f"<mn>{over}</mn>"
    if under:
        latex = rf"\frac{{{over}}}{{{under}}}"
        mathml = f"<mfrac>{mathml}<mn>{under}</mn></mfrac>"
    if inside != text:
        latex, mathml = rf"\sqrt{{{latex}}}", f"<msqrt>{mathml}</msqrt>"
    return [_Piece(text, latex, mathml)]


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


def _number(number: str) -> _Piece:
    return _Piece(number, number, f"<mn>{number}</mn>")


def _index(letter: str, index: str, latex: str = "") -> _Piece:
    base, upper = f"<mi>{letter}</mi>", _mathml_of(index)
    made = f"{latex or letter}^{{{index}}}"
    return _Piece(f"{letter}^{index}", made, f"<msup>{base}{upper}</msup>")


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
