"""What layers are given: axes, counts, words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tpcalc.activations.given import as_activation
from tpcalc.dsl.elementwise import Elementwise
from tpcalc.dsl.handles import Value
from tpcalc.dsl.operands import misuse, noun
from tpcalc.networks.tracer import NetworkTracer


def tracer(t: Any, layer: str) -> NetworkTracer:
    """The tracer of a network, the first argument of a layer."""
    if not isinstance(t, NetworkTracer):
        raise misuse(
            f"{layer} is made with {noun(t)} for its first argument.",
            f"Give it the t of the network: {layer}(t, ...), in __init__ or in a function "
            "net(t, x).",
        )
    return t


def block(x: Any, what: str) -> Any:
    """A vector or scalar of a program, or a block of them."""
    if not isinstance(x, Value):
        raise misuse(f"{what} is applied to {noun(x)}; it takes a vector or a scalar of a network.")
    return x


def size_of(x: Any, axis: str, what: str) -> int:
    """The size of an axis that a block must have."""
    sizes = block(x, what).axes
    if axis not in sizes:
        known = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise misuse(
            f"{what} runs along {axis!r}, an axis that {noun(x)} does not have.",
            f"Its axes: {known or 'none'}. Name one with axis=.",
        )
    size: int = sizes[axis]
    return size


def axes_of(given: object, what: str) -> tuple[str, ...]:
    """One axis or several, each once."""
    axes = (given,) if isinstance(given, str) else given
    if not isinstance(axes, Sequence) or not axes or not all(isinstance(a, str) for a in axes):
        raise misuse(f"the axes of {what} are {given!r}.", "Give a name, or several: ('y', 'x').")
    if len(set(axes)) < len(axes):
        raise misuse(f"the axes of {what} are {given!r}: one is there twice.")
    return tuple(axes)


def activation(act: Any, what: str) -> Callable[[Any], Any]:
    """An activation, by its name or formula or as a function of vectors.

    Raises:
        TraceError: It is neither.
        UnknownName: There is none of this name.
    """
    if isinstance(act, str):
        given = as_activation(act)
        return Elementwise(given.text, given.expr)
    if not callable(act):
        raise misuse(f"the activation of {what} is {noun(act)}.", "Give a function: tp.relu.")
    found: Callable[[Any], Any] = act
    return found


def whole(value: object, name: str, what: str, least: int = 1) -> int:
    """A count."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise misuse(f"{name} of {what} is {value!r}.", f"It is a whole number from {least} on.")
    return value


def word(value: object, name: str, what: str, words: Sequence[str]) -> str:
    """One of several words."""
    if not isinstance(value, str) or value not in words:
        raise misuse(f"{name} of {what} is {value!r}.", f"It is one of {', '.join(words)}.")
    return value


def part(name: str, of: str) -> str:
    """The name of a part of a layer that has a name; else none, and it is called by its place."""
    return f"{name}.{of}" if name else ""
