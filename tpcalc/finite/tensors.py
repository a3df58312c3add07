"""What node types do to tensors, whether their first axis is of inputs or of seeds.

After it a value has its finite axes in the order of its type, then its width. It is of size 1 where
a value does not depend on inputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tpcalc.engine.device.devices import load_torch
from tpcalc.finite.axes import contracted, names_of, placed
from tpcalc.finite.widths import scale_factor
from tpcalc.functions import Fn, Var
from tpcalc.program.base import only
from tpcalc.program.nodes import Data, Moment, Nonlin, Ref, Rename, RowNonlin, Scale
from tpcalc.program.program import Program
from tpcalc.program.types import Axes

Tensor = Any


@dataclass(kw_only=True)
class Reading(ABC):
    """What the rules know besides the values."""

    program: Program  # what is read
    width: int  # n
    dtype: Any  # the number format of vectors
    device: Any  # where the tensors are
    values: Mapping[str, Fraction | int] | None = None  # numbers for symbols in powers of n
    powers: dict[Ref, float] = field(default_factory=dict)  # powers of n, as they are found

    @property
    def exact(self) -> Any:
        """The number format of scalars."""
        return self.dtype

    @property
    def lead(self) -> int:
        """The size of the first axis of what is the same for all."""
        return 1

    def power(self, ref: Ref) -> float:
        """The number that a power of n is."""
        if ref not in self.powers:
            node = only(Scale)(self.program.nodes[ref])
            place = self.program.place(ref)
            self.powers[ref] = scale_factor(node, self.width, self.values, place)
        return self.powers[ref]

    def axes(self, ref: Ref) -> Axes:
        """The finite axes of a node."""
        return self.program.types[ref].axes

    def names(self, ref: Ref) -> tuple[str, ...]:
        """Their names."""
        return tuple(name for name, _ in self.axes(ref))

    def aligned(self, value: Tensor, ref: Ref, to: Ref) -> Tensor:
        """A value with the axes of another node, of size 1 where it lacks one; its width stays."""
        return placed(value, self.names(ref), self.names(to))

    def together(self, refs: Sequence[Ref], values: Sequence[Tensor], to: Ref) -> list[Tensor]:
        """Operands with the axes of a node; scalars beside vectors get a width of 1."""
        vectors = any(self.program.types[ref].width for ref in refs)
        found = []
        for ref in refs:
            value = self.aligned(values[ref], ref, to)
            bare = vectors and not self.program.types[ref].width
            found.append(value.to(self.dtype)[..., None] if bare else value)
        return found

    @abstractmethod
    def applied(self, fn: Fn, arguments: Sequence[Tensor], ref: Ref) -> Tensor:
        """A function of tensors, vectors before scalars, for a node."""

    @abstractmethod
    def mean(self, vector: Tensor) -> Tensor:
        """The average over the coordinates."""

    @abstractmethod
    def is_formed(self, left: Ref, right: Ref) -> bool:
        """Whether a product that is averaged is formed; else axes are contracted."""


def _data(node: Data, ref: Ref, values: Sequence[Tensor], run: Reading) -> Tensor:
    numbers = [float(value) for value in node.values]
    found = load_torch().tensor(numbers, dtype=run.exact, device=run.device)
    sizes = [size for _, size in run.axes(ref)]
    return found.reshape(1, *sizes).expand(run.lead, *sizes)


def _rename(node: Rename, ref: Ref, values: Sequence[Tensor], run: Reading) -> Tensor:
    return values[node.of]


def _on_cells(node: Nonlin | Moment, ref: Ref, values: Sequence[Tensor], run: Reading) -> Tensor:
    operands = run.together((*node.vectors, *node.scalars), values, ref)
    return run.applied(node.fn, operands, ref)


def _rows(node: RowNonlin, ref: Ref, values: Sequence[Tensor], run: Reading) -> Tensor:
    place = 1 + run.names(ref).index(node.along)
    row = values[node.of].unbind(place)
    slots = [Var(index) for index in range(len(row))]
    cells = [run.applied(Fn(expr, len(row)), row, ref) for expr in node.row.cells(slots)]
    return load_torch().stack(cells, place)


def _moment(node: Moment, ref: Ref, values: Sequence[Tensor], run: Reading) -> Tensor:
    if not node.fn.is_inner:
        return run.mean(_on_cells(node, ref, values, run))
    pair = node.vectors[0], node.vectors[len(node.fn.uses[0]) - 1]
    left, right = (values[one].to(run.exact) for one in pair)
    if run.is_formed(*pair):
        return run.mean(left * right)
    names = [names_of(run.program, one) for one in pair]
    factors = [(left, names[0]), (right, names[1])]
    return contracted(factors, names_of(run.program, ref)) / left.shape[-1]


def _scale(node: Scale, ref: Ref, values: Sequence[Tensor], run: Reading) -> Tensor:
    return values[node.of] * run.power(ref)


SHARED: dict[type, Callable[..., Tensor]] = {
    Data: _data,
    Rename: _rename,
    Nonlin: _on_cells,
    RowNonlin: _rows,
    Moment: _moment,
    Scale: _scale,
}
