"""Layers made of layers: one after the other, side by side, with what they read added."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpcalc.dsl.operands import misuse, noun
from tpcalc.functions.numbers import Number

Step = Callable[[Any], Any]


class Serial(tuple[Step, ...]):
    """Layers one after the other; a tuple, so that maps in it are called by their place."""

    def __call__(self, x: Any) -> Any:
        """The last layer of ... of the first layer of x."""
        for step in self:
            x = step(x)
        return x


class Parallel(tuple[Step, ...]):
    """The sum of what layers give of one input."""

    def __call__(self, x: Any) -> Any:
        """The sum."""
        total, *others = (step(x) for step in self)
        for other in others:
            total = total + other
        return total


class Residual(tuple[Step, ...]):
    """An input plus a multiple of what layers give of it, one after the other."""

    factor: Number = 1

    def __call__(self, x: Any) -> Any:
        """The sum."""
        branch = Serial(self)(x)
        return x + (branch if self.factor == 1 else self.factor * branch)


def serial(*layers: Step) -> Serial:
    """Layers one after the other.

    Args:
        layers: Maps, layers, activations, functions; the first is applied first.

    Returns:
        A layer, called with one vector in a forward pass.

    Raises:
        TraceError: There are none, or one cannot be called.

    Source: Bradbury et al., JAX (2018), ``stax.serial``.

    Example:
        >>> import tpcalc as tp
        >>> class Net(tp.Network):
        ...     def __init__(self, t):
        ...         self.body = tp.layers.serial(t.linear(t.n, "in"), tp.relu, t.linear(t.n, t.n))
        ...         self.read = t.linear(t.outputs, t.n)
        ...     def forward(self, x):
        ...         return self.read(tp.tanh(self.body(x)))
        >>> [mark.label for mark in tp.network(Net).marks]
        ['body.0', 'body.2', 'read']
    """
    return Serial(_checked(layers, "serial"))


def parallel(*branches: Step) -> Parallel:
    """The sum of what layers give of one input.

    Args:
        branches: Maps, layers, functions.

    Returns:
        A layer, called with one vector in a forward pass.

    Raises:
        TraceError: There are none, or one cannot be called.

    Source: Bradbury et al., JAX (2018), ``stax.parallel`` and ``stax.FanInSum``.

    Example:
        >>> import tpcalc as tp
        >>> class Net(tp.Network):
        ...     def __init__(self, t):
        ...         self.both = tp.layers.parallel(t.linear(t.n, "in"), t.linear(t.n, "in"))
        ...         self.read = t.linear(t.outputs, t.n)
        ...     def forward(self, x):
        ...         return self.read(tp.tanh(self.both(x)))
        >>> [mark.label for mark in tp.network(Net).marks]
        ['both.0', 'both.1', 'read']
    """
    return Parallel(_checked(branches, "parallel"))


def residual(*layers: Step, factor: Number = 1) -> Residual:
    """An input plus what layers give of it, one after the other: x + factor f(x).

    Args:
        layers: Maps, layers, functions; the first is applied first.
        factor: In front of the branch.

    Returns:
        A layer, called with one vector in a forward pass.

    Raises:
        TraceError: There are none, or one cannot be called.

    Source: He, Zhang, Ren, Sun, Identity mappings in deep residual networks (2016), equation (1).

    Example:
        >>> import tpcalc as tp
        >>> class Net(tp.Network):
        ...     def __init__(self, t):
        ...         self.enter, self.read = t.linear(t.n, "in"), t.linear(t.outputs, t.n)
        ...         self.block = tp.layers.residual(tp.relu, t.linear(t.n, t.n))
        ...     def forward(self, x):
        ...         return self.read(self.block(self.enter(x)))
        >>> [mark.label for mark in tp.network(Net).marks]
        ['enter', 'block.1', 'read']
    """
    made = Residual(_checked(layers, "residual"))
    made.factor = factor
    return made


def _checked(layers: tuple[Any, ...], what: str) -> tuple[Step, ...]:
    if not layers:
        raise misuse(f"{what} is made of no layers.")
    for layer in layers:
        if not callable(layer):
            raise misuse(f"a layer of {what} is {noun(layer)}.", "It takes what can be called.")
    return layers
