"""Tensors with named axes: in a given order, and contracted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import count
from typing import Any

from tpcalc.engine.device.devices import load_torch
from tpcalc.program.program import Program
from tpcalc.program.types import Kind, Ref

Tensor = Any
LEAD = ""  # the axis of inputs, or of seeds; no finite axis has this name
_SIDES = {Kind.MATRIX: ("rows", "columns"), Kind.VECTOR: ("width",), Kind.SCALAR: ()}


def names_of(program: Program, ref: Ref) -> tuple[str, ...]:
    """The axes of a value: inputs or seeds (of matrices none), the finite ones, its width."""
    type_ = program.types[ref]
    lead = () if type_.kind is Kind.MATRIX else (LEAD,)
    return (*lead, *(f"[{name}]" for name, _ in type_.axes), *_SIDES[type_.kind])


def placed(value: Tensor, own: Sequence[str], wanted: Sequence[str]) -> Tensor:
    """A tensor with axes in another order, of size 1 where it lacks one."""
    if list(own) == list(wanted):
        return value
    places = [1 + own.index(name) for name in wanted if name in own]
    rest = range(1 + len(own), value.ndim)
    value = value.permute(0, *places, *rest)
    for place, name in enumerate(wanted, start=1):
        if name not in own:
            value = value.unsqueeze(place)
    return value


def summed(
    factors: Sequence[tuple[Tensor, Sequence[str]]], over: Collection[str], result: Sequence[str]
) -> Tensor:
    """The product of tensors summed over some axes, with axes of size 1 where it lacks one."""
    known = {name for _, names in factors for name in names} - {f"[{name}]" for name in over}
    value = contracted(factors, [name for name in result if name in known])
    for place, name in enumerate(result):
        if name not in known:
            value = value.unsqueeze(place)
    return value


def contracted(factors: Sequence[tuple[Tensor, Sequence[str]]], result: Sequence[str]) -> Tensor:
    """The product of tensors with named axes, summed over those that the result lacks."""
    letters = defaultdict[str, int](count().__next__)
    operands: list[Any] = []
    for tensor, names in factors:
        operands += [tensor, [letters[name] for name in names]]
    return load_torch().einsum(*operands, [letters[name] for name in result])
