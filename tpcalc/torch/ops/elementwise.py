"""Coordinatewise functions: a row of a table for each."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tpcalc.activations.entries import REGISTRY
from tpcalc.activations.public import as_function
from tpcalc.dsl.elementwise import elementwise
from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.powers import Power
from tpcalc.dsl.vectors import Vector
from tpcalc.torch.arrays import Array
from tpcalc.torch.dims import Dim
from tpcalc.torch.graph import Count, Op
from tpcalc.torch.rules import as_array, number, rule
from tpcalc.torch.space import Space

Fn = Callable[..., Any]
EXCLUDED = -1e4  # what is added to a score that a softmax is to leave out


def catalogued(name: str, *parameters: Any) -> Fn:
    """A function of the catalogue on values, numbers included."""
    entry = REGISTRY[name]
    made: Fn = as_function(entry)
    return made(*parameters) if parameters else made


def greater(a: Any, b: Any) -> Any:
    """The larger of two values."""
    return b + catalogued("relu")(a - b)


def smaller(a: Any, b: Any) -> Any:
    """The smaller of two values."""
    return -greater(-a, -b)


def _clamped(x: Any, low: Any = None, high: Any = None) -> Any:
    relu = catalogued("relu")
    if low is not None:
        x = low + relu(x - low)
    return x if high is None else high - relu(high - x)


def _softplus(x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    return catalogued("softplus")(beta * x) * (1 / Fraction(beta))


def _gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "none":
        return catalogued("gelu")(x)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + catalogued("tanh")(inner))


def _hardsigmoid(x: Any) -> Any:
    return _clamped(x * Fraction(1, 6) + Fraction(1, 2), 0, 1)


def _called(name: str) -> Fn:
    return lambda x: catalogued(name)(x)


_log = _called("log")
_AS_NAMED = ("relu", "tanh", "sigmoid", "exp", "log", "erf", "sin", "abs", "sign")
# Functions of tensors, entry by entry; numbers that follow are theirs.
ONE: dict[str, Fn] = {
    **{name: _called(name) for name in _AS_NAMED},
    "gelu": _gelu,
    "silu": _called("swish"),
    "softplus": _softplus,
    "cos": lambda x: catalogued("sin")(x + math.pi / 2),
    "sqrt": lambda x: x ** Fraction(1, 2),
    "rsqrt": lambda x: x ** Fraction(-1, 2),
    "reciprocal": lambda x: x**-1,
    "square": lambda x: x * x,
    "neg": lambda x: -x,
    "relu6": lambda x: _clamped(x, 0, 6),
    "hardtanh": lambda x, low=-1, high=1: _clamped(x, low, high),
    "clamp": _clamped,
    "clamp_min": lambda x, low: _clamped(x, low),
    "clamp_max": lambda x, high: _clamped(x, None, high),
    "hardsigmoid": _hardsigmoid,
    "hardswish": lambda x: x * _hardsigmoid(x),
    "leaky_relu": lambda x, slope=0.01: catalogued("leaky_relu", slope)(x),
    "elu": lambda x, alpha=1, scale=1, inner=1: scale * catalogued("elu", alpha)(inner * x),
    "selu": lambda x: 1.0507009873554805 * catalogued("elu", 1.6732632423543772)(x),
    "mish": lambda x: x * catalogued("tanh")(catalogued("softplus")(x)),
    "logsigmoid": lambda x: -catalogued("softplus")(-x),
    "log_sigmoid": lambda x: -catalogued("softplus")(-x),
    "expm1": lambda x: catalogued("exp")(x) - 1,
    "log1p": lambda x: _log(1 + x),
    "log2": lambda x: _log(x) * (1 / math.log(2)),
    "exp2": lambda x: catalogued("exp")(math.log(2) * x),
    "sinh": lambda x: Fraction(1, 2) * (catalogued("exp")(x) - catalogued("exp")(-x)),
    "cosh": lambda x: Fraction(1, 2) * (catalogued("exp")(x) + catalogued("exp")(-x)),
    "erfc": lambda x: 1 - catalogued("erf")(x),
    "celu": lambda x, alpha=1: alpha * catalogued("elu", 1)(x * (1 / Fraction(alpha))),
    **dict.fromkeys(("maximum", "fmax"), greater),
    **dict.fromkeys(("minimum", "fmin"), smaller),
    "lerp": lambda x, y, w: x + w * (y - x),
    "softshrink": lambda x, low=Fraction(1, 2): x - _clamped(x, -low, low),
}


def is_handle(value: Any) -> bool:
    """Whether a value is computed by the program."""
    return isinstance(value, Scalar | Vector)


def _register(name: str, fn: Fn) -> None:
    @rule(f"aten.{name}", f"aten.{name}_")
    def made(space: Space, op: Op, x: Array, *rest: Any, **named: Any) -> Array:
        if any(isinstance(one, Array) for one in rest):
            return space.apply(fn, x, *(as_array(space, one, op) for one in rest))
        own = [number(space, one, op) for one in rest]
        words = {key: number(space, one, op) for key, one in named.items() if key != "inplace"}
        # One node, whatever the formula is made of.
        whole = elementwise(lambda z: fn(z, *own, **words))
        return space.apply(
            lambda value: whole(value) if is_handle(value) else fn(value, *own, **words), x
        )


for _name, _fn in ONE.items():
    _register(_name, _fn)


@rule("aten.add", "aten.add_")
def add(space: Space, op: Op, x: Any, y: Any, alpha: Any = None) -> Array:
    """The sum; what is very negative is left out of a softmax."""
    left, right = as_array(space, x, op), as_array(space, y, op)
    for one, other in ((left, right), (right, left)):
        if other.given is not None and (np.asarray(other.given) <= EXCLUDED).any():
            return hiding(space, one, np.asarray(other.given) <= EXCLUDED, other.dims)
    factor = 1 if alpha is None else number(space, alpha, op)
    return space.apply(lambda a, b: space.added(a, b * factor if factor != 1 else b), left, right)


def hiding(space: Space, x: Array, hidden: Any, dims: tuple[Dim, ...]) -> Array:
    """Scores of which a softmax leaves out some cells."""
    together = space.together([x, Array(dims)])
    if space.tracer is None:
        return Array(together, hidden=hidden)
    value = space.apply(
        lambda a: a, Array(((),) * (len(together) - x.rank) + x.dims, x.value)
    ).value
    return Array(together, value, hidden=hidden)


@rule("aten.sub", "aten.sub_", "aten.subtract")
def subtract(space: Space, op: Op, x: Any, y: Any, alpha: Any = None) -> Array:
    """The difference."""
    factor = 1 if alpha is None else number(space, alpha, op)
    return space.apply(
        lambda a, b: space.added(a, -b if factor == 1 else b * -factor),
        as_array(space, x, op), as_array(space, y, op),
    )  # fmt: skip


@rule("aten.rsub")
def subtracted_from(space: Space, op: Op, x: Any, y: Any, alpha: Any = None) -> Array:
    """The difference the other way round."""
    return subtract(space, op, y, x, alpha)


@rule("aten.mul", "aten.mul_", "aten.multiply")
def multiply(space: Space, op: Op, x: Any, y: Any) -> Array:
    """The product; of what is one parameter up to a number the parameter keeps its name."""
    left, right = as_array(space, x, op), as_array(space, y, op)
    found = space.apply(lambda a, b: a * b, left, right)
    label = left.label if not right.dims else right.label if not left.dims else ""
    hidden = left.hidden if left.hidden is not None and not right.dims else None
    return Array(found.dims, found.value, label, hidden)


@rule("aten.div", "aten.div_", "aten.true_divide")
def divide(space: Space, op: Op, x: Any, y: Any) -> Array:
    """The quotient."""
    left, right = as_array(space, x, op), as_array(space, y, op)
    found = space.apply(lambda a, b: a / b, left, right)
    return Array(found.dims, found.value, "" if right.dims else left.label, left.hidden)


@rule("aten.prelu")
def sloped(space: Space, op: Op, x: Array, slope: Array) -> Array:
    """A leaky ReLU with a slope for all channels, or for each of them."""
    relu = catalogued("relu")
    slope = space.shaped(slope, (*slope.dims, *((),) * (x.rank - 2)))
    return space.apply(lambda a, b: relu(a) - b * relu(-a), x, slope)


@rule("aten.pow", "aten.pow_")
def power(space: Space, op: Op, x: Any, y: Any) -> Array:
    """A power with a given exponent, or of a given number."""
    if isinstance(y, Array) and isinstance(x, Count) and x.same:
        base = math.log(x.values[0])
        return space.apply(lambda a: catalogued("exp")(base * a), y)
    if isinstance(y, Array):
        raise space.refuse("an exponent depends on parameters or data.",
                           "Write x**y as exp(y * log(x)).")  # fmt: skip
    exponent = number(space, y, op)
    half = Fraction(exponent).limit_denominator(24) if not isinstance(exponent, Power) else exponent
    return space.apply(lambda a: a**half, as_array(space, x, op))


@rule("aten.addcmul")
def product_added(space: Space, op: Op, x: Array, y: Array, z: Array, value: Any = None) -> Array:
    """A sum with a product."""
    factor = 1 if value is None else number(space, value, op)
    return space.apply(lambda a, b, c: a + b * c * factor, x, y, z)


@rule("aten.masked_fill", "aten.masked_fill_")
def masked(space: Space, op: Op, x: Array, mask: Array, value: Any) -> Array:
    """Cells that a given mask chooses, put to a number; a very negative one leaves them out."""
    _check_given(space, mask)
    if isinstance(value, Count) and value.values[0] <= EXCLUDED:
        return hiding(space, x, np.asarray(mask.given) != 0, mask.dims)
    filled = as_array(space, value, op)
    return space.apply(lambda a, m, f: a + m * (f - a), x, mask, filled)


@rule("aten.where")
def where(space: Space, op: Op, mask: Array, x: Any, y: Any) -> Array:
    """Cells of one tensor or another, as a given mask says."""
    _check_given(space, mask)
    left, right = as_array(space, x, op), as_array(space, y, op)
    chosen = np.asarray(mask.given) != 0
    for one, low, hidden in ((left, y, ~chosen), (right, x, chosen)):
        if isinstance(low, Array) and low.given is not None and not low.dims:
            low = Count((float(np.asarray(low.given)),))
        if isinstance(low, Count) and low.values[0] <= EXCLUDED:
            return hiding(space, one, hidden, mask.dims)
    return space.apply(lambda m, a, b: b + m * (a - b), mask, left, right)


def _check_given(space: Space, mask: Array) -> None:
    if mask.given is None:
        raise space.refuse(
            "a mask depends on parameters or data.",
            "Masks that are given, or made of sizes, are followed; a maximum with 0 is a ReLU.",
        )
