"""Modules of several widths exported by torch, and aligned operation by operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import TraceError
from tpcalc.torch.exported import Exported, arguments, name_of, place_of
from tpcalc.torch.graph import Count, Graph, Op, Place, Use

Tensor = Any


def traced(
    name: str, modules: Mapping[int, Any], inputs: Any, names: Mapping[str, str], output: str = ""
) -> Graph:
    """What modules of several widths compute of inputs."""
    widths = tuple(sorted(modules))
    runs = [Exported.of(modules[n], arguments(inputs, n), f"{name} at n = {n}") for n in widths]
    first = runs[0]
    for other, width in zip(runs[1:], widths[1:], strict=True):
        _check_alike(first, other, widths[0], width)
    return _Aligner(name, widths, runs, names).graph(output)


def _check_alike(first: Exported, other: Exported, small: int, large: int) -> None:
    for place, (one, two) in enumerate(zip(first.nodes, other.nodes, strict=False)):
        if (one.op, name_of(one)) != (two.op, name_of(two)):
            raise TraceError(
                f"the graphs at n = {small} and n = {large} differ at node {place}: {name_of(one)} "
                f"and {name_of(two)}, a branch that depends on the width.",
                where=str(place_of(one)),
                hint="A family has one graph: take widths on one side of the branch.",
            )


@dataclass
class _Aligner:
    """Modules of several widths as one graph."""

    name: str
    widths: tuple[int, ...]
    runs: Sequence[Exported]
    names: Mapping[str, str]
    ops: list[Op] = field(default_factory=list)
    index: dict[Any, int] = field(default_factory=dict)
    parameters: dict[str, int] = field(default_factory=dict)

    def graph(self, output: str) -> Graph:
        """The graph with its output."""
        first, leaves = self.runs[0], self.runs[0].leaves
        for place, node in enumerate(first.nodes):
            same = [run.nodes[place] for run in self.runs]
            if node.op == "placeholder":
                self._leaf(same, *leaves[node.name])
            elif node.op == "call_function" and node not in first.given:
                self._add(same, Op(name_of(node), *self._arguments(same), _shapes(same),
                                   place_of(node)))  # fmt: skip
        index, chosen = self._output(output)
        told = tuple(
            f"the input {target} counts as given: the answer is that for its values"
            for node in first.nodes
            for kind, target in [leaves.get(node.name, ("", ""))]
            if kind == "USER_INPUT" and hasattr(first.given.get(node), "shape")
        )
        return Graph(self.name, self.widths, tuple(self.ops), index, told, chosen)

    def _add(self, same: Sequence[Any], op: Op) -> None:
        self.ops.append(op)
        self.index[same[0]] = len(self.ops) - 1

    def _leaf(self, same: Sequence[Any], kind: str, target: str) -> None:
        node = same[0]
        if kind == "PARAMETER":
            label = self.names.get(target, target)
            if label in self.parameters:  # tied
                self.index[node] = self.parameters[label]
                return
            self._add(same, Op("parameter", shapes=_shapes(same), label=label))
            self.parameters[label] = self.index[node]
        elif node not in self.runs[0].given:
            whole = not node.meta["val"].is_floating_point()
            self._add(same, Op("tokens" if whole else "input", shapes=_shapes(same), label=target))

    def _arguments(self, same: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args = self._aligned([node.args for node in same], same)
        names = same[0].kwargs
        held = {one: self._aligned([node.kwargs[one] for node in same], same) for one in names}
        return args, held

    def _aligned(self, values: Sequence[Any], same: Sequence[Any]) -> Any:
        """An argument at all widths."""
        first = values[0]
        if isinstance(first, tuple | list):
            lengths = {len(one) for one in values}
            if len(lengths) > 1:
                raise self._differs(values, same)
            return tuple(self._aligned(each, same) for each in zip(*values, strict=True))
        if hasattr(first, "op") and hasattr(first, "users"):
            return self._use(values, same)
        if isinstance(first, int | float) and not isinstance(first, bool):
            return Count(tuple(values))
        if any(one != first for one in values):
            raise self._differs(values, same)
        return first

    def _use(self, nodes: Sequence[Any], same: Sequence[Any]) -> Use:
        first = self.runs[0]
        if nodes[0].op == "get_attr":
            raise TraceError(
                f"{name_of(same[0])} holds sub-graphs.",
                where=str(place_of(same[0])),
                hint="Write branches and loops in Python: they are run while torch exports.",
            )
        if nodes[0] in first.given and nodes[0] not in self.index:
            arrays = [run.given[node] for run, node in zip(self.runs, nodes, strict=True)]
            self._add(nodes, given(arrays, place_of(nodes[0])))
        return Use(self.index[nodes[0]])

    def _differs(self, values: Sequence[Any], same: Sequence[Any]) -> TraceError:
        return TraceError(
            f"an argument of {name_of(same[0])} is {', '.join(map(str, values))} at widths "
            f"{', '.join(map(str, self.widths))}.",
            where=str(place_of(same[0])),
            hint="A family has one graph: only sizes and numbers may depend on the width.",
        )

    def _output(self, wanted: str) -> tuple[int, int]:
        """The operation that is meant, and its number among the tensors of floats."""
        own = [one for kind, _, one in self.runs[0].results if kind == "USER_OUTPUT"]
        floats = [one for one in own if hasattr(one, "meta")
                  and one.meta["val"].is_floating_point()]  # fmt: skip
        if not any(one in self.index for one in floats):
            raise TraceError(
                f"no output of {self.name} is a tensor of numbers that depends on its inputs.",
                hint="The output is the first tensor of floats that forward returns.",
            )
        if not wanted:
            first = next(one for one in floats if one in self.index)
            return self.index[first], floats.index(first)
        number = int(wanted) if wanted.isdigit() else -1
        if not 0 <= number < len(floats) or floats[number] not in self.index:
            raise TraceError(
                f"there is no output {wanted!r}.",
                hint=f"Tensors of floats that forward returns have numbers from 0 to "
                f"{len(floats) - 1}.",
            )
        return self.index[floats[number]], number


def _shapes(same: Sequence[Any]) -> tuple[tuple[tuple[int, ...], ...], ...]:
    values = [node.meta.get("val") for node in same]
    several = [one if isinstance(one, tuple | list) else (one,) for one in values]
    return tuple(
        tuple(zip(*(tuple(map(int, one.shape)) for one in each), strict=True))
        for each in zip(*several, strict=True)
        if all(hasattr(one, "shape") for one in each)
    )


def given(arrays: Sequence[Any], place: Place) -> Op:
    """What does not depend on parameters or inputs."""
    torch = load_torch()
    held = tuple(
        one.detach().numpy() if isinstance(one, torch.Tensor) else np.asarray(one) for one in arrays
    )
    shapes = tuple(zip(*(one.shape for one in held), strict=True))
    return Op("given", shapes=(shapes,), place=place, values=held)
