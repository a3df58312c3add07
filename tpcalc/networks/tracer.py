"""``NetworkTracer``: the ``t`` of a forward pass. It makes parameters, which carry their marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from tpcalc.dsl.blocks import Value, axes_of
from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.lines import misuse, user_line
from tpcalc.dsl.operands import noun
from tpcalc.dsl.powers import Power, n
from tpcalc.dsl.recorder import Recorder
from tpcalc.dsl.tracer import Tracer
from tpcalc.dsl.vectors import Vector
from tpcalc.functions.numbers import Number
from tpcalc.program.family import Family
from tpcalc.program.laws import LAWS
from tpcalc.program.marks import NOISE, Mark
from tpcalc.program.nodes import Input, MatMul, Ref
from tpcalc.program.types import Axes

__all__ = ["LAST", "OUT", "Linear", "NetworkTracer", "Parameter"]

OUT = "out"  # the axis of the outputs of a readout
LAST = 10**6  # the layer of readouts, until all layers are known
RESERVED = ("f", "W_x")  # names that the outputs of every network have
ONE = Fraction(1)
Side = str | int


@dataclass(eq=False)
class Parameter:
    """A parameter of a network, drawn where it is first used.

    Args:
        tracer: Of the network.
        name: Its name; empty until it gets one.
        mark: Where it stands; its label is filled in with its name.
        line: The user's line that declared it.
        law: The law of its entries at the start.
        ref: Its node, once it is drawn.
    """

    tracer: NetworkTracer
    name: str
    mark: Mark
    line: str | None
    law: str = "gaussian"
    ref: Ref | None = None

    def drawn(self, width: tuple[str, ...], axes: Axes = ()) -> Ref:
        """Its node."""
        if self.ref is None:
            family = Family(self.name, width, axes, self.law, mark=self.mark)
            self.ref = self.tracer.recorder.add(Input(family), self.line)
        return self.ref

    def named(self, label: str, name: str = "") -> None:
        """Give it a label after what it belongs to, and a name, where it has none."""
        self.name = self.name or name or label
        if not self.mark.label:
            self.mark = replace(self.mark, label=label)

    def vector(self, dim: str = "n", axes: Axes = ()) -> Vector:
        """The vector of a parameter that belongs to no map.

        Raises:
            TraceError: It is used on another dimension class, or with other axes, than before.
        """
        self.named(f"b{self.tracer.parameters.index(self) + 1}")
        vector: Vector = self.tracer.at(self.drawn((self.tracer.recorder.dim_name(dim),), axes))
        if vector.dim != dim or tuple(vector.axes.items()) != axes:
            raise misuse(
                f"the parameter {self.name!r} is used in two places of different dimensions.",
                "Declare one for each of them.",
            )
        return vector


@dataclass(eq=False)
class Linear:
    """A linear map with trained weights, and a bias if it has one; a call applies it.

    Between widths it is a matrix, from a finite side a block of columns, to a finite side a block
    of readouts. With axes it is a block of maps, which meets what it is applied to by the names of
    its axes. Every use is of the same weights.
    """

    tracer: NetworkTracer
    out: Side
    into: Side
    weights: Parameter
    bias: Parameter | None = None
    factors: tuple[Number, Number] = (ONE, ONE)
    axes: Axes = ()
    over: tuple[str, ...] = ()
    uses: int = field(default=0, repr=False)

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
        """The weights of a map with a finite side as a block of vectors, with its factor in front.

        Raises:
            TraceError: It is a map between widths, or its finite side has no size so far.
        """
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
        self.weights.named(label)
        if self.bias is not None:
            self.bias.named(label, f"{label}.bias")

    def __call__(self, x: Value) -> Any:
        """The map applied to a vector, or to a block with its finite side as an axis.

        Args:
            x: What it is applied to.

        Raises:
            TraceError: It lives on another dimension, or has no such axis.
        """
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
        """The averages over coordinates of its columns times a vector: a readout of tied weights.

        Args:
            x: The vector, on the width that the map itself writes.

        Raises:
            TraceError: It is a map between widths, or its finite side has no size so far.
        """
        columns, axis = self.columns, str(self.into)
        value = self.tracer.inner(x, columns.renamed(**{axis: OUT} if axis in columns.axes else {}))
        self._applied(x, value)
        return value

    def _applied(self, x: Value, value: Value) -> None:
        self.uses += 1
        label = self.weights.mark.label
        label = label if self.uses == 1 else f"{label}@{self.uses - 1}"
        self.tracer.applied(self, label, x, value)

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

    of: Linear

    def __call__(self, x: Vector) -> Any:
        """The transposed map applied to a vector.

        Args:
            x: The vector, on the width that the map itself writes.

        Raises:
            TraceError: The map has a finite side, or the vector lives on another dimension.
        """
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
        return _times(own.factors[0], product)


class NetworkTracer(Tracer):
    """Makes the parameters of a network and what it reports, besides all that a tracer makes.

    Args:
        recorder: Where the nodes go.
        outputs: The number of outputs that the data ask for.

    Attributes:
        n: The width.
        outputs: The number of outputs, the finite side of a readout.
        parameters: What was declared.
        maps: The linear maps that were declared.
        uses: For each use of a map its label, what it read and what it wrote.
    """

    n = "n"

    def __init__(self, recorder: Recorder, outputs: int) -> None:
        super().__init__(recorder)
        self.recorder = recorder
        self.outputs = outputs
        self.parameters: list[Parameter] = []
        self.noises: list[Family] = []
        self.maps: list[Linear] = []
        self.uses: dict[str, tuple[Linear, Value, Value]] = {}
        self.watched: dict[str, Ref] = {}
        self._hidden = 1

    def linear(
        self,
        out: Side,
        into: Side,
        bias: bool | str = False,
        *,
        axes: Mapping[str, int] | None = None,
        over: str | Sequence[str] = (),
        name: str = "",
        bias_name: str = "",
        label: str = "",
        layer: int | None = None,
        factors: tuple[Number, Number] = (ONE, ONE),
        rates: tuple[Number, Number] = (ONE, ONE),
        starts: tuple[Number, Number] = (ONE, ONE),
        law: str = "gaussian",
        group: str = "",
    ) -> Linear:
        """A linear map with trained weights; the parameterization scales them by what they are.

        Args:
            out: What it maps to: a width (``t.n``), or a number of outputs (``t.outputs``).
            into: What it maps from: a width, or the name of a finite axis of its input (``"in"``).
            bias: Whether a bias is added; ``"zero"``: one that starts at 0.
            axes: Finite axes of a block of independent maps, ``{"h": 4}`` for 4 heads.
            over: Those of them that are summed over, as the offsets of a convolution are.
            name: Its name; by default where a class keeps it, else ``W1``, ``W2``, ...
            bias_name: The name of its bias; by default ``name.bias``.
            label: What answers call both; by default the name.
            layer: Whose exponents it has in tables over layers; by default input maps are layer 1,
                maps between widths count from 2, readouts are the last.
            factors: In front of the weights and of the bias.
            rates: Factors of their learning rates.
            starts: What of these factors is their standard deviation at the start alone; 0: they
                start at 0.
            law: The law of the entries at the start of a map between widths: ``"gaussian"``,
                ``"orthogonal"``, ``"uniform"``, ``"rademacher"``, ``"laplace"``.
            group: A name by which settings of training are given to both (``tp.Training``).

        Raises:
            TraceError: A side that is none, axes that are none, a law that there is not or that
                the limit of the map would depend on, or a name that is taken.
        """
        block = axes_of(axes, name or "a map")
        summed = (over,) if isinstance(over, str) else tuple(over)
        for axis in summed:
            if axis not in dict(block):
                raise misuse(f"a map is summed over {axis!r}, which its axes do not have.")
        if bias not in (True, False, "zero"):
            raise misuse(f"bias is {bias!r}.", "It is True, False or 'zero'.")
        wide = self._is_side(out, "out"), self._is_side(into, "into")
        roles = {(True, False): "input", (True, True): "hidden", (False, True): "readout"}
        role = roles.get(wide, "finite")
        _check_law(law, role)
        if layer is None:
            self._hidden += role == "hidden"
            layer = {"hidden": self._hidden, "readout": LAST}.get(role, 1)
        if set(f"{name}{label}").intersection("[],@"):
            raise misuse(
                f"a map is called {label or name!r}.", "Names are without brackets, commas and @."
            )
        mark = Mark(label or name, role, layer, rates[0], starts[0], group)
        weights = self._declared(name, mark, law)
        shift = None
        if bias:
            start = Fraction(0) if bias == "zero" else starts[1]
            bias_name = bias_name or (f"{name}.bias" if name else "")
            mark = Mark(label or name, "bias", layer, rates[1], start, group)
            shift = self._declared(bias_name, mark)
        self.maps.append(Linear(self, out, into, weights, shift, factors, block, summed))
        return self.maps[-1]

    def parameter(
        self, name: str = "", *, layer: int | None = None, start: Number = ONE, group: str = ""
    ) -> Parameter:
        """A trained vector for later, with the exponents of a bias: what uses it says where.

        Args:
            name: Its name; by default where a class keeps it.
            layer: Whose exponents of biases it has; by default those of the last map between
                widths.
            start: 0: it starts at 0.
            group: A name by which settings of training are given.
        """
        layer = self._hidden if layer is None else layer
        mark = Mark(name, "bias", layer, start=start, group=group)
        return self._declared(name, mark)

    def vector(
        self,
        name: str = "",
        *,
        layer: int | None = None,
        start: Number = ONE,
        dim: str = "n",
        axes: Mapping[str, int] | None = None,
        group: str = "",
    ) -> Vector:
        """A trained vector, with the exponents of a bias.

        Args:
            name: Its name.
            layer: Whose exponents of biases it has; by default those of the last map between
                widths.
            start: 0: it starts at 0.
            dim: Its dimension class.
            axes: Finite axes of a block of them, ``{"p": 4}`` for one at each of 4 tokens.
            group: A name by which settings of training are given.
        """
        label = name or f"b{len(self.parameters) + 1}"
        made = self.parameter(label, layer=layer, start=start, group=group)
        return made.vector(dim, axes_of(axes, label))

    def noise(
        self, name: str = "", *, dim: str = "n", axes: Mapping[str, int] | None = None
    ) -> Vector:
        """A Gaussian vector that is not trained and is drawn anew for every input and step.

        Args:
            name: Its name.
            dim: Its dimension class.
            axes: Finite axes of a block of them.

        Raises:
            TraceError: The name is taken.
        """
        label = name or f"noise{len(self.noises) + 1}"
        self.recorder.claim("vector", label)
        width = (self.recorder.dim_name(dim),)
        family = Family(label, width, axes_of(axes, label), mark=Mark(label, NOISE, 1))
        self.noises.append(family)
        vector: Vector = self.at(self.recorder.add(Input(family)))
        return vector

    def gain(self, name: str = "", *, layer: int | None = None, group: str = "") -> Vector:
        """A trained vector of factors that start at 1.

        Args:
            name: Its name.
            layer: Whose exponents of biases it has.
            group: A name by which settings of training are given.
        """
        return 1 + self.vector(name, layer=layer, start=Fraction(0), group=group)

    def watch(self, what: str, label: str | int, value: Value) -> None:
        """Report a value of a run as ``what[label,t,i]``, and its gradient as ``dwhat``.

        Args:
            what: ``"h"`` for preactivations, ``"x"`` for features, or another word.
            label: A layer or a name.
            value: The vector or scalar.

        Raises:
            TraceError: Something of this name is reported already, or the word is none.
        """
        if not isinstance(what, str) or not what.isidentifier() or what in RESERVED:
            raise misuse(
                f"a value cannot be reported as {what!r}.",
                f"Use a word: h, x; {' and '.join(RESERVED)} are names that networks have.",
            )
        name = f"{what}[{label}]"
        self.recorder.claim("output", name)
        self.watched[name] = value.ref

    # ---------------------------------------------------------------------- what maps ask for

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

    def name(self, linear: Linear) -> None:
        """Give a map a name where it has none."""
        linear.named(f"W{self.maps.index(linear) + 1}")

    def applied(self, linear: Linear, label: str, x: Value, value: Value) -> None:
        """Take note of a use of a map; a sum that it writes is recorded where it is written."""
        if label in self.uses:
            raise misuse(
                f"two maps are called {label!r}.", "Answers tell them apart by their labels."
            )
        _ = value.ref
        self.uses[label] = linear, x, value

    def _declared(self, name: str, mark: Mark, law: str = "gaussian") -> Parameter:
        if name:
            self.recorder.claim("parameter", name)
        self.parameters.append(Parameter(self, name, mark, user_line(), law))
        return self.parameters[-1]

    def _is_side(self, side: object, what: str) -> bool:
        """Whether a side of a map is a width."""
        if isinstance(side, str) and (side in self.recorder.dims or what == "into"):
            return side in self.recorder.dims
        if isinstance(side, int) and not isinstance(side, bool) and side > 0 and what == "out":
            return False
        raise misuse(
            f"the side {what} of a map is {side!r}.",
            "t.linear(out, into): out is a width (t.n) or a number of outputs, into a width or "
            "the name of a finite axis ('in').",
        )


def _check_law(law: str, role: str) -> None:
    if law not in LAWS:
        raise misuse(f"the weights of a map are {law!r}.", f"Laws: {', '.join(LAWS)}.")
    if law != "gaussian" and role != "hidden":
        raise misuse(
            f"a map with a finite side has {law} weights.",
            "Its few columns stay what they are in wide networks, so that limits depend on their "
            "law; weights between two widths average over it.",
        )


def _times(factor: Number, value: Any) -> Any:
    return value if factor == 1 else factor * value
