"""Parameters and linear maps of a network, and what they ask of its tracer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar, overload

from tpcalc import checks
from tpcalc.dsl.handles import Scalar, Value
from tpcalc.dsl.operands import misuse, noun, user_line
from tpcalc.dsl.powers import Power, n
from tpcalc.dsl.recorder import Recorder
from tpcalc.dsl.tracer import Tracer
from tpcalc.dsl.vectors import Vector
from tpcalc.functions.numbers import Number
from tpcalc.names import USE
from tpcalc.program.family import Family, Mark
from tpcalc.program.nodes import Input, MatMul, Ref
from tpcalc.program.types import Axes

OUT = "out"  # the axis of the outputs of a readout
ONE = Fraction(1)
Side = str | int
Out = TypeVar("Out", bound=Side)  # a width, or a number of outputs


@dataclass(eq=False)
class Parameter:
    """A parameter of a network, drawn where it is first used."""

    tracer: MapTracer  # of the network
    name: str  # its name; empty until it gets one
    mark: Mark  # where it stands; its label is filled in with its name
    line: str | None  # the user's line that declared it
    law: str = "gaussian"  # the law of its entries at the start
    along: str = ""  # in a repeated block the law along the depth
    ref: Ref | None = None  # its node, once it is drawn

    def drawn(self, width: tuple[str, ...], axes: Axes = ()) -> Ref:
        """Its node."""
        if self.ref is None:
            family = Family(self.name, width, axes, self.law, mark=self.mark, along=self.along)
            self.ref = self.tracer.recorder.add(Input(family), self.line)
        return self.ref

    def named(self, label: str, name: str = "") -> None:
        """Give it a label after what it belongs to, and a name, where it has none."""
        self.name = self.name or name or label
        if not self.mark.label:
            self.mark = replace(self.mark, label=label)

    def vector(self, dim: str = "n", axes: Axes = ()) -> Vector:
        """The vector of a parameter that belongs to no map."""
        self.named(f"b{self.tracer.parameters.index(self) + 1}")
        vector: Vector = self.tracer.at(self.drawn((self.tracer.recorder.dim_name(dim),), axes))
        if vector.dim != dim or tuple(vector.axes.items()) != axes:
            raise misuse(
                f"the parameter {self.name!r} is used in two places of different dimensions.",
                "Declare one for each of them.",
            )
        return vector


@dataclass(eq=False)
class Linear(Generic[Out]):
    """A linear map with trained weights, and a bias if it has one; a call applies it.

    Between widths it is a matrix, from a finite side a block of columns, to a finite side a block
    of readouts. With axes it is a block of maps, which meets what it is applied to by the names of
    its axes. Every use is of the same weights.
    """

    tracer: MapTracer
    out: Out
    into: Side
    weights: Parameter
    bias: Parameter | None = None
    factors: tuple[Number, Number] = (ONE, ONE)
    axes: Axes = ()
    over: tuple[str, ...] = ()
    uses: int = field(default=0, repr=False)
    whole: Fused | None = field(default=None, repr=False)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its weights, and its bias."""
        return (self.weights,) if self.bias is None else (self.weights, self.bias)

    @property
    def T(self) -> Transposed:
        """The map of the transposed weights, without a bias: tied weights."""
        return Transposed(self)

    @property
    def columns(self) -> Vector:
        """Weights of a map with a finite side as a block of vectors, with its factor in front."""
        (rows, _), (cols, _) = self.tracer.sides(self.out), self.tracer.sides(self.into)
        if rows and cols:
            raise misuse("a map between widths has no columns.", "Its transpose is w.T(x).")
        if self.weights.ref is None:
            raise misuse(
                f"the columns of a map from {self.into!r} are asked for before it is applied.",
                "Apply it first: what it is applied to says how many columns it has.",
            )
        vector: Vector = _times(self.factors[0], self.tracer.at(self.weights.ref))
        return vector

    def named(self, label: str) -> None:
        """Give it and its bias names after where they stand, where they have none."""
        if self.whole is not None and not self.weights.name:
            raise misuse(
                "a part of a fused parameter is used, and the parameter has no name.",
                "Keep the whole, self.qkv = t.fused(...), or give it a name.",
            )
        self.weights.named(label)
        if self.bias is not None:
            self.bias.named(label, f"{label}.bias")

    @overload
    def __call__(self: Linear[str], x: Value) -> Vector: ...
    @overload
    def __call__(self: Linear[int], x: Value) -> Scalar: ...
    @overload
    def __call__(self: Linear[Side], x: Value) -> Any: ...
    def __call__(self, x: Value) -> Any:
        """The map applied to a vector, or to a block with its finite side as an axis."""
        t = self.tracer
        t.name(self)
        value = _times(self.factors[0], self._product(x))
        if self.bias is not None:
            width, axes = t.sides(self.out)
            axes += tuple(pair for pair in self.axes if pair[0] not in self.over)
            value = value + _times(self.factors[1], t.at(self.bias.drawn(width, axes)))
        self._applied(x, value)
        return value

    def tied(self, x: Vector) -> Scalar:
        """Averages over coordinates of its columns times a vector: a readout of tied weights."""
        columns, axis = self.columns, str(self.into)
        value = self.tracer.inner(x, columns.renamed(**{axis: OUT} if axis in columns.axes else {}))
        self._applied(x, value)
        return value

    def _applied(self, x: Value, value: Value) -> None:
        self.uses += 1
        label = self.weights.mark.label
        label = label if self.uses == 1 else f"{label}{USE}{self.uses - 1}"
        self.tracer.applied(label, x, value)

    def _product(self, x: Value) -> Any:
        t = self.tracer
        (rows, outputs), (cols, _) = t.sides(self.out), t.sides(self.into)
        if cols:
            t.on(x, str(self.into), "a map")
            _ = x.ref  # a sum is recorded before the weights, which come after what they multiply
            if rows:
                weights = self.weights.drawn(rows + cols, self.axes)
                product = t.product(weights, x, transpose=False)
            else:
                readout = t.at(self.weights.drawn(cols, (*outputs, *self.axes)))
                product = t.size(str(self.into)) * t.inner(x, readout)  # type: ignore[arg-type]
            return t.sum(product, *self.over) if self.over else product
        axis = str(self.into)
        size = x.axes.get(axis) if isinstance(x, Value) else None
        if size is None:
            raise misuse(
                f"a map from the axis {axis!r} is applied to {noun(x)} without this axis.",
                "The second side of a map names the axis of its input that is summed over.",
            )
        weights = t.at(self.weights.drawn(rows, (*outputs, *self.axes, (axis, size))))
        return t.sum(x * weights, axis, *self.over)


@dataclass(frozen=True)
class Transposed:
    """The transpose of a map between widths, of the same weights."""

    of: Linear[Any]

    def __call__(self, x: Vector) -> Vector:
        """The transposed map applied to a vector."""
        own, t = self.of, self.of.tracer
        (rows, _), (cols, _) = t.sides(own.out), t.sides(own.into)
        if not rows or not cols:
            raise misuse(
                "a map with a finite side has no transpose that is a map of vectors.",
                "Write the average: t.inner(column, x).",
            )
        if own.over:
            raise misuse("a map that is summed over an axis has no transpose that is a map.")
        t.on(x, str(own.out), "a transposed map")
        t.name(own)
        product = t.product(own.weights.drawn(rows + cols, own.axes), x, transpose=True)
        found: Vector = _times(own.factors[0], product)
        return found


@dataclass(eq=False)
class Fused(Mapping[str, Linear[Any]]):
    """The parts of one trained parameter, maps by name; a call applies all of them."""

    parts: dict[str, Linear[Any]]

    def __getitem__(self, part: str) -> Linear[Any]:
        checks.one_of("part", part, self.parts, where=user_line())
        return self.parts[part]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __call__(self, x: Value) -> tuple[Any, ...]:
        """All parts applied to one vector or block, in order."""
        return tuple(part(x) for part in self.parts.values())

    def named(self, label: str) -> None:
        """Call each part by the whole and its own name, and mark it as a part."""
        for name, part in self.parts.items():
            part.weights.named(f"{label}.{name}")
            part.named(f"{label}.{name}")
            for parameter in part.parameters:
                parameter.mark = replace(parameter.mark, whole=label)


class MapTracer(Tracer):
    """What parameters and maps ask of the tracer of their network."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.recorder = recorder
        self.parameters: list[Parameter] = []
        self.maps: list[Linear[Any]] = []
        self.uses: dict[str, tuple[Value, Value]] = {}

    def at(self, ref: Ref) -> Any:
        """The handle of a node."""
        found = self.recorder.builder.type(ref)
        if not found.width:
            return Scalar(self.recorder, ref)
        return Vector(self.recorder, found.width[0], ref)

    def on(self, x: object, dim: str, what: str) -> None:
        """Check that a map from a width is applied to a vector on it."""
        if isinstance(x, Vector) and x.dim == dim:
            return
        place = f" on {x.dim!r}" if isinstance(x, Vector) else ""
        raise misuse(
            f"{what} from {dim!r} is applied to {noun(x)}{place}.",
            "t.linear(out, into) takes a vector on its second side.",
        )

    def product(self, matrix: Ref, x: Value, *, transpose: bool) -> Any:
        """A matrix times a vector."""
        return self.at(self.recorder.add(MatMul(matrix, x.ref, transpose)))

    def sides(self, side: Side) -> tuple[tuple[str, ...], Axes]:
        """A side of a map as a width axis or a finite one; a single output has none."""
        if isinstance(side, int):
            return (), ((OUT, side),) if side != 1 else ()
        return ((side,), ()) if side in self.recorder.dims else ((), ())

    def size(self, dim: str) -> Power:
        """The number of coordinates of a dimension class."""
        return self.recorder.dims[dim].ratio * n

    def name(self, linear: Linear[Any]) -> None:
        """Give a map a name where it has none."""
        linear.named(f"W{self.maps.index(linear) + 1}")

    def applied(self, label: str, x: Value, value: Value) -> None:
        """Take note of a use of a map; a sum that it writes is recorded where it is written."""
        if label in self.uses:
            raise misuse(
                f"two maps are called {label!r}.", "Answers tell them apart by their labels."
            )
        _ = value.ref
        self.uses[label] = x, value


def _times(factor: Number, value: Any) -> Any:
    return value if factor == 1 else factor * value
