"""Uses of parameters: products of a parameter with a value, as gradients need them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Protocol, runtime_checkable

from tpcalc.finite.axes import names_of
from tpcalc.names import what_of
from tpcalc.program.base import Table, input_of, references
from tpcalc.program.nodes import LinComb, MatMul, Moment
from tpcalc.program.program import Program
from tpcalc.program.types import Ref

Names = tuple[str, ...]
Places = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """A node that adds factor * (parameter times value), summed over what the node lacks."""

    node: Ref  # the node
    reads: Ref  # the value
    parameter: Names  # the axes of the parameter
    value: Names  # those of the value
    result: Names  # those of the node
    factor: float = 1.0  # a number in front
    mean: bool = False  # whether it is an average over the width, whose size divides it


@dataclass(frozen=True, slots=True)
class Layout:
    """How the gradient of a parameter is a product of matrices, for each of some shared cells."""

    # The numbers of axes: shared ones, rows, columns, and those that are summed over
    groups: tuple[int, int, int, int]
    parameter: Places  # the axes of the parameter in the order shared, rows, columns
    written: Places  # those of the node in the order shared, rows, summed; others are summed before
    read: Places  # those of the value in the order shared, summed, columns
    # The axes of the node, and those of the value, that are summed before
    away: tuple[Places, Places]


@lru_cache(maxsize=1024)
def layout_of(use: Use) -> Layout:
    """How the gradient of a use is a product of matrices."""
    own, value, result = use.parameter, use.value, use.result
    shared = [name for name in own if name in value and name in result]
    rows = [name for name in own if name in result and name not in shared]
    columns = [name for name in own if name in value and name not in shared]
    summed = [name for name in result if name in value and name not in shared]

    def away(names: Names, kept: list[str]) -> Places:
        return tuple(place for place, name in enumerate(names) if name not in kept)

    def order(names: Names, kept: list[str]) -> Places:
        left = [name for name in names if name in kept]
        return tuple(left.index(name) for name in kept)

    written, read = shared + rows + summed, shared + summed + columns
    return Layout(
        (len(shared), len(rows), len(columns), len(summed)),
        order(own, shared + rows + columns),
        order(result, written),
        order(value, read),
        (away(result, written), away(value, read)),
    )


@dataclass(frozen=True)
class _Place:
    """A node of a program, asked for its products with a parameter."""

    program: Program
    ref: Ref
    parameter: Ref

    def use(self, reads: Ref, factor: float = 1.0, mean: bool = False) -> Use:
        own, value = (names_of(self.program, ref) for ref in (self.parameter, reads))
        own = tuple(name for name in own if name)  # a parameter has no axis of inputs
        return Use(self.ref, reads, own, value, names_of(self.program, self.ref), factor, mean)


def _matmul(node: MatMul, place: _Place) -> Iterator[Use | None]:
    if place.parameter != node.matrix:
        yield None
        return
    use = place.use(node.vector)
    given, taken = ("columns", "rows") if node.transpose else ("rows", "columns")
    yield Use(
        use.node,
        use.reads,
        use.parameter,
        (*use.value[:-1], taken),
        (*use.result[:-1], given),
    )


def _moment(node: Moment, place: _Place) -> Iterator[Use | None]:
    others = [ref for ref in node.vectors if ref != place.parameter]
    yield place.use(others[0], mean=True) if node.fn.is_inner and len(others) == 1 else None


def _lincomb(node: LinComb, place: _Place) -> Iterator[Use | None]:
    for number, scalar, vector in zip(node.numbers, node.scalars, node.vectors, strict=True):
        pair = [ref for ref in (scalar, vector) if ref is not None]
        if place.parameter in pair:
            others = [ref for ref in pair if ref != place.parameter]
            yield place.use(others[0], float(number)) if others else None


_PRODUCTS: Table[Iterator[Use | None]] = Table(
    {MatMul: _matmul, Moment: _moment, LinComb: _lincomb}, lambda node, place: iter((None,))
)


def uses_of(program: Program, is_data: Callable[[Ref], bool]) -> Mapping[str, tuple[Use, ...]]:
    """The products of each parameter that is used in products with data alone.

    Others (biases, gains, what is read under other names of its axes) are not among them.
    """
    found: dict[str, list[Use | None]] = {}
    drawn = enumerate(map(input_of, program.nodes))
    refs = {ref: own for ref, own in drawn if own is not None and not own.family.averages}
    for ref, node in enumerate(program.nodes):
        for parameter in {*references(node)} & refs.keys():
            own = refs[parameter]
            rest = found.setdefault(own.family.name, [])
            if own.cell is not None:
                rest.append(None)
            rest.extend(_PRODUCTS(node, _Place(program, ref, parameter)))
    return {
        name: tuple(use for use in uses if use is not None)
        for name, uses in found.items()
        if all(use is not None and is_data(use.reads) for use in uses)
    }


Tensor = Any
Kind = Literal["", "input", "weights", "biases", "coordinates", "product", "norm", "sum"]


@dataclass(frozen=True, slots=True)
class Tap:
    """A layer: a node times a factor."""

    node: Ref  # the node
    factor: float = 1.0  # the factor
    cell: tuple[int, ...] = ()  # one cell of its block; () for the whole
    parents: tuple[int, ...] = ()  # the numbers of the layers that it is computed from
    kind: Kind = ""  # what it does with them; "" where that is not known
    weights: tuple[float, ...] = ()  # of a sum the factors in front of its parents

    def of(self, value: Tensor, inputs: int) -> Tensor:
        """The layer, a row for each input.

        Args:
            value: The value of its node.
            inputs: How many inputs there are.
        """
        if self.cell:
            value = value[(slice(None), *self.cell)]
        if value.ndim == 1:
            value = value[:, None]
        found = value if value.ndim == 2 else value.flatten(1)
        if self.factor != 1:
            found = found * self.factor
        return found if len(found) == inputs else found.expand(inputs, -1)

    def back(self, layer: Tensor, value: Tensor) -> Tensor:
        """The value of its node, made from the layer, so that later ones depend on it."""
        found = layer if self.factor == 1 else layer / self.factor
        return found if found.shape == value.shape else found.reshape(-1, *value.shape[1:])


@runtime_checkable
class HasTaps(Protocol):
    """A network whose layers say what they are computed from, and how."""

    taps: tuple[Tap, ...]
    dtype: Any
    device: Any

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many numbers each layer has."""

    def layers(self, x: Tensor) -> Sequence[Tensor]:
        """All layers on a batch."""

    def layer(self, index: int, reads: Sequence[Tensor]) -> Tensor:
        """One layer as a function of the layers that it reads."""


def shown(program: Program, slot: Ref) -> tuple[Tap, ...]:
    """The input, all vectors that depend on it, and the outputs."""
    depends = dependent(program, slot)
    outputs = [ref for name, ref in program.outputs if what_of(name) == "f"]
    vectors = [ref for ref in sorted(depends) if program.types[ref].width]
    return tuple(Tap(ref) for ref in dict.fromkeys((slot, *vectors, *outputs)))


def dependent(program: Program, slot: Ref) -> set[Ref]:
    """The nodes that depend on a node, and it itself."""
    found = {slot}
    for ref, node in enumerate(program.nodes):
        if found.intersection(references(node)):
            found.add(ref)
    return found
