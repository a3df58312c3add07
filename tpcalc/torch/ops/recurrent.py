"""Recurrent layers and cells, written out step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tpcalc.torch.arrays import Array
from tpcalc.torch.dims import times
from tpcalc.torch.graph import Count, Op
from tpcalc.torch.ops.contractions import linear
from tpcalc.torch.ops.elementwise import catalogued
from tpcalc.torch.ops.indexing import joined, pieces_of, select, stack
from tpcalc.torch.rules import rule
from tpcalc.torch.space import Space

State = tuple[Array, ...]
Cell = Callable[[Space, Op, Array, State, Sequence[Any]], State]


def _gates(
    space: Space, op: Op, x: Array, weight: Array, bias: Array | None, count: int
) -> tuple[Array, ...]:
    """What each gate gets of a tensor: the rows of the weights are those of the gates in turn."""
    total = times(weight.expanded()[0], len(space.widths))
    own = tuple(size // count for size in total)
    rows = pieces_of(space, weight, 0, [own] * count)
    shifts = [None] * count if bias is None else pieces_of(space, bias, 0, [own] * count)
    return tuple(linear(space, op, x, w, b) for w, b in zip(rows, shifts, strict=True))


def _both(
    space: Space, op: Op, x: Array, h: Array, weights: Sequence[Any], count: int
) -> list[Array]:
    into, over, *biases = weights
    shifts = (*biases, None, None)
    own = _gates(space, op, x, into, shifts[0], count)
    carried = _gates(space, op, h, over, shifts[1], count)
    return [space.apply(lambda a, b: a + b, *pair) for pair in zip(own, carried, strict=True)]


def _lstm(space: Space, op: Op, x: Array, state: State, weights: Sequence[Any]) -> State:
    sigmoid, tanh = catalogued("sigmoid"), catalogued("tanh")
    enter, forget, new, leave = _both(space, op, x, state[0], weights, 4)
    memory = space.apply(
        lambda i, f, g, c: sigmoid(f) * c + sigmoid(i) * tanh(g), enter, forget, new, state[1]
    )
    return space.apply(lambda o, c: sigmoid(o) * tanh(c), leave, memory), memory


def _gru(space: Space, op: Op, x: Array, state: State, weights: Sequence[Any]) -> State:
    sigmoid, tanh = catalogued("sigmoid"), catalogued("tanh")
    into, over, *biases = weights
    shifts = (*biases, None, None)
    own = _gates(space, op, x, into, shifts[0], 3)
    carried = _gates(space, op, state[0], over, shifts[1], 3)
    reset, update = (space.apply(lambda a, b: sigmoid(a + b), own[k], carried[k]) for k in (0, 1))
    new = space.apply(lambda a, r, b: tanh(a + r * b), own[2], reset, carried[2])
    return (space.apply(lambda z, c, h: c + z * (h - c), update, new, state[0]),)


def _plain(name: str) -> Cell:
    def cell(space: Space, op: Op, x: Array, state: State, weights: Sequence[Any]) -> State:
        (read,) = _both(space, op, x, state[0], weights, 1)
        return (space.apply(catalogued(name), read),)

    return cell


CELLS: dict[str, tuple[Cell, int]] = {
    "lstm": (_lstm, 2),
    "gru": (_gru, 1),
    "rnn_tanh": (_plain("tanh"), 1),
    "rnn_relu": (_plain("relu"), 1),
}


def _register(name: str, cell: Cell, states: int) -> None:
    @rule(f"aten.{name}_cell")
    def single(space: Space, op: Op, x: Array, state: Any, *weights: Any) -> Any:
        held = state if isinstance(state, tuple) else (state,)
        found = cell(space, op, x, held, weights)
        return found if states > 1 else found[0]

    @rule(f"aten.{name}")
    def layers(
        space: Space, op: Op, x: Array, state: Any, weights: Any, biased: Any, count: Any,
        dropout: Any, train: Any, both_ways: Any, batch_first: Any,
    ) -> Any:  # fmt: skip
        held = state if isinstance(state, tuple) else (state,)
        ways = 2 if both_ways else 1
        each = len(weights) // (count.whole * ways)
        at = 1 if batch_first and x.rank == 3 else 0
        ends: list[State] = []
        for _ in range(count.whole):
            made = []
            for way in range(ways):
                k = len(ends)
                own = tuple(select(space, op, one, 0, k) for one in held)
                some = weights[k * each : (k + 1) * each]
                found, end = _along(space, op, cell, x, at, own, some, -1 if way else 1)
                made.append(found)
                ends.append(end)
            x = joined(space, made, x.rank - 1) if both_ways else made[0]
        widths = (0,) * len(space.widths)
        last = tuple(stack(space, op, tuple(end[k] for end in ends), Count(widths))
                     for k in range(states))  # fmt: skip
        return (x, *last)


def _along(
    space: Space, op: Op, cell: Cell, x: Array, at: int, state: State, weights: Sequence[Any],
    step: int,
) -> tuple[Array, State]:  # fmt: skip
    """A cell run along a dimension, forward or backward."""
    places, outputs = times(x.expanded()[at], 1)[0], []
    for k in range(places)[::step]:
        state = cell(space, op, select(space, op, x, at, k), state, weights)
        outputs.append(state[0])
    return stack(space, op, tuple(outputs[::step]), Count((at,) * len(space.widths))), state


for _name, (_cell, _states) in CELLS.items():
    _register(_name, _cell, _states)
