"""A network drawn at a width: a function of batches that shows the values of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.engine.device.devices import load_torch, resolve_device, resolve_dtype
from tpcalc.errors import DimMismatch, UsageError
from tpcalc.finite.draws import Network, draw_group, draw_scalar, fill_entries, orthogonal
from tpcalc.finite.networks.rules import NETWORK_RULES, Drawn
from tpcalc.finite.networks.uses import Tap, dependent, shown, uses_of
from tpcalc.finite.widths import dim_sizes
from tpcalc.names import what_of
from tpcalc.networks.network import INPUT
from tpcalc.networks.order import no_bottleneck, no_such_layers
from tpcalc.program.base import data_of, input_of, reached, references
from tpcalc.program.family import Family, Mark
from tpcalc.program.program import Program
from tpcalc.program.types import Ref
from tpcalc.results.data import grouped

Tensor = Any
Start = Callable[[Mark], tuple[float, float]]
"""For a parameter the factor in front of its entries at the start, and what is added to them."""


@dataclass(frozen=True)
class _Plan:
    """Nodes in order of computation, and after each those that nothing needs any more."""

    order: tuple[Ref, ...]
    drops: tuple[tuple[Ref, ...], ...]


class DrawnNetwork:
    """The program of a network with drawn parameters.

    Every parameter has a stream of its own, drawn on the host in float64: a seed's network does
    not depend on device or precision, and is that of ``tp.simulate``. What is shared is one tensor.

    Args:
        program: What ``networks.written`` gives, with blocks as they are.
        width: The width n.
        seed: The seed.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"auto"``.
        dtype: ``"float64"``, ``"float32"`` or ``"bfloat16"``.
        start: Factors in front of the entries of parameters, and what is added to the entries; by
            default 1 and 0. So W = factor * (w + mean) is what the network holds.
        taps: Its layers; by default the input, all vectors that depend on it, and the outputs.
        values: Numbers for symbols in its powers of n.

    Raises:
        UsageError: A width that a dimension class does not divide.
        MissingBackend: No torch, or no such device.

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> from tpcalc.networks.network import written
        >>> network = DrawnNetwork(written(lookup("mlp").make(2, "relu"), 4, 3), 16)
        >>> network(load_torch().ones(5, 4, dtype=network.dtype)).shape
        torch.Size([5, 3])
    """

    def __init__(
        self,
        program: Program,
        width: int,
        seed: int = 0,
        device: str = "cpu",
        dtype: str = "float64",
        start: Start = lambda mark: (1.0, 0.0),
        taps: Sequence[Tap] = (),
        values: Mapping[str, Fraction] | None = None,
    ) -> None:
        self.program, self._values = program, values
        self.width = checks.whole(width, "width", least=1)
        self.seed = checks.seed(seed)
        self.device, self.dtype = resolve_device(device), resolve_dtype(dtype)
        self.taps = tuple(taps) or shown(program, program.inputs[INPUT])
        self.outputs = tuple(ref for name, ref in program.outputs if what_of(name) == "f")
        self._sizes = dim_sizes(program.dims, self.width)
        self._slot = program.inputs[INPUT]
        self.uses = uses_of(program, dependent(program, self._slot).__contains__)
        self._plans: dict[tuple[frozenset[Ref], frozenset[Ref]], _Plan] = {}
        self._noises = {
            ref: own.family
            for ref, own in enumerate(map(input_of, program.nodes))
            if own is not None and own.family.mark is not None and not _trained(own.family)
        }
        self.parameters = self._drawn(start)
        self._read()

    def _drawn(self, start: Start) -> dict[str, Tensor]:
        network, found = Network(self.seed, self.width), {}
        noises = {family.name for family in self._noises.values()}
        for family in self.program.families.values():
            if family.name in noises or family.averages:
                continue
            mark = family.mark
            array = drawn_entries(family, network, self._sizes)
            if mark is not None:
                factor, mean = start(mark)
                array += mean
                array *= 0.0 if mark.at_zero else factor
            found[family.name] = self._placed(array)
        return found

    def _read(self) -> None:
        """What depends on the number format: the rules' context, and numbers that are given."""
        program = self.program
        self._reading = Drawn(
            program=program, width=self.width, parameters=self.parameters, dtype=self.dtype,
            device=self.device, values=self._values,
        )  # fmt: skip
        data = ((ref, data_of(node)) for ref, node in enumerate(program.nodes))
        table = NETWORK_RULES.table
        self._given = {
            ref: table[type(node)](node, ref, [], self._reading)
            for ref, node in data
            if node is not None and ref != self._slot
        }

    def _placed(self, array: Any) -> Tensor:
        return load_torch().from_numpy(array).to(self.device, self.dtype)

    def to(self, dtype: str) -> None:
        """Round all parameters to another number format."""
        self.dtype = resolve_dtype(dtype)
        for name, tensor in self.parameters.items():
            self.parameters[name] = tensor.to(self.dtype)
        self._read()

    @cached_property
    def places(self) -> tuple[frozenset[Ref], frozenset[Ref], frozenset[Ref]]:
        """What products with parameters read, and write; and parameters that stand elsewhere."""
        uses = [use for uses in self.uses.values() for use in uses]
        drawn = enumerate(map(input_of, self.program.nodes))
        leaves = (
            ref
            for ref, own in drawn
            if own is not None and own.family.name not in self.uses and _trained(own.family)
        )
        reads, writes = (use.reads for use in uses), (use.node for use in uses)
        return frozenset(reads), frozenset(writes), frozenset(leaves)

    # ------------------------------------------------------------------------------------ values

    def __call__(self, x: Tensor, noise: int = 0) -> Tensor:
        """The outputs on a batch, a row for each input."""
        return self.joined(dict(self.walk(self.known(x, noise), self.outputs)), len(x))

    def joined(self, values: Mapping[Ref, Tensor], inputs: int) -> Tensor:
        """The outputs one after the other, from the values of their nodes."""
        rows = [values[ref].flatten(1) if values[ref].ndim > 1 else values[ref][:, None]
                for ref in self.outputs]  # fmt: skip
        rows = [row.expand(inputs, -1) for row in rows]
        return rows[0] if len(rows) == 1 else load_torch().cat(rows, 1)

    def values(self, x: Tensor, names: Collection[str] = (), noise: int = 0) -> dict[str, Tensor]:
        """What the network reports on a batch (``"h[2]"``), by name."""
        wanted = {name: self.program.ref(name) for name in names or self.program.output}
        found = dict(self.walk(self.known(x, noise), wanted.values()))
        return {name: found[ref] for name, ref in wanted.items()}

    def known(self, x: Tensor, noise: int = 0) -> dict[Ref, Tensor]:
        """The values that a batch gives: those of the input, and noise."""
        sizes = [size for _, size in self.program.types[self._slot].axes]
        numbers = load_torch().Size(sizes).numel()
        if x.ndim != 2 or x.shape[1] != numbers:
            raise DimMismatch(
                f"a batch has shape {tuple(x.shape)}; an input has {numbers} numbers.",
                where="DrawnNetwork",
                hint="A batch has a row for each input.",
            )
        found = {self._slot: x.reshape(len(x), *sizes)}
        network = Network(noise, self.width)
        for ref, family in self._noises.items():
            found[ref] = self._placed(noise_entries(family, network, self._sizes, len(x)))
        return found

    def walk(
        self,
        known: Mapping[Ref, Tensor],
        wanted: Collection[Ref],
        change: Callable[[Ref, Tensor], Tensor] | None = None,
    ) -> Iterator[tuple[Ref, Tensor]]:
        """The values of nodes in order; each is let go once nothing reads it."""
        nodes, table = self.program.nodes, NETWORK_RULES.table
        plan, asked = self._plan(frozenset(known), frozenset(wanted)), frozenset(wanted)
        values: list[Tensor] = [None] * len(nodes)
        for ref, dropped in zip(plan.order, plan.drops, strict=True):
            value = known.get(ref, self._given.get(ref))
            if value is None:
                value = table[type(nodes[ref])](nodes[ref], ref, values, self._reading)
            values[ref] = value = value if change is None else change(ref, value)
            if ref in asked:
                yield ref, value
            for dead in dropped:
                values[dead] = None

    def _plan(self, known: frozenset[Ref], wanted: frozenset[Ref]) -> _Plan:
        if (known, wanted) not in self._plans:
            needed = self._needed(known, wanted)
            if self._slot in needed - known:
                raise UsageError("what is asked for depends on the input, which is not known.")
            order = tuple(sorted(needed))
            last: dict[Ref, Ref] = {}
            for ref in order:
                reads = () if ref in known else references(self.program.nodes[ref])
                last.update(dict.fromkeys((ref, *reads), ref))
            drops: dict[Ref, list[Ref]] = {ref: [] for ref in order}
            for ref, end in last.items():
                drops[end].append(ref)
            self._plans[known, wanted] = _Plan(order, tuple(tuple(drops[ref]) for ref in order))
        return self._plans[known, wanted]

    def _needed(self, known: Collection[Ref], wanted: Collection[Ref]) -> set[Ref]:
        nodes = self.program.nodes
        return reached(wanted, lambda ref: () if ref in known else references(nodes[ref]))

    # ------------------------------------------------------------------------------------ layers

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many numbers each layer has."""
        found = []
        for tap in self.taps:
            type_ = self.program.types[tap.node]
            cells = 1 if tap.cell else load_torch().Size([s for _, s in type_.axes]).numel()
            found.append(cells * (self._sizes[type_.width[0]] if type_.width else 1))
        return tuple(found)

    def layers(self, x: Tensor, noise: int = 0) -> list[Tensor]:
        """All layers on a batch, the batch itself first; what comes after is made from them.

        Args:
            x: The batch.
            noise: Seed of what every input draws for itself.

        Raises:
            DimMismatch: Inputs of another dimension.
        """
        found: list[Tensor] = [None] * len(self.taps)

        def change(ref: Ref, value: Tensor) -> Tensor:
            for index in places.get(ref, ()):
                found[index] = self.taps[index].of(value, len(x))
                if not self.taps[index].cell:
                    value = self.taps[index].back(found[index], value)
            return value

        places = grouped(range(len(self.taps)), lambda index: self.taps[index].node)
        for _ in self.walk(self.known(x, noise), places.keys(), change):
            pass
        return found

    def layer(self, index: int, reads: Sequence[Tensor]) -> Tensor:
        """One layer as a function of the layers that it reads."""
        return self._from(dict(zip(self.taps[index].parents, reads, strict=True)), index)

    def between(self, start: int, end: int) -> Callable[[Tensor], Tensor]:
        """One layer as a function of another.

        Args:
            start: The layer that is the argument; every path to ``end`` leads through it.
            end: The layer that is the value.

        Raises:
            UsageError: No such layers, or a path leads around ``start``.
        """
        if not self.is_bottleneck(start, end):
            raise no_bottleneck(start, end)
        return lambda x: self._from({start: x}, end)

    def is_bottleneck(self, start: int, end: int) -> bool:
        """Whether every path from the input to ``end`` leads through ``start``."""
        if not 0 <= start <= end < len(self.taps):
            raise no_such_layers(start, end, len(self.taps) - 1)
        first, last = self.taps[start], self.taps[end].node
        return not first.cell and self._slot not in self._needed({first.node}, {last}) - {
            first.node
        }

    def _from(self, layers: Mapping[int, Tensor], end: int) -> Tensor:
        count = len(next(iter(layers.values())))
        known = {}
        for index, layer in layers.items():
            type_ = self.program.types[self.taps[index].node]
            sizes = [size for _, size in type_.axes] + [self._sizes[name] for name in type_.width]
            known[self.taps[index].node] = (layer / self.taps[index].factor).reshape(count, *sizes)
        ((_, value),) = self.walk(known, {self.taps[end].node})
        return self.taps[end].of(value, count)


def _trained(family: Family) -> bool:
    return family.mark is not None and family.mark.trained


def drawn_entries(family: Family, network: Network, sizes: Mapping[str, int]) -> Array:
    """All cells of a family; ``finite.dense`` draws the same after ``split``."""
    shape = _shape(family, sizes)
    if len(family.width) == 1:
        cells = range(family.size)
        return draw_group(family, cells, network, shape[-1]).reshape(shape)
    parts = [family.part(index) for index in range(family.size)]
    if not family.width:
        return np.array([draw_scalar(part, network) for part in parts]).reshape(shape)
    found = np.empty((family.size, *shape[-2:]))
    for part, target in zip(parts, found, strict=True):
        if family.law == "orthogonal":
            target[...] = orthogonal(part, network, *shape[-2:])
        else:
            fill_entries(part, [network], [target])
    return found.reshape(shape)


def noise_entries(family: Family, network: Network, sizes: Mapping[str, int], inputs: int) -> Array:
    """What every input of a batch draws for itself; an input's noise is that of its place."""
    stream = network.stream("noise", family.name)
    return stream.standard_normal((inputs, *_shape(family, sizes)))


def _shape(family: Family, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return (*(size for _, size in family.axes), *(sizes[name] for name in family.width))
