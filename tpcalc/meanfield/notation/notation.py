"""Networks as text, one layer a line."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from typing import Any

from tpcalc import checks
from tpcalc.activations.entries import REGISTRY, lookup
from tpcalc.errors import StudyError, TpcalcError, UnknownName, UsageError, short
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.notation.lines import Line, Lines
from tpcalc.meanfield.operations import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Dense,
    Gain,
    Input,
    LayerNorm,
    Number,
    Operation,
    Product,
    SharedBias,
    SpanBias,
)
from tpcalc.program.base import Table

WORDS: dict[str, Callable[..., Operation]] = {
    "input": Input,
    "dense": Dense,
    "bias": Bias,
    "span_bias": SpanBias,
    "shared_bias": SharedBias,
    "layer_norm": LayerNorm,
    "batch_norm": BatchNorm,
}

COUNTS = ("outputs", "batch")

# How many arguments are written without a name, where it is not one.
FIRST = {"input": 2, "layer_norm": 0, "batch_norm": 0}


def parse_graph(text: str) -> Lines:
    """The network that a text describes.

    A line names a layer and says what it is: ``b = dense(a, 1.5, rank=1/4)``, ``c = tanh(b)``, ``d
    = 0.5*a + c``, ``e = c*d`` (a gate). The first line is the input, with the second moments that
    questions take by default. The words are

    - ``input(square, comean)``;
    - ``dense(layer, variance, family, rank, width, outputs, exponent)``: weights of the variance
      over the fan-in, ``"gaussian"`` or ``"orthogonal"``, of a rank over the width as of
      ``tp.layers.LowRank``; the width over n, or a number of outputs; a power of n;
    - ``bias(layer, variance)``; ``span_bias(layer, variance, rank)`` and ``shared_bias(layer,
      variance, rank, drawn)`` right after a layer of this rank, with a number for each direction
      or one for all;
    - ``layer_norm(layer, epsilon=, centred=)``, ``batch_norm(layer, batch=, epsilon=)``, the batch
      of one size in all lines, infinite by default;
    - the activations of the catalogue.

    What follows a # is a comment. Vectors are reported as ``h[name]``.

    Args:
        text: The lines.

    Returns:
        The network, for every question of ``tp.signal``; with a readout (``outputs=``) at its end
        for all others.

    Raises:
        StudyError: A line that is none of these; its number is told.

    Example:
        >>> net = parse_graph('''
        ... x = input(1, 0.25)
        ... a = dense(x, 3/2)
        ... b = tanh(a)
        ... c = dense(b)
        ... d = 0.5*a + c
        ... ''')
        >>> net.words
        '5 layers, 1 of them activations'
    """
    lines: list[Line] = []
    names: dict[str, int] = {}
    for number, row in enumerate(checks.text(text, "text").splitlines(), 1):
        code = row.partition("#")[0].strip()
        if not code:
            continue
        try:
            line = _layer(code, names)
            if lines:
                Lines((*lines, line))  # what it reads is checked here
        except (RecursionError, MemoryError, OverflowError):
            raise StudyError(
                f"{short(code, 80)!r} has too many parts or too large a number.",
                where=f"line {number}",
            ) from None
        except TpcalcError as error:
            error.where = (
                f"line {number}" if error.where is None else f"line {number}, {error.where}"
            )
            raise
        names[line.name] = len(lines)
        lines.append(line)
    if not lines:
        raise StudyError("the text holds no layers.", hint="Start with x = input(1, 0).")
    return Lines(tuple(lines))


def graph_text(network: Lines) -> str:
    r"""A text that ``parse_graph`` reads.

    Args:
        network: A network that is written line by line (``parse_graph``, ``mlp``, ``resnet``).

    Returns:
        A line for each layer.

    Raises:
        UsageError: Another network.
        StudyError: An activation that is none of the catalogue.

    Example:
        >>> print(graph_text(parse_graph("x = input(1, 0)\ny = dense(x, 1.5)\nz = tanh(y)")))
        x = input(1, 0)
        y = dense(x, 1.5)
        z = tanh(y)
    """
    if not isinstance(network, Lines):
        raise UsageError(
            f"{network!r} is not written line by line.",
            hint="tp.signal.nonlinearity(network).text says what the layers of any network are.",
        )
    names = [network.named(index) for index in range(len(network.lines))]
    return "\n".join(
        f"{names[index]} = {_LINE(line.word, [names[p] for p in line.parents], index)}"
        for index, line in enumerate(network.lines)
    )


def _layer(code: str, names: dict[str, int]) -> Line:
    try:
        (line,) = ast.parse(code).body
    except (SyntaxError, ValueError):
        line = ast.Pass()
    targets = line.targets if isinstance(line, ast.Assign) else []
    if not isinstance(line, ast.Assign) or [type(each) for each in targets] != [ast.Name]:
        said = f"{short(code, 80)!r} is no layer."
        raise StudyError(said, hint="Write: name = operation(layer, numbers).")
    name = ast.unparse(targets[0])
    if name in names:
        raise StudyError(f"there is a layer {name!r} already.")
    if isinstance(line.value, ast.Call):
        return Line(*_called(line.value, names), name)
    factors = _factors(line.value)
    if factors:
        parents = tuple(_parent(each, names, "a product") for each in factors)
        return Line(Product(), parents, name)
    return Line(*_added(line.value, names), name)


def _called(call: ast.Call, names: dict[str, int]) -> tuple[Operation, tuple[int, ...]]:
    word = call.func.id if isinstance(call.func, ast.Name) else ast.unparse(call.func)
    given = list(call.args)
    parents = () if word == "input" else (_parent(given.pop(0) if given else None, names, word),)
    numbers = [_value(part) for part in given]
    named = {str(part.arg): _value(part.value) for part in call.keywords}
    if word not in WORDS:
        if named:
            raise StudyError(f"{word} takes its parameters without names.")
        if word not in REGISTRY:
            raise UnknownName("layer", word, [*WORDS, *REGISTRY])
        text = ",".join(str(number) for number in numbers)
        return Activation(f"{word}:{text}" if text else word), parents
    known = [field.name for field in fields(WORDS[word])]  # type: ignore[arg-type]
    if len(numbers) > len(known) or not set(named) <= set(known[len(numbers) :]):
        raise StudyError(f"{word} takes {', '.join(known) or 'no numbers'}.")
    try:
        given_all = dict(zip(known, numbers, strict=False)) | named
        return WORDS[word](**{k: _count(k, v) for k, v in given_all.items()}), parents
    except TypeError as error:
        raise StudyError(f"{word} takes {', '.join(known) or 'no numbers'}.") from error


def _count(name: str, value: Number | str | None) -> Number | str | None:
    """Numbers of inputs and outputs are whole numbers, not fractions."""
    counted = name in COUNTS and isinstance(value, Fraction) and value.denominator == 1
    return int(value) if counted else value  # type: ignore[arg-type]


def _parent(part: ast.expr | None, names: dict[str, int], word: str) -> int:
    if not isinstance(part, ast.Name):
        raise StudyError(f"{word} reads a layer, which comes first: {word}(layer, ...).")
    if part.id not in names:
        shown = ", ".join(names) or "none"
        raise StudyError(f"there is no layer {part.id!r} before it.", hint=f"Layers: {shown}.")
    return names[part.id]


def _factors(part: ast.expr) -> tuple[ast.expr, ...]:
    """The two layers of a product; () where it is none."""
    if not (isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult)):
        return ()
    both = isinstance(part.left, ast.Name) and isinstance(part.right, ast.Name)
    return (part.left, part.right) if both else ()


def _added(part: ast.expr, names: dict[str, int]) -> tuple[Operation, tuple[int, ...]]:
    terms: list[tuple[Number, int]] = []
    while isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Sub):
        sign = -1 if isinstance(part.op, ast.Sub) else 1
        terms.append(_term(part.right, names, sign))
        part = part.left
    terms.append(_term(part, names, 1))
    weights, parents = zip(*reversed(terms), strict=True)
    return Addition(weights), parents


def _term(part: ast.expr, names: dict[str, int], sign: int) -> tuple[Number, int]:
    number: Number = Fraction(sign)
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
        number, part = sign * _number(part.left), part.right
    if not isinstance(part, ast.Name):
        raise StudyError("a sum is of named layers, each with a number before it: 0.5*a + b.")
    return number, _parent(part, names, "a sum")


def _value(part: ast.expr) -> Number | str | None:
    if isinstance(part, ast.Constant) and isinstance(part.value, str | bool | None):
        return part.value
    if isinstance(part, ast.Name):
        return part.id
    return _number(part)


def _number(part: ast.expr) -> Number:
    """A number; a quotient of whole numbers is exact."""
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub):
        return -_number(part.operand)
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div):
        over, under = _number(part.left), _number(part.right)
        if under == 0:
            raise StudyError(f"{ast.unparse(part)} is no number.")
        return over / under
    plain = isinstance(part, ast.Constant) and type(part.value) in (int, float)
    if not plain:
        raise StudyError(f"{ast.unparse(part)} is no number.")
    value = part.value  # type: ignore[attr-defined]
    return Fraction(value) if isinstance(value, int) else value


def described(graph: LayerGraph) -> str:
    """The layers, one a line; what is a function of coordinates is written as a formula.

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> from tpcalc.meanfield.reading import layers
        >>> print(described(layers(lookup("mlp").make(1, "tanh", norm="layer"))))
        h0 = input(1, 0)
        h1 = dense(h0, 1)
        h2 = layer_norm(h1)
        h3 = tanh(h2)
        h4 = dense(h3, 1)
    """
    return "\n".join(
        f"h{index} = {_WRITTEN(layer.operation, [f'h{parent}' for parent in layer.parents])}"
        for index, layer in enumerate(graph.layers)
    )


def _sum_text(operation: Addition, names: list[str]) -> str:
    pairs = zip(operation.weights, names, strict=True)
    return " + ".join(f"{weight}*{name}" for weight, name in pairs)


def _function_text(operation: Activation, names: list[str]) -> str:
    if operation.label:
        return f"{operation.label}({names[0]})"
    return f"f({names[0]}), f(x0) = {operation.tau.text}"


def _gain_text(operation: Gain, names: list[str]) -> str:
    return f"f(z)*{names[0]}, f(x0) = {operation.tau.text}, z = N(0, {operation.variance})"


def _call_text(operation: Any, names: list[str]) -> str:
    word = next(word for word, kind in WORDS.items() if type(operation) is kind)
    given = [*names]
    for place, field in enumerate(fields(operation)):
        value = getattr(operation, field.name)
        if place < FIRST.get(word, 1):
            given.append(str(value))
        elif value != field.default:
            shown = repr(value) if isinstance(value, str) else value
            given.append(f"{field.name}={shown}")
    return f"{word}({', '.join(given)})"


_WRITTEN: Table[str] = Table(
    {
        Activation: _function_text,
        Addition: _sum_text,
        Gain: _gain_text,
        Product: lambda operation, names: "*".join(names),
    },
    _call_text,
)


def _activation_text(operation: Activation, names: list[str], index: int) -> str:
    try:
        known = lookup(operation.name)
    except TpcalcError:
        known = None
    if known is None or known.fn.expr != operation.tau:
        raise StudyError(
            f"the activation {operation.name} has no name in the catalogue.", where=f"layer {index}"
        )
    word = known.family.name
    given = operation.name.removeprefix(word).strip("[]")
    return f"{word}({', '.join([*names, given] if given else names)})"


_LINE: Table[str] = Table(
    {Activation: _activation_text}, lambda operation, names, index: _WRITTEN(operation, names)
)
