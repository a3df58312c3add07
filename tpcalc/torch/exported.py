"""A module as torch exports it: its operations, and what of it does not depend on parameters."""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import operator
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.dsl.operands import last_user_line, line_in_stack
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import StudyError, TpcalcError, TraceError, UsageError, raised
from tpcalc.program.base import reached
from tpcalc.torch.graph import Place
from tpcalc.torch.rules import rule_of

Inputs = tuple[tuple[Any, ...], dict[str, Any]]
RANDOM = re.compile(r"(rand|bernoulli|normal|uniform|multinomial|exponential)")
TOKENS = "aten.embedding"
# What stands between a whole number and the table that it is looked up in.
CARRIED = ("aten.view", "aten.reshape", "aten.to", "aten.contiguous", "aten.flatten", "aten.alias",
           "aten.unsqueeze", "aten.squeeze", "aten.clone")  # fmt: skip
SHAPES = ("aten.sym_size", "aten._assert_tensor_metadata")


def arguments(inputs: Any, width: int) -> Inputs:
    """The inputs of a module of a width, from whatever a user hands over."""
    torch = load_torch()
    if callable(inputs):
        inputs = checks.answer(inputs, width, name="inputs")
    args, named = ((), dict(inputs)) if isinstance(inputs, Mapping) else (inputs, {})
    args = tuple(args) if isinstance(args, tuple | list) else (args,)

    def plain(one: Any) -> Any:
        if isinstance(one, np.ndarray):
            one = torch.as_tensor(one)
            one = one.to(torch.get_default_dtype()) if one.is_floating_point() else one
        if one.is_complex() or one.device.type != "cpu":
            raise UsageError(
                f"inputs= hold a tensor of {one.dtype} on the device {one.device}.",
                hint="Give real numbers on the cpu.",
            )
        return one.detach()

    found: Inputs = torch.utils._pytree.tree_map_only(
        (torch.Tensor, np.ndarray), plain, (args, named)
    )
    return found


def doubled(inputs: Inputs, device: Any = "cpu") -> Inputs:
    """The same in double precision, on a device."""
    torch = load_torch()

    def moved(one: Any) -> Any:
        return one.to(device, torch.float64 if one.is_floating_point() else None)

    found: Inputs = torch.utils._pytree.tree_map_only(torch.Tensor, moved, inputs)
    return found


@dataclass
class Exported:
    """A module as torch exports it."""

    program: Any  # what torch gives
    inputs: Inputs  # what it was exported with
    nodes: list[Any] = field(default_factory=list)  # its nodes
    # The values that do not depend on parameters, nor on inputs that are numbers
    given: dict[Any, Any] = field(default_factory=dict)

    @staticmethod
    def of(module: Any, inputs: Inputs, where: str) -> Exported:
        """A module with operations that rules know, as far as torch can write it with them."""
        inputs = _fitting(module, inputs, where)
        try:
            with _exporting():
                program = load_torch().export.export(module, *inputs, strict=False)
        except Exception as error:  # whatever a module of the user raises is the news here
            raise _not_exported(error, where) from error
        _inline(program.graph_module)
        found = Exported(program, inputs)
        found._check_writes()
        aliased, left = any(map(_is_seen_elsewhere, found.nodes)), found._unknown()
        if not aliased and not left:
            return found
        with _exporting():
            made = Exported(program.run_decompositions(_decompositions(left)), inputs)
        return made if aliased or not made._unknown() else found

    def __post_init__(self) -> None:
        self.nodes = [*self.program.graph_module.graph.nodes]
        self._evaluate()

    @property
    def leaves(self) -> dict[str, tuple[str, str]]:
        """What each placeholder stands for: its kind and its name."""
        kinds = ((spec.kind.name, spec) for spec in self.program.graph_signature.input_specs)
        return {spec.arg.name: (kind, spec.target or spec.arg.name) for kind, spec in kinds}

    @property
    def results(self) -> list[tuple[str, str, Any]]:
        """What it gives: for each tensor its kind, the buffer that it is written to, its node."""
        flat, _ = load_torch().utils._pytree.tree_flatten(self.nodes[-1].args[0])
        specs = self.program.graph_signature.output_specs
        pairs = zip(specs, flat, strict=False)
        return [(spec.kind.name, spec.target or "", one) for spec, one in pairs]

    def _evaluate(self) -> None:
        torch, leaves = load_torch(), self.leaves
        known = {**self.program.state_dict, **self.program.constants}
        numbered = iter(torch.utils._pytree.tree_leaves(self.inputs))
        for node in self.nodes:
            if node.op == "placeholder":
                kind, target = leaves[node.name]
                value = next(numbered) if kind == "USER_INPUT" else known[target]
                if not isinstance(value, torch.Tensor):
                    self.given[node] = value
                elif kind != "PARAMETER" and (kind != "USER_INPUT" or _is_given(value, node)):
                    self.given[node] = value.clone()
            elif node.op == "call_function" and self._is_known(node):
                with torch.no_grad():
                    self.given[node] = node.target(
                        *self._held(node.args), **self._held(node.kwargs)
                    )

    def _is_known(self, node: Any) -> bool:
        inner = all(one in self.given for one in node.all_input_nodes)
        return inner and not RANDOM.search(name_of(node))

    def _held(self, value: Any) -> Any:
        return load_torch().fx.node.map_arg(value, lambda node: self.given[node])

    def _unknown(self) -> set[Any]:
        """Operations that no rule knows."""
        return {
            node.target
            for node in self.nodes
            if node.op == "call_function" and node not in self.given and not rule_of(name_of(node))
        } - {operator.getitem, load_torch().ops.aten.detach.default}

    def _check_writes(self) -> None:
        """Refuse parameters that forward writes into, and buffers that it trains."""
        given = (one for kind, _, one in self.results if kind == "USER_OUTPUT")
        outputs = (one for one in given if hasattr(one, "all_input_nodes"))
        behind = reached(outputs, lambda node: node.all_input_nodes)
        for value, leaf in self._writes():
            kind, name = self.leaves[leaf.name]
            trained = kind == "BUFFER" and leaf in behind and value not in self.given
            if kind == "PARAMETER" or trained:
                raise TraceError(
                    f"forward changes the {kind.lower()} {name} in-place: a state that training "
                    "moves, and no optimizer.",
                    where=str(place_of(value)),
                    hint="Compute with it, and leave it as it is.",
                )

    def _writes(self) -> Iterator[tuple[Any, Any]]:
        """What is written, and into which leaf."""
        named = {self.leaves[node.name][1]: node for node in self.nodes if node.op == "placeholder"}
        for kind, target, value in self.results:
            if kind.endswith("_MUTATION") and target in named:
                yield value, named[target]
        for node in self.nodes:
            root = node
            while _in_place(root) or _may_alias(root):
                root = root.args[0]
            if _in_place(node) and root.op == "placeholder":
                yield node, root


def check_twice(name: str, first: Any, again: Any, inputs: Inputs) -> None:
    """Refuse two modules of one width that make two things of the same parameters."""
    torch, found = load_torch(), list[Any]()
    tensors = {**dict(first.named_parameters()), **dict(first.named_buffers())}
    args, kwargs = _fitting(first, inputs, name)
    for module in (first, again):
        held = {key: one.clone() for key, one in tensors.items()}
        try:
            with _exporting(), torch.no_grad(), torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(0)
                made = torch.func.functional_call(module, held, args, kwargs)
        except Exception as error:
            raise _not_exported(error, name) from error
        every = torch.utils._pytree.tree_leaves(made)
        found.append([one.double() for one in every if isinstance(one, torch.Tensor)])
    if not all(
        one.shape == other.shape and torch.allclose(one, other, equal_nan=True)
        for one, other in zip(*found, strict=True)
    ):
        raise StudyError(
            f"{name}, called twice, makes modules that differ: the same parameters give other "
            "outputs.",
            hint="Of all that make does, parameters alone may depend on chance.",
        )


def _fitting(module: Any, inputs: Inputs, where: str) -> Inputs:
    """Inputs that a module takes, in its precision."""
    torch, signature = load_torch(), inspect.signature(module.forward)
    try:
        signature.bind(*inputs[0], **inputs[1])
    except TypeError as error:
        raise UsageError(
            f"inputs= do not fit forward{signature}: {error}.",
            where=where,
            hint="Give a tensor for each argument, in order or by name.",
        ) from error
    kind = next(module.parameters()).dtype
    found: Inputs = torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda one: one.to(kind) if one.is_floating_point() else one, inputs
    )
    return found


@contextlib.contextmanager
def _exporting() -> Iterator[None]:
    """Let torch and modules keep silent, and no backward pass of a user's own be passed over."""
    torch, disabled = load_torch(), logging.root.manager.disable
    function, grads = torch.autograd.Function, torch.enable_grad
    original = function.__dict__["apply"]

    def apply(kind: Any, *args: Any, **named: Any) -> Any:
        if kind.__module__.startswith("torch."):
            return original.__func__(kind, *args, **named)
        raise TraceError(
            f"{kind.__name__} is a torch.autograd.Function, whose backward pass need not be its "
            "derivative.",
            hint="Write it with operations of torch whose derivatives torch knows.",
        )

    function.apply = classmethod(apply)
    logging.disable()
    try:
        said = io.StringIO()
        with warnings.catch_warnings(), redirect_stdout(said), redirect_stderr(said), grads():
            warnings.simplefilter("ignore")
            yield
    finally:
        function.apply = original
        logging.disable(disabled)


def _inline(module: Any) -> None:
    """Put the operations of sub-graphs that only set a mode in their place."""
    graph, detach = module.graph, load_torch().ops.aten.detach.default
    for node in [one for one in graph.nodes if name_of(one).startswith("wrap_with_")]:
        at = next(k for k, one in enumerate(node.args) if getattr(one, "op", "") == "get_attr")
        inner = getattr(module, node.args[at].target)
        _inline(inner)
        heads = inner.graph.find_nodes(op="placeholder")
        with graph.inserting_before(node):
            made = graph.graph_copy(inner.graph, dict(zip(heads, node.args[at + 1 :], strict=True)))
            if node.args[0] is False:  # gradients stop
                meta = [one.meta for one in made]
                made = [graph.call_function(detach, (one,)) for one in made]
                for one, own in zip(made, meta, strict=True):
                    one.meta = dict(own)
        for user in list(node.users):
            user.replace_all_uses_with(made[user.args[1]])
            graph.erase_node(user)
        graph.erase_node(node)
    graph.eliminate_dead_code(lambda one: one.op != "get_attr")
    module.recompile()


def _is_given(value: Any, node: Any) -> bool:
    """Whether an input is a mask or a position, and no number that the network reads."""
    return not value.is_floating_point() and not tokens(node)


def tokens(node: Any) -> bool:
    """Whether whole numbers are looked up in a table, and nothing else is done with them."""
    users = list(node.users)
    return bool(users) and all(
        (name_of(user) == TOKENS and user.args[1] is node)
        or (name_of(user) in CARRIED and tokens(user))
        or name_of(user) in SHAPES
        for user in users
    )


def name_of(node: Any) -> str:
    """What torch calls an operation."""
    target = node.target
    packet = getattr(target, "overloadpacket", None)
    if packet is not None:
        return str(packet).replace("torch.ops.", "")
    return str(getattr(target, "__name__", target))


def place_of(node: Any) -> Place:
    """Where an operation stands."""
    stack = [*(node.meta.get("nn_module_stack") or {}).values()]
    path = stack[-1][0] if stack else ""
    return Place(path, line_in_stack(node.meta.get("stack_trace") or ""))


def _decompositions(operations: set[Any]) -> dict[Any, Any]:
    """What torch makes of operations."""
    torch = load_torch()
    tables = torch._decomp.decomposition_table, torch.export.default_decompositions()
    return {one: table[one] for table in tables for one in operations if one in table}


def _is_seen_elsewhere(node: Any) -> bool:
    """Whether something is changed in place that other operations read as well."""
    return _in_place(node) and (len(node.args[0].users) > 1 or _may_alias(node.args[0]))


def _in_place(node: Any) -> bool:
    schema = getattr(node.target, "_schema", None)
    return bool(schema is not None and schema.is_mutable and node.args)


def _may_alias(node: Any) -> bool:
    if name_of(node) == "getitem":
        return _may_alias(node.args[0])
    schema = getattr(node.target, "_schema", None)
    returned = () if schema is None else schema.returns
    return not _in_place(node) and any(one.alias_info is not None for one in returned)


def _not_exported(error: Exception, where: str) -> TpcalcError:
    text = raised(error)
    line = last_user_line(error.__traceback__) or where
    if isinstance(error, TpcalcError):
        error.where = error.where or line
        return error
    if "data-dependent" in text.lower() or "GuardOnDataDependent" in text:
        hint = "Use dense routing, or a comparison that does not become a Python branch."
        if "TransformerEncoder" in text or "is_causal" in text or "transformer.py" in text:
            hint = "nn.TransformerEncoder compares its mask with a causal one: pass is_causal=True."
        return TraceError(
            "the module branches on data (the value of a tensor), so that what it computes "
            "depends on the input.",
            where=line,
            hint=hint,
        )
    if "not a known type" in text:
        found = text.partition("Found ")[2].partition(" in ")[0]
        hint = "Return tensors alone; models of transformers take use_cache=False."
        return TraceError(f"an output is no tensor but {found}.", where=where, hint=hint)
    return TraceError(
        f"torch cannot run or export the module: {text.splitlines()[0].rstrip('.')}.",
        where=line,
        hint="It is run on the inputs that are given, as torch.export.export(module, inputs).",
    )
