"""Modules of several widths exported by torch, and aligned operation by operation."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tpcalc.dsl.operands import last_user_line, line_in_stack
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import TraceError
from tpcalc.torch.graph import Count, Graph, Op, Place, Use

Tensor = Any
Inputs = tuple[tuple[Any, ...], dict[str, Any]]
RANDOM = re.compile(r"(rand|bernoulli|normal|uniform|multinomial|exponential)")
TOKENS = "aten.embedding"
# What stands between a whole number and the table that it is looked up in.
CARRIED = ("aten.view", "aten.reshape", "aten.to", "aten.contiguous", "aten.flatten", "aten.alias",
           "aten.unsqueeze", "aten.squeeze", "aten.clone")  # fmt: skip


def arguments(inputs: Any, width: int) -> Inputs:
    """The inputs of a module of a width, from whatever a user hands over."""
    if callable(inputs):
        inputs = inputs(width)
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    torch = load_torch()
    return ((inputs,) if isinstance(inputs, torch.Tensor) else tuple(inputs)), {}


def traced(
    name: str, modules: Mapping[int, Any], inputs: Any, names: Mapping[str, str], output: str = ""
) -> Graph:
    """What modules of several widths compute of inputs.

    Args:
        name: Of the family.
        modules: By width.
        inputs: Example tensors: one, several, by name, or a function of the width that gives these.
        names: For each parameter the name that it is called by.
        output: Of several outputs the one that is meant, by name or number.

    Raises:
        TraceError: A branch on data, graphs that differ from width to width.
    """
    widths = tuple(sorted(modules))
    runs = [_Exported.of(modules[n], arguments(inputs, n), f"{name} at n = {n}") for n in widths]
    first = runs[0]
    for other, width in zip(runs[1:], widths[1:], strict=True):
        _check_alike(first, other, widths[0], width)
    return _Aligner(name, widths, runs, names).graph(output)


@dataclass
class _Exported:
    """A module as torch exports it.

    Args:
        program: What torch gives.
        nodes: Its nodes.
        given: The values that do not depend on parameters, nor on inputs that are numbers.
    """

    program: Any
    nodes: list[Any]
    given: dict[Any, Any] = field(default_factory=dict)

    @staticmethod
    def of(module: Any, inputs: Inputs, where: str) -> _Exported:
        torch = load_torch()
        args, kwargs = inputs
        try:
            with _quiet():
                program = torch.export.export(module, args, kwargs, strict=False)
        except Exception as error:  # whatever a module of the user raises is the news here
            raise _not_exported(error, where) from error
        if _writes_into_views(program.graph.nodes):
            program = program.run_decompositions({})
        found = _Exported(program, [*_inlined(program.graph_module)])
        found._evaluate(args, kwargs)
        return found

    @property
    def leaves(self) -> dict[str, tuple[str, str]]:
        """What each placeholder stands for: its kind and its name."""
        kinds = ((spec.kind.name, spec) for spec in self.program.graph_signature.input_specs)
        return {spec.arg.name: (kind, spec.target or spec.arg.name) for kind, spec in kinds}

    def _evaluate(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        torch, leaves = load_torch(), self.leaves
        known = {**self.program.state_dict, **self.program.constants}
        flat, _ = torch.utils._pytree.tree_flatten((args, dict(kwargs)))
        numbered = iter(flat)
        for node in self.nodes:
            if node.op == "placeholder":
                kind, target = leaves[node.name]
                if kind == "USER_INPUT":
                    value = next(numbered)
                    if not isinstance(value, torch.Tensor) or _is_given(value, node):
                        self.given[node] = value
                elif kind != "PARAMETER":
                    self.given[node] = known[target]
            elif node.op == "call_function" and not RANDOM.search(_name(node)):
                inner = node.all_input_nodes
                if all(one in self.given for one in inner):
                    with torch.no_grad():
                        self.given[node] = node.target(*self._held(node.args),
                                                       **self._held(node.kwargs))  # fmt: skip

    def _held(self, value: Any) -> Any:
        torch = load_torch()
        return torch.fx.node.map_arg(value, lambda node: self.given[node])


@contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings of what modules keep, and without the log of what an error says."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _is_given(value: Any, node: Any) -> bool:
    """Whether an input is a mask or a position, and no number that the network reads."""
    return not value.is_floating_point() and not tokens(node)


def tokens(node: Any) -> bool:
    """Whether whole numbers are looked up in a table, and nothing else is done with them."""
    users = list(node.users)
    return bool(users) and all(
        (_name(user) == TOKENS and user.args[1] is node)
        or (_name(user) in CARRIED and tokens(user))
        or _name(user) in SHAPES
        for user in users
    )


SHAPES = ("aten.sym_size", "aten._assert_tensor_metadata")


def _name(node: Any) -> str:
    target = node.target
    packet = getattr(target, "overloadpacket", None)
    if packet is not None:
        return str(packet).replace("torch.ops.", "")
    return str(getattr(target, "__name__", target))


def _writes_into_views(nodes: Sequence[Any]) -> bool:
    """Whether something is changed in place that other names stand for as well."""
    changed = (node.args[0] for node in nodes if node.op == "call_function" and _in_place(node))
    return any(
        of.op == "call_function" and (_may_alias(of) or any(map(_may_alias, of.users)))
        for of in changed
    )


def _in_place(node: Any) -> bool:
    schema = getattr(node.target, "_schema", None)
    return bool(schema is not None and schema.is_mutable and node.args)


def _may_alias(node: Any) -> bool:
    schema = getattr(node.target, "_schema", None)
    returned = () if schema is None else schema.returns
    return not _in_place(node) and any(one.alias_info is not None for one in returned)


def _inlined(module: Any) -> Iterator[Any]:
    """The nodes of a graph, those of sub-graphs that only set a mode in their place."""
    yield from module.graph.nodes


def _check_alike(first: _Exported, other: _Exported, small: int, large: int) -> None:
    for place, (one, two) in enumerate(zip(first.nodes, other.nodes, strict=False)):
        if (one.op, _name(one)) != (two.op, _name(two)):
            raise TraceError(
                f"the graphs at n = {small} and n = {large} differ at node {place}: {_name(one)} "
                f"and {_name(two)}, a branch that depends on the width.",
                where=str(_place(one)),
                hint="A family has one graph: take widths on one side of the branch.",
            )
    if len(first.nodes) != len(other.nodes):
        raise TraceError(
            f"the graphs at n = {small} and n = {large} have {len(first.nodes)} and "
            f"{len(other.nodes)} nodes.",
            hint="A family has one graph: only sizes may grow with the width.",
        )


def _not_exported(error: Exception, where: str) -> TraceError:
    text = str(error)
    line = last_user_line(error.__traceback__) or where
    if "data-dependent" in text.lower() or "GuardOnDataDependent" in type(error).__name__:
        hint = "Use dense routing, or a comparison that does not become a Python branch."
        if "TransformerEncoder" in text or "is_causal" in text or "transformer.py" in text:
            hint = "nn.TransformerEncoder compares its mask with a causal one: pass is_causal=True."
        return TraceError(
            "the module branches on data (the value of a tensor), so that what it computes "
            "depends on the input.",
            where=line,
            hint=hint,
        )
    if "Cache" in text and "not a known type" in text:
        return TraceError(
            "an output of the module is a cache.", where=line, hint="Pass use_cache=False."
        )
    said = (*text.strip().splitlines(), "")[0].rstrip(".")
    return TraceError(
        f"torch cannot export the module: {type(error).__name__}: {said}.",
        where=line,
        hint="It is run on the inputs that are given, as torch.export.export(module, inputs).",
    )


def _place(node: Any) -> Place:
    stack = [*(node.meta.get("nn_module_stack") or {}).values()]
    path = stack[-1][0] if stack else ""
    return Place(path, line_in_stack(node.meta.get("stack_trace") or ""))


@dataclass
class _Aligner:
    """Modules of several widths as one graph."""

    name: str
    widths: tuple[int, ...]
    runs: Sequence[_Exported]
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
                self._add(same, Op(_name(node), *self._arguments(same), _shapes(same),
                                   _place(node)))  # fmt: skip
                if _in_place(node):
                    self.index[node.args[0]] = self.index[node]
        index, chosen = self._output(first.nodes[-1], output)
        return Graph(self.name, self.widths, tuple(self.ops), index, chosen=chosen)

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
        if nodes[0] in first.given and nodes[0] not in self.index:
            arrays = [run.given[node] for run, node in zip(self.runs, nodes, strict=True)]
            self._add(nodes, given(arrays, _place(nodes[0])))
        return Use(self.index[nodes[0]])

    def _differs(self, values: Sequence[Any], same: Sequence[Any]) -> TraceError:
        return TraceError(
            f"an argument of {_name(same[0])} is {', '.join(map(str, values))} at widths "
            f"{', '.join(map(str, self.widths))}.",
            where=str(_place(same[0])),
            hint="A family has one graph: only sizes and numbers may depend on the width.",
        )

    def _output(self, node: Any, wanted: str) -> tuple[int, int]:
        """The operation that is meant, and its number among the tensors of floats."""
        torch = load_torch()
        flat, _ = torch.utils._pytree.tree_flatten(node.args[0])
        kinds = [spec.kind.name for spec in self.runs[0].program.graph_signature.output_specs]
        own = [one for one, kind in zip(flat, kinds, strict=False) if kind == "USER_OUTPUT"]
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
