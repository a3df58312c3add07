"""Recurrent cells, and what runs one along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpcalc.activations.entries.sigmoid import SIGMOID
from tpcalc.activations.entries.tanh import TANH
from tpcalc.dsl.elementwise import elementwise
from tpcalc.dsl.operands import misuse, noun
from tpcalc.dsl.tracer import Tracer
from tpcalc.dsl.vectors import Vector
from tpcalc.networks.layers.given import part, size_of, tracer, word
from tpcalc.networks.maps import Linear, Side
from tpcalc.networks.own import Layer
from tpcalc.networks.tracer import NetworkTracer

SIGMA, TANGENT = elementwise(SIGMOID), elementwise(TANH)
RESETS = ("before", "after")


def recur(cell: Callable[[Any, Any], Any], x: Any, axis: str = "p", every: bool = False) -> Vector:
    """A cell run along an axis, from no state on.

    Args:
        cell: Takes the input and the state before, None at the start, and gives the state: a
            vector, or a tuple whose first entry is the output.
        x: A block with the axis: data, or vectors.
        axis: The axis.
        every: Whether the outputs at all places are given, as a block along the axis.

    Returns:
        The last output, or all of them.

    Raises:
        TraceError: There is no such axis, or the cell gives no state.

    Source: Cho et al., Learning phrase representations using RNN encoder-decoder (2014), equation
        (1).

    Example:
        >>> import tpcalc as tp
        >>> class Net(tp.Network):
        ...     axes = {"p": 3}
        ...     def __init__(self, t):
        ...         self.cell, self.read = tp.layers.GRU(t, "in"), t.linear(t.outputs, t.n)
        ...     def forward(self, x):
        ...         return self.read(tp.layers.recur(self.cell, x))
        >>> tp.network(Net).hidden
        4
    """
    state: Any = None
    outputs: list[Any] = []
    for place in range(size_of(x, axis, "recur")):
        state = cell(x.at(**{axis: place}), state)
        outputs.append(state[0] if isinstance(state, tuple) and state else state)
        if not isinstance(outputs[-1], Vector):
            raise misuse(
                f"a recurrent cell gives {noun(outputs[-1])}.",
                "It gives a vector, or a tuple whose first entry is one.",
            )
    last: Vector = outputs[-1]
    return Tracer(last.recorder).stack(outputs, axis) if every else last


class GRU(Layer):
    """The gated recurrent unit: h' = z * h + (1 - z) * c, from the state 0 on.

    z = sigmoid(W_z x + U_z h + b_z), r = sigmoid(W_r x + U_r h + b_r), and the candidate is
    c = tanh(W x + U (r * h) + b), or tanh(W x + r * (U h) + b) with the reset after the map.

    Args:
        t: The tracer of the network.
        into: What the inputs live on: the name of a finite axis, or a width.
        reset: ``"before"`` the map of the state, as published, or ``"after"`` it.
        bias: Whether the gates have biases.
        dim: The dimension class of the state.
        name: Its name, where no class keeps it.

    Raises:
        TraceError: There is no such place of the reset.

    Source: Cho et al., Learning phrase representations using RNN encoder-decoder (2014), equations
        (5)-(8).

    Example:
        >>> import tpcalc as tp
        >>> class Net(tp.Network):
        ...     axes = {"p": 2}
        ...     def __init__(self, t):
        ...         self.cell, self.read = tp.layers.GRU(t, "in"), t.linear(t.outputs, t.n)
        ...     def forward(self, x):
        ...         return self.read(tp.layers.recur(self.cell, x))
        >>> [mark.label for mark in tp.network(Net).marks if mark.role == "hidden"]
        ['cell.state.update', 'cell.state.reset', 'cell.state.new']
    """

    def __init__(
        self,
        t: NetworkTracer,
        into: Side,
        reset: str = RESETS[0],
        bias: bool | str = False,
        dim: str = "n",
        *,
        name: str = "",
    ) -> None:
        self.reset = word(reset, "the reset", "GRU", RESETS)
        self.input, self.state = _gates(
            tracer(t, "GRU"), ("update", "reset", "new"), into, bias, dim, name
        )

    def __call__(self, x: Any, h: Vector | None = None) -> Vector:
        """The next state.

        Args:
            x: The input.
            h: The state before; None: 0.
        """
        if h is None:
            z, c = SIGMA(self.input["update"](x)), TANGENT(self.input["new"](x))
            first: Vector = c - z * c
            return first
        z, r = (SIGMA(self.input[gate](x) + self.state[gate](h)) for gate in ("update", "reset"))
        new = self.state["new"]
        carried = new(r * h) if self.reset == "before" else r * new(h)
        c = TANGENT(self.input["new"](x) + carried)
        following: Vector = z * h + (c - z * c)
        return following


class LSTM(Layer):
    """The long short-term memory: c' = f * c + i * g and h' = o * tanh(c'), from 0 on.

    i, f, o are sigmoids and g the tanh of W x + U h + b, each with maps of its own.

    Args:
        t: The tracer of the network.
        into: What the inputs live on: the name of a finite axis, or a width.
        bias: Whether the gates have biases.
        dim: The dimension class of the state.
        name: Its name, where no class keeps it.

    Source: Hochreiter, Schmidhuber, Long short-term memory (1997), equations (1)-(9); Gers,
        Schmidhuber, Cummins, Learning to forget (2000), section 3, for the forget gate.

    Example:
        >>> import tpcalc as tp
        >>> class Net(tp.Network):
        ...     axes = {"p": 2}
        ...     def __init__(self, t):
        ...         self.cell, self.read = tp.layers.LSTM(t, "in"), t.linear(t.outputs, t.n)
        ...     def forward(self, x):
        ...         return self.read(tp.layers.recur(self.cell, x))
        >>> tp.network(Net).hidden
        5
    """

    def __init__(
        self,
        t: NetworkTracer,
        into: Side,
        bias: bool | str = False,
        dim: str = "n",
        *,
        name: str = "",
    ) -> None:
        self.input, self.state = _gates(
            tracer(t, "LSTM"), ("in", "forget", "out", "new"), into, bias, dim, name
        )

    def __call__(self, x: Any, state: tuple[Vector, Vector] | None = None) -> tuple[Vector, Vector]:
        """The next output and the next memory.

        Args:
            x: The input.
            state: Output and memory before; None: 0.

        Raises:
            TraceError: The state is no pair.
        """
        if state is not None and not (isinstance(state, tuple) and len(state) == 2):
            raise misuse(f"the state of an LSTM is a pair (h, c), not {noun(state)}.")

        def gate(which: str) -> Vector:
            own: Vector = self.input[which](x)
            return own if state is None else own + self.state[which](state[0])

        memory = SIGMA(gate("in")) * TANGENT(gate("new"))
        if state is not None:
            memory = SIGMA(gate("forget")) * state[1] + memory
        return SIGMA(gate("out")) * TANGENT(memory), memory


def _gates(
    t: NetworkTracer, gates: tuple[str, ...], into: Side, bias: bool | str, dim: str, name: str
) -> tuple[dict[str, Linear[Any]], dict[str, Linear[Any]]]:
    """For each gate the map of the input and that of the state."""
    return (
        {gate: t.linear(dim, into, bias, name=part(name, f"input.{gate}")) for gate in gates},
        {gate: t.linear(dim, dim, name=part(name, f"state.{gate}")) for gate in gates},
    )
