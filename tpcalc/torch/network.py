"""``Module``: a family of modules as a network: its graph read by rules, its parameters marked."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np

from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.powers import Power
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import TpcalcError, TraceError
from tpcalc.networks.maps import OUT
from tpcalc.networks.network import Architecture
from tpcalc.networks.tracer import NetworkTracer, marked
from tpcalc.program.family import Family as Drawn
from tpcalc.program.family import Mark
from tpcalc.program.nodes import Input
from tpcalc.torch import ops as _rules  # noqa: F401  the rules are those of these files
from tpcalc.torch.arrays import FEATURES, Array, Matrix, Parts
from tpcalc.torch.dims import Dim, Leaf, is_level, leaves, ordered, part, varied
from tpcalc.torch.family import Family, Parameter
from tpcalc.torch.graph import Graph, Op, Use
from tpcalc.torch.powers import scaling
from tpcalc.torch.rules import rule_of
from tpcalc.torch.space import Space

BATCH = "b"
VARIED = (
    "given numbers that vary along the width count as Gaussian ones of their means and covariances"
)
WIDE = "the input {} grows with the width: its coordinates count as N(0, 1)"
READ = "the output grows with the width: a fixed random readout of size 1/n reads it"
STRUCTURED = ("fixed", "identity", "triangular")  # laws of matrices whose entries are not iid
GAUSSIAN = ("normal", "zero", "constant", "orthogonal")
ALIKE = (
    "entries that start {} count as Gaussian with their mean and variance: exponents are the same, "
    "and limits but for maps with a finite side"
)
TINY = 1e-9  # of variances, so that rounding leaves none below 0
COMPARED = "Masks that are given are followed; a maximum with 0 is a ReLU, max(x, y) a maximum."
UNRULED = "Say what it is made of with @tp.torch.rule, or leave it out of the modules."
HINTS = {  # beside operations that no rule can know
    **dict.fromkeys(("aten.gt", "aten.lt", "aten.ge", "aten.le", "aten.eq", "aten.ne"), COMPARED),
    "aten.item": "A number that is taken out of a tensor passes no gradient: keep the tensor.",
    "aten.cross_entropy_loss": "Return what the loss is of: questions take loss= of their own.",
}
CELLS = "cells"  # of several inputs, one after the other


@dataclass
class Reading:
    """A graph on its way to a program."""

    graph: Graph  # what the modules compute
    parameters: Mapping[str, Parameter]  # its parameters by name
    space: Space  # where tensors live
    x: Any  # the numbers of an input; None while dimensions are looked at
    module: Module  # the network
    found: list[Any]  # what each operation gave

    def read(self) -> Array:
        """The output."""
        for index, op in enumerate(self.graph.ops):
            if index not in self.graph.needed:
                self.found.append(None)
                continue
            self.space.at, self.space.place = index, str(op.place)
            if self.space.tracer is not None:
                self.space.tracer.recorder.line = self.space.place
            try:
                self.found.append(self._value(index, op))
            except TpcalcError as error:
                if error.where is None:
                    error.where = self.space.place
                raise
        output: Array = self.found[self.graph.output]
        return output

    def _value(self, index: int, op: Op) -> Any:
        leaf = {"parameter": self._parameter, "given": self._given, "input": self._input,
                "tokens": self._input, "aten.detach": self._detached}.get(op.name)  # fmt: skip
        if leaf is not None:
            return leaf(index, op)
        args = [self._argument(one) for one in op.args]
        if op.name == "getitem":
            return args[0][args[1].whole]
        named = {name: self._argument(one) for name, one in op.kwargs.items()}
        made = rule_of(op.name)
        if made is None:
            raise TraceError(
                f"the operation {op.name} has no rule.",
                where=self.space.place,
                hint=HINTS.get(op.name, UNRULED),
            )
        try:
            return made(self.space, op, *args, **named)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise self.space.refuse(
                f"the rule of {op.name} does not cover this call: {type(error).__name__}: {error}.",
                "Say what it is made of with @tp.torch.rule, or write it in another way.",
            ) from error

    def _detached(self, index: int, op: Op) -> Any:
        """The tensor itself, where nothing behind it is trained."""
        names = (self.graph.ops[one].label for one in sorted(self.graph.behind(index)))
        moved = [
            name for name in names if name in self.parameters and self.parameters[name].trained
        ]
        if moved:
            raise self.space.refuse(
                f"detach() or no_grad() stops the gradient of {moved[0]}, which is trained.",
                "Let gradients pass: they are those of the whole function that forward computes.",
            )
        return self._argument(op.args[0])

    def _argument(self, value: Any) -> Any:
        if isinstance(value, Use):
            return self.found[value.of]
        if isinstance(value, tuple):
            return tuple(self._argument(one) for one in value)
        return value

    # ---------------------------------------------------------------------------------- leaves

    def _given(self, index: int, op: Op) -> Array:
        """Numbers; dimensions along which they are equal have no axis."""
        space, first = self.space, np.asarray(op.values[0])
        dims = space.fresh(op.shape)
        grows = [k for k, size in enumerate(op.shape) if len(set(size)) > 1]
        each = [np.asarray(one) for one in op.values]
        for k in range(first.ndim):
            if all(is_level(one, k) for one in each):
                each = [np.take(one, [0], axis=k) for one in each]
            else:
                for leaf in dims[k]:
                    leaf.fixed = leaf.is_finite
        held = first if not grows else each[0]
        if space.tracer is None:
            return Array(dims, given=held)
        if any(each[0].shape[k] > 1 for k in grows):
            return Array(dims, self._along_width(each, dims))
        varied = tuple(
            dim if size > 1 else () for dim, size in zip(dims, each[0].shape, strict=True)
        )
        return Array(dims, self._numbers(each, varied), given=held)

    def _along_width(self, each: Sequence[Any], dims: tuple[Dim, ...]) -> Any:
        """Numbers that vary along the width: Gaussian ones with their means and covariances."""
        space = self.space
        for leaf in (leaf for dim in dims for leaf in leaves(dim)):
            if leaf.apart or leaf.pieces:
                return Parts(leaf, tuple(self._parts_along(each, dims, leaf)))
        own = varied(dims, each[-1])
        (wide,) = space.grows(own)
        rows = [ordered(np.asarray(one, dtype=float), own, at) for at, one in enumerate(each)]
        cells = rows[-1].reshape(-1, wide.sizes[-1])
        sizes = [np.square(one).mean() for one in (rows[0], rows[-1])]
        if not max(sizes) < 2 * min(sizes):
            raise space.refuse(
                "given numbers that vary along the width change their size with it.",
                "Scale them by a factor of their own.",
            )
        cov = np.cov(cells, bias=True).reshape(len(cells), -1) + TINY * np.eye(len(cells))
        label = f"given {hashlib.sha256(cells.tobytes()).hexdigest()[:12]}"
        space.notes[VARIED] = None
        space.held[label] = rows
        axes = tuple((name, leaf.size) for leaf, name in space.axes(own))
        made = Drawn(label, (space.dim_of(wide),), axes, mean=tuple(map(float, cells.mean(1))),
                     cov=tuple(tuple(map(float, row)) for row in cov))  # fmt: skip
        return space.t.at(space.t.recorder.add(Input(made)))

    def _parts_along(self, each: Sequence[Any], dims: tuple[Dim, ...], leaf: Leaf) -> Iterator[Any]:
        for k in range(leaf.count):
            own = self.space.part_of(Array(dims), leaf, k).expanded()
            parts = [part(one, dims, leaf, k, at) for at, one in enumerate(each)]
            yield self._along_width(parts, own)

    def _numbers(self, each: Sequence[Any], dims: tuple[Dim, ...]) -> Any:
        """Numbers at all widths: the same ones, or with a power of n in front."""
        space = self.space
        arrays = [np.asarray(one, dtype=float) for one in each]
        top = [float(np.abs(one).max(initial=0.0)) for one in arrays]
        if not np.isfinite(arrays[0]).all():
            return 0
        if any(one != top[0] for one in top):
            if any(not np.allclose(one / a, arrays[0] / top[0])
                   for one, a in zip(arrays, top, strict=True)):  # fmt: skip
                raise space.refuse("given numbers depend on the width.")
            power = scaling(
                dict(zip(space.widths, top, strict=True)), "a given number", space.place
            )
            front = Power(power.ex, factor=power.number)
            arrays[0] = arrays[0] / top[0]
        else:
            front = Power()
        if all(not dim for dim in dims):
            return space.number(front * float(arrays[0].reshape(-1)[0]))
        sizes = [leaf.size for dim in dims for leaf in dim]
        return front * space.constant(arrays[0].reshape(sizes), dims)

    def _input(self, index: int, op: Op) -> Array:
        """The numbers of an input; of whole ones their one-hot rows."""
        space, whole = self.space, op.name == "tokens"
        dims = space.fresh(op.shape)
        if whole:
            dims = (*dims, self._table(index))
        if space.tracer is None:
            return Array(dims, tokens=whole)
        if any(not leaf.is_finite for dim in dims for leaf in leaves(dim)):
            return Array(dims, self._wide(op, dims))
        every = [name for _, name in space.axes(dims)]
        module = self.module
        if len(module.inputs) == 1:
            return Array(dims, self.x, tokens=whole)
        sizes = [leaf.size for dim in dims for leaf in leaves(dim) if leaf.is_axis]
        before = sum(module.cells(one) for one in module.inputs if one < index)
        total = sum(map(module.cells, module.inputs))
        marks = np.eye(total)[before : before + prod(sizes)].reshape(*sizes, total)
        chosen = space.t.constant(marks.tolist(), (*every, CELLS), "input")
        return Array(dims, space.t.sum(chosen * self.x, CELLS), tokens=whole)

    def _table(self, index: int) -> Dim:
        """The rows of the table that whole numbers are looked up in."""
        for user in self.graph.ops[index:]:
            if user.name == "aten.embedding":
                rows = self.graph.ops[user.args[0].of].shape[0]
                if len(set(rows)) > 1:
                    raise self.space.refuse(
                        f"the table that {self.graph.ops[index].label} is looked up in has {rows} "
                        f"rows at widths {self.graph.widths}: a vocabulary that grows.",
                        "The width alone grows; data and their vocabulary stay.",
                    )
                return self.space.fresh([rows])[0]
        raise self.space.refuse("whole numbers are looked up in no table.")

    def _wide(self, op: Op, dims: tuple[Dim, ...]) -> Any:
        """An input that grows with the width: Gaussian, drawn anew for every input."""
        space = self.space
        space.notes[WIDE.format(op.label)] = None
        (wide, *more) = space.grows(dims)
        if more or (wide in dims[0] and len(dims) > 1):
            raise space.refuse(
                f"the input {op.label} has {op.shape} cells at widths {space.widths}: more than "
                "features grow with the width.",
                "Limits are taken at a fixed number of samples and of positions.",
            )
        axes = {name: leaf.size for leaf, name in space.axes(dims)}
        return space.t.noise(f"input {op.label}", dim=space.dim_of(wide), axes=axes)

    def _parameter(self, index: int, op: Op) -> Array:
        dims = self.space.fresh(op.shape)
        for leaf in (leaf for dim in dims for leaf in dim):
            leaf.title = leaf.title or op.label
        alone = index in self.graph.read_once
        if self.space.tracer is None:
            return Array(dims, label=op.label, alone=alone)
        dims = tuple(map(leaves, dims))
        return Array(dims, self._drawn(op, dims, ""), op.label, alone=alone)

    def _drawn(self, op: Op, dims: tuple[Dim, ...], named: str) -> Any:
        """A parameter, or each of its parts that are told apart."""
        space = self.space
        for leaf in (leaf for dim in dims for leaf in dim):
            if leaf.apart or leaf.pieces:
                some = (space.part_of(Array(dims), leaf, k).expanded() for k in range(leaf.count))
                made = (self._drawn(op, own, f"{named}:{k}") for k, own in enumerate(some, 1))
                return Parts(leaf, tuple(made))
        return self._one(op, dims, named)

    def _one(self, op: Op, dims: tuple[Dim, ...], named: str) -> Any:
        space, t = self.space, self.space.t
        parameter = self.parameters[op.label]
        init, wide = parameter.init, space.grows(dims)
        if len(wide) > 2:
            raise space.refuse(f"{op.label} has {len(wide)} dimensions that grow.")
        label = op.label + named
        role = _role(op, wide, op.label in space.contracted)
        mark = Mark(label, role, t._layer(role), whole=op.label if named else "")
        rate: int = 1 if parameter.trained else 0
        mark, factor = marked(mark, Power(init.std.ex, factor=init.std.number), rate)
        if len(wide) == 2 and init.law in STRUCTURED and init.how != "declared":
            raise space.refuse(
                f"{op.label} starts {init.law}: its entries are not independent draws.",
                f"Draw them, or declare what they count as: init={{{op.label!r}: 'n^(-1/2)'}}.",
            )
        if wide and init.law not in GAUSSIAN:
            space.notes[ALIKE.format(init.law)] = None
        law = "orthogonal" if init.law == "orthogonal" and len(wide) == 2 else "gaussian"
        declared = t.declared(label, mark, law)
        declared.line = parameter.line or None
        line, t.recorder.line = t.recorder.line, parameter.line or space.place
        axes = tuple((name, leaf.size) for leaf, name in space.axes(dims))
        ref = declared.drawn(tuple(map(space.dim_of, wide)), axes)
        t.recorder.line = line
        mean = init.mean
        space.stored[label] = (op, named, dims, init)
        if len(wide) == 2:
            if mean.number:
                raise space.refuse(
                    f"the entries of {op.label} have the mean {mean.text}: a matrix of rank one "
                    "beside the noise.",
                    "Start its entries at mean 0, or write the two as parameters of their own.",
                )
            return Matrix(ref, Power(factor=factor))
        value = t.at(ref)
        value = value if factor == 1 else factor * value
        if not mean.number:
            return value
        return space.added(value, Power(mean.ex, factor=mean.number))


def _role(op: Op, wide: Sequence[Leaf], contracted: bool) -> str:
    if len(op.shape) < 2 or (not wide and len(op.shape) == 0):
        return "bias" if not contracted else "readout"
    return {2: "hidden", 0: "finite"}.get(len(wide), "readout" if contracted else "input")


class Module(Architecture):
    """A family of modules of torch as a network.

    Args:
        graph: What its modules compute.
        family: Where the graph comes from.
        eps: Whether norms keep the small number beside a mean square over the width; without it,
            exponents are those of widths at which it does not show.

    Attributes:
        space: Where its tensors live.
        features: What an input has of each axis; None: no such leaf.
        one_by_one: Whether samples are read one by one, so that an input is one of them.
        stored: For each family of the program that was written last what it stands for.
        told: What a reader should know besides: of its optimizer.
        made_by: Inputs, optimizer and clipping as they were given.
        recipe: How it is trained, where an optimizer was read.
    """

    counted: ClassVar[str] = "layer"

    def __init__(self, graph: Graph, family: Family, eps: bool = False) -> None:
        self.graph, self.family = graph, family
        self.space = Space(graph.widths, eps=eps)
        self.stored: dict[str, Any] = {}
        self.told: tuple[str, ...] = ()
        self.recipe: Any = None
        self.made_by: Mapping[str, Any] = {}
        self.features: Leaf | None = None
        self._classes: Leaf | None = None
        output = self._reading(self.space, None).read()
        firsts = [own for index in self.inputs if (own := self.leaves(index))]
        self.one_by_one = self._are_single(firsts)
        self._name_axes(firsts, output)

    def __repr__(self) -> str:
        return f"<{self.words}>"

    def __str__(self) -> str:
        return str(self.smallest)

    @property
    def words(self) -> str:
        """The network in a phrase."""
        return f"the module {self.name} of {len(self.marks)} parameters"

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.family.name

    @property
    def heading(self) -> str:
        """Its class, and what grows."""
        made = type(next(iter(self.family.modules.values()))).__name__
        types = self.smallest.types
        ratios = sorted({self.smallest.dim[one].ratio for own in types for one in own.width})
        grow = ", ".join(_times_n(ratio) for ratio in ratios)
        return f"{made}(n): {len(self.family.parameters)} parameters; dimensions {grow}"

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """The operations that are inputs of finite sizes."""
        return tuple(
            k
            for k, op in enumerate(self.graph.ops)
            if op.name in ("input", "tokens") and k in self.graph.needed
            and all(len(set(size)) == 1 for size in op.shape)
        )  # fmt: skip

    def _reading(self, space: Space, x: Any) -> Reading:
        parameters = {parameter.name: parameter for parameter in self.family.parameters}
        return Reading(self.graph, parameters, space, x, self, [])

    def dims(self, index: int) -> tuple[Dim, ...]:
        """The dimensions that a leaf of the graph has."""
        places = sorted(place for place in self.space.known if place[0] == index)
        known = (self.space.known[place] for place in places)
        shape = self.graph.ops[index].shape
        return tuple((next(known),) if any(one != 1 for one in size) else () for size in shape)

    def table(self, index: int) -> Dim:
        """The rows of the table that an input of whole numbers is looked up in."""
        last = max(key for key in self.space.known if key[0] == index)
        return leaves((self.space.known[last],))

    def leaves(self, index: int) -> list[Leaf]:
        """The leaves of an input."""
        found = [leaf for dim in self.dims(index) for leaf in leaves(dim)]
        whole = self.graph.ops[index].name == "tokens"
        return [*found, *self.table(index)] if whole else found

    def _are_single(self, firsts: Sequence[Sequence[Leaf]]) -> bool:
        """Whether nothing looks at several samples at once; an input is then one of them."""
        shapes = [self.graph.ops[index].shape for index in self.inputs]
        alike = len({shape[0] for shape in shapes if shape}) == 1 and all(shapes)
        free = bool(firsts) and all(not own[0].fixed and own[0].is_finite for own in firsts)
        several = alike and shapes[0][0][0] > 1 and len({own[0] for own in firsts}) == 1
        if several and free:
            for own in firsts:
                own[0].cells, own[0].name = 1, BATCH
        return several and free

    def _name_axes(self, firsts: Sequence[Sequence[Leaf]], output: Array) -> None:
        """Stand-ins for axes whose number of cells does not matter."""
        if len(self.inputs) == 1 and firsts:
            free = [leaf for leaf in firsts[0] if not leaf.fixed and not leaf.cells]
            self.features = free[-1] if free else None
            if self.features is not None:
                self.features.name = FEATURES
        last = leaves(output.dims[-1]) if output.dims else ()
        taken = {leaf for index in self.inputs for leaf in self.leaves(index)}
        only = len(last) == 1 and last[0].is_finite and last[0] not in taken
        if only and not (last[0].fixed or last[0].cells):
            self._classes = last[0]
            self._classes.name = OUT

    @cached_property
    def axes(self) -> Mapping[str, int]:
        """The finite axes of one input besides its features."""
        own = [leaf for index in self.inputs for leaf in self.leaves(index)]
        if len(self.inputs) > 1:
            return {CELLS: sum(self.cells(index) for index in self.inputs)}
        dims = [(leaf,) for leaf in own if leaf.is_axis and leaf is not self.features]
        return {name: leaf.size for leaf, name in self.space.axes(dims)}

    def cells(self, index: int) -> int:
        """The number of cells of an input."""
        return prod(leaf.size for leaf in self.leaves(index) if leaf.is_axis)

    def forward(self, t: NetworkTracer, x: Scalar) -> Any:
        """The outputs for one input."""
        if self.features is not None:
            self.features.cells = x.axes[FEATURES]
        else:
            x = t.sum(x, FEATURES)
        if self._classes is not None:
            self._classes.cells = t.outputs
        space = replace(self.space, tracer=t, made=Counter(), uses=Counter(), stored={}, written={})
        value = self._reading(space, x).read().value
        self.stored, self.space.named_axes = space.stored, space.named_axes
        if isinstance(value, Vector):
            space.notes[READ] = None
            value = t.inner(t.gaussian("readout", dim=value.dim), value)
        if isinstance(value, Scalar) and FEATURES in value.axes:
            value = value.renamed(**{FEATURES: OUT})  # tied
        t.recorder.line = None
        return value

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of how it was read."""
        return (*self.graph.notes, *self.family.notes, *self.told, *self.space.notes)


def _times_n(ratio: Fraction) -> str:
    front, back = ratio.numerator, ratio.denominator
    return f"{front if front > 1 else ''}n{f'/{back}' if back > 1 else ''}"
