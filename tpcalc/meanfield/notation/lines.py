"""Networks that are written line by line: each line names a layer and what it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

from tpcalc.dsl.elementwise import Elementwise
from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.powers import n
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import StudyError
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.layers.stretches import stretches
from tpcalc.meanfield.operations import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Dense,
    Input,
    LayerNorm,
    Number,
    Operation,
    Product,
    SharedBias,
    SpanBias,
    batches,
)
from tpcalc.networks.layers.batch_norm import batch_norm
from tpcalc.networks.layers.low_rank import LowRank, width
from tpcalc.networks.layers.norms import layer_norm, rms_norm
from tpcalc.networks.network import FEATURES, Architecture
from tpcalc.networks.tracer import NetworkTracer
from tpcalc.program.base import Table
from tpcalc.registry.values import rooted

ONE, HAAR = Fraction(1), ("orthogonal", "padded")
BATCH, CELLS = "b", 4  # the axis of a batch, and how many cells stand for an infinite one


@dataclass(frozen=True, slots=True)
class Line:
    """A layer.

    Args:
        word: What it is.
        parents: The numbers of the lines that it reads.
        name: Its name; empty: it is called by its number.
    """

    word: Operation
    parents: tuple[int, ...]
    name: str = field(default="", compare=False)


@dataclass(frozen=True)
class Lines(Architecture):
    """A network, one layer a line; line 0 says the second moments of inputs.

    Args:
        lines: The layers.

    Raises:
        StudyError: No input at the start, a line that reads one which comes later, layers of
            different widths in a sum, a rank above the width, a bias in a span that is none,
            batches of different sizes.
    """

    lines: tuple[Line, ...]

    def __post_init__(self) -> None:
        if not self.lines or self.lines[0].word.reads:
            raise StudyError("the first layer is no input.", where="the network")
        for index in range(1, len(self.lines)):
            _check_reads(self, index)
        for index in range(1, len(self.lines)):
            _check_widths(self, index)
        sizes = list(dict.fromkeys(self._batches))
        if len(sizes) > 1:
            shown = " and ".join("infinite" if size is None else str(size) for size in sizes)
            raise StudyError(
                f"its layers normalise over batches of the sizes {shown}.",
                where="the network",
                hint="All layers see one batch: give one size.",
            )

    # The lines, as they are written.

    @property
    def start(self) -> Input:
        """The second moments of inputs."""
        return cast("Input", self.lines[0].word)

    @property
    def last(self) -> int:
        """The number of the last line."""
        return len(self.lines) - 1

    def then(self, word: Operation, *parents: int, name: str = "") -> Lines:
        """The network with one more line, which reads the last one by default."""
        return replace(self, lines=(*self.lines, Line(word, parents or (self.last,), name)))

    def chain(self, words: Sequence[Operation]) -> Lines:
        """The network with more lines, each of which reads the one before."""
        more = [Line(word, (self.last + k,)) for k, word in enumerate(words)]
        return replace(self, lines=(*self.lines, *more))

    def named(self, index: int) -> str:
        """What a line is called."""
        return self.lines[index].name or f"h{index}"

    @cached_property
    def widths(self) -> tuple[Number | None, ...]:
        """The width of every layer over n; None for a readout. Inputs count as n wide."""
        found: list[Number | None] = []
        for line in self.lines:
            found.append(_WIDTH(line.word, [found[parent] for parent in line.parents]))
        return tuple(found)

    @cached_property
    def _batches(self) -> list[int | None]:
        return batches(line.word for line in self.lines)

    @cached_property
    def read(self) -> LayerGraph:
        """The layers that the recursion follows."""
        return stretches(self, self.start)

    # The network.

    @property
    def words(self) -> str:
        """The network in a phrase."""
        count = sum(line.word.bends and line.word.reads == 1 for line in self.lines)
        return f"{len(self.lines)} layers, {count} of them activations"

    @property
    def axes(self) -> Mapping[str, int]:
        """A batch, where layers normalise over one."""
        return {BATCH: self._batches[0] or CELLS} if self._batches else {}

    @property
    def infinite(self) -> tuple[str, ...]:
        """The batch, where no size is given."""
        return (BATCH,) if None in self._batches else ()

    def forward(self, t: NetworkTracer, x: Scalar) -> Any:
        """The last layer; every vector is reported as ``h[name]``."""
        values: list[Any] = [x]
        for index, line in enumerate(self.lines[1:], 1):
            read = [values[parent] for parent in line.parents]
            values.append(_WRITE(line.word, t, self, index, *read))
            if isinstance(values[-1], Vector) and index not in self._biased:
                t.watch("h", self.named(index), values[-1])
        return values[-1]

    @cached_property
    def _biased(self) -> dict[int, SpanBias | SharedBias]:
        """For maps of low rank the biases in their span."""
        biases = (line for line in self.lines if line.word.span)
        return {line.parents[0]: cast("SpanBias | SharedBias", line.word) for line in biases}


_WIDTH: Table[Number | None] = Table(
    {
        Dense: lambda word, read: word.width if word.outputs is None else None,
        Input: lambda word, read: Fraction(1),
    },
    lambda word, read: read[0],
)


# ------------------------------------------------------------------------------ how it is written


def _map(word: Dense, t: NetworkTracer, net: Lines, index: int, x: Any) -> Any:
    name, wide = net.named(index), isinstance(x, Vector)
    into, read = (x.dim, t.recorder.dims[x.dim].ratio) if wide else (FEATURES, Fraction(1))
    if word.rank is None:
        out = width(t, word.width) if word.outputs is None else word.outputs
        haar = word.family in HAAR and wide and word.outputs is None
        factors, law = (rooted(word.variance / read), ONE), "orthogonal" if haar else "gaussian"
        value = t.linear(out, into, name=name, factors=factors, law=law)(x)
    else:
        bias = net._biased.get(index)
        drawn = bias and bias.drawn
        kind = bias.span if bias and drawn is None else ""
        pair = (rooted(word.variance), rooted(bias.variance) if bias else ONE)
        size = width(t, word.width)
        layer = LowRank(t, size, into, word.rank, word.family, kind, pair, name=name)
        value = layer(x, drawn or 0)  # with the bias in its span that the next line adds
    return value if word.exponent == 0 else n ** (word.exponent / 2) * value


def _bias(word: Bias, t: NetworkTracer, net: Lines, index: int, x: Vector) -> Vector:
    return x + rooted(word.variance) * t.vector(net.named(index), dim=x.dim)


def _sum(word: Addition, t: NetworkTracer, net: Lines, index: int, *parts: Any) -> Any:
    total: Any = 0
    for weight, part in zip(word.weights, parts, strict=True):
        total = weight * part + total
    return total


def _norm(word: LayerNorm, t: NetworkTracer, net: Lines, index: int, x: Vector) -> Vector:
    return layer_norm(x, word.epsilon) if word.centred else rms_norm(x, word.epsilon)


_WRITE: Table[Any] = Table(
    {
        Dense: _map,
        Bias: _bias,
        SpanBias: lambda word, t, net, index, x: x,  # written with its map
        SharedBias: lambda word, t, net, index, x: x,
        LayerNorm: _norm,
        BatchNorm: lambda word, t, net, index, x: batch_norm(x, BATCH, word.epsilon),
        Addition: _sum,
        Product: lambda word, t, net, index, x, y: x * y,
        Activation: lambda word, t, net, index, x: Elementwise(word.name, word.tau)(x),
    }
)


# ---------------------------------------------------------------------------------- what is none


def _where(net: Lines, index: int) -> str:
    return f"layer {index} ({net.lines[index].word.name})"


def _check_reads(net: Lines, index: int) -> None:
    line, where = net.lines[index], _where(net, index)
    word = line.word
    if not word.reads:
        raise StudyError("there is one input (Definition 22); this is another.", where=where)
    if len(line.parents) != word.reads or not all(0 <= p < index for p in line.parents):
        raise StudyError(
            f"layer {index} ({word.name}) reads the layers "
            f"{', '.join(map(str, line.parents)) or 'none'}; it takes {word.reads} that come "
            "before it.",
            where="the network",
        )
    if 0 in line.parents and not word.of_inputs:
        raise StudyError(
            "it reads the inputs themselves, whose numbers are finitely many.",
            where=where,
            hint="Put a dense layer in between: a = dense(x).",
        )
    _CHECKS(word, net, index)
    biased = set(net._biased).intersection(line.parents)
    if biased and not word.span:
        raise StudyError(
            f"it reads layer {biased.pop()}, to which a bias in its span is added.",
            where=where,
            hint="Read the layer with its bias.",
        )


def _check_span(word: SpanBias | SharedBias, net: Lines, index: int) -> None:
    (read,) = net.lines[index].parents
    first = net.lines[read].word
    if _RANK(first) != word.rank:
        raise StudyError(
            f"its biases lie in the span of a dense layer of the rank {word.rank}, but it reads "
            f"layer {read} ({first.name}).",
            where=_where(net, index),
            hint="Put it right after that layer, with the same rank.",
        )


_RANK: Table[Number | None] = Table({Dense: lambda word: word.rank}, lambda word: None)
_CHECKS: Table[None] = Table(
    {SpanBias: _check_span, SharedBias: _check_span}, lambda word, net, index: None
)


def _check_widths(net: Lines, index: int) -> None:
    line, where = net.lines[index], _where(net, index)
    read = [net.widths[parent] for parent in line.parents]
    if None in read:
        raise StudyError("it reads a readout, whose width does not grow.", where=where)
    if len(set(read)) > 1:
        shown = ", ".join(f"{each} n" for each in read)
        raise StudyError(f"it joins layers of the widths {shown}.", where=where)
    rank = _RANK(line.word)
    if rank is None or 0 in line.parents or cast("Dense", line.word).family not in HAAR:
        return
    size = net.widths[index] or 1
    if rank * size > (read[0] or 1):
        raise StudyError(
            f"the rank is {rank} times the width of {size} n, more than the {read[0]} n "
            "coordinates that it reads.",
            where=where,
            hint="The rank is at most the smaller width.",
        )
