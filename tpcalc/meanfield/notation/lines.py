"""Networks that are written line by line: each line names a layer and what it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from tpcalc.dsl.elementwise import Elementwise
from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.powers import n
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import StudyError
from tpcalc.meanfield.graph import LayerGraph, widths_of
from tpcalc.meanfield.layers.stretches import stretches
from tpcalc.meanfield.notation.words import Map, SharedBias, SpanBias
from tpcalc.meanfield.operations import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Input,
    LayerNorm,
    Number,
    Product,
)
from tpcalc.networks.layers.batch_norm import batch_norm
from tpcalc.networks.layers.low_rank import LowRank, width
from tpcalc.networks.layers.norms import layer_norm, rms_norm
from tpcalc.networks.network import FEATURES, Architecture
from tpcalc.networks.tracer import NetworkTracer
from tpcalc.program.base import Table
from tpcalc.registry.values import rooted

Word = (
    Input
    | Map
    | Bias
    | SpanBias
    | SharedBias
    | LayerNorm
    | BatchNorm
    | Addition
    | Product
    | Activation
)
BATCH, CELLS = "b", 4  # the axis of a batch, and how many cells stand for an infinite one


@dataclass(frozen=True, slots=True)
class Line:
    """A layer.

    Args:
        word: What it is.
        parents: The numbers of the lines that it reads.
        name: Its name; empty: it is called by its number.
    """

    word: Word
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
        if not self.lines or not isinstance(self.lines[0].word, Input):
            raise StudyError("the first layer is no input.", where="the network")
        for index in range(1, len(self.lines)):
            _check_reads(self, index)
        _check_widths(self)
        sizes = {line.word.batch for line in self.lines if isinstance(line.word, BatchNorm)}
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
        first = self.lines[0].word
        assert isinstance(first, Input)
        return first

    @property
    def last(self) -> int:
        """The number of the last line."""
        return len(self.lines) - 1

    def then(self, word: Word, *parents: int, name: str = "") -> Lines:
        """The network with one more line, which reads the last one by default."""
        return replace(self, lines=(*self.lines, Line(word, parents or (self.last,), name)))

    def chain(self, words: Sequence[Word]) -> Lines:
        """The network with more lines, each of which reads the one before."""
        more = [Line(word, (self.last + k,)) for k, word in enumerate(words)]
        return replace(self, lines=(*self.lines, *more))

    def named(self, index: int) -> str:
        """What a line is called."""
        return self.lines[index].name or f"h{index}"

    @cached_property
    def widths(self) -> tuple[Number | None, ...]:
        """The width of every layer over n; None for a readout. Inputs count as n wide."""
        return widths_of(((line.word, line.parents) for line in self.lines), Map)

    @cached_property
    def read(self) -> LayerGraph:
        """The layers that the recursion follows."""
        return stretches(self, self.start)

    # The network.

    @property
    def words(self) -> str:
        """The network in a phrase."""
        count = sum(isinstance(line.word, Activation) for line in self.lines)
        return f"{len(self.lines)} layers, {count} of them activations"

    @property
    def axes(self) -> Mapping[str, int]:
        """A batch, where layers normalise over one."""
        for line in self.lines:
            if isinstance(line.word, BatchNorm):
                return {BATCH: CELLS if line.word.batch is None else line.word.batch}
        return {}

    @property
    def infinite(self) -> tuple[str, ...]:
        """The batch, where no size is given."""
        words = (line.word for line in self.lines)
        endless = any(isinstance(word, BatchNorm) and word.batch is None for word in words)
        return (BATCH,) if endless else ()

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
        return {
            line.parents[0]: line.word
            for line in self.lines
            if isinstance(line.word, SpanBias | SharedBias)
        }


# ------------------------------------------------------------------------------ how it is written


def _map(word: Map, t: NetworkTracer, net: Lines, index: int, x: Any) -> Any:
    name, wide = net.named(index), isinstance(x, Vector)
    into, read = (x.dim, t.recorder.dims[x.dim].ratio) if wide else (FEATURES, Fraction(1))
    if word.rank is not None:
        sides = width(t, word.width), into, name
        value = _low_rank(word, t, net._biased.get(index), sides)(x)
    else:
        out = width(t, word.width) if word.outputs is None else word.outputs
        haar = word.family in ("orthogonal", "padded") and wide and word.outputs is None
        value = t.linear(
            out,
            into,
            name=name,
            factors=(rooted(word.variance / read), Fraction(1)),
            law="orthogonal" if haar else "gaussian",
        )(x)
    return value if word.exponent == 0 else n ** (word.exponent / 2) * value


def _low_rank(
    word: Map, t: NetworkTracer, bias: SpanBias | SharedBias | None, sides: tuple[str, str, str]
) -> Callable[[Any], Vector]:
    """A map of low rank, with the bias in its span that the next line adds."""
    kind = {SpanBias: "span", SharedBias: "shared"}.get(type(bias), "")
    given = bias.drawn if isinstance(bias, SharedBias) else None
    kind, (dim, into, name) = "" if given is not None else kind, sides
    factors = (rooted(word.variance), rooted(bias.variance) if bias else Fraction(1))
    assert word.rank is not None
    layer = LowRank(t, dim, into, word.rank, word.family, kind, factors, name=name)
    return lambda x: layer(x, given or 0)


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
        Map: _map,
        Bias: _bias,
        SpanBias: lambda word, t, net, index, x: x,  # written with its map
        SharedBias: lambda word, t, net, index, x: x,
        LayerNorm: _norm,
        BatchNorm: lambda word, t, net, index, x: batch_norm(x, BATCH, word.epsilon),
        Addition: _sum,
        Product: lambda word, t, net, index, x, y: x * y,
        Activation: lambda word, t, net, index, x: Elementwise(word.name, word.expr)(x),
    }
)


# ---------------------------------------------------------------------------------- what is none


def _where(net: Lines, index: int) -> str:
    return f"layer {index} ({net.lines[index].word.name})"


def _check_reads(net: Lines, index: int) -> None:
    line, where = net.lines[index], _where(net, index)
    word = line.word
    if isinstance(word, Input):
        raise StudyError("there is one input (Definition 22); this is another.", where=where)
    wanted = 2 if isinstance(word, Product) else 1
    wanted = len(word.weights) if isinstance(word, Addition) else wanted
    if len(line.parents) != wanted or not all(0 <= p < index for p in line.parents):
        raise StudyError(
            f"layer {index} ({word.name}) reads the layers "
            f"{', '.join(map(str, line.parents)) or 'none'}; it takes {wanted} that come before "
            "it.",
            where="the network",
        )
    if 0 in line.parents and not isinstance(word, Map | Activation | Addition | Product):
        raise StudyError(
            "it reads the inputs themselves, whose numbers are finitely many.",
            where=where,
            hint="Put a dense layer in between: a = dense(x).",
        )
    first = net.lines[line.parents[0]].word
    if isinstance(word, SpanBias | SharedBias) and (
        not isinstance(first, Map) or first.rank != word.rank
    ):
        raise StudyError(
            f"its biases lie in the span of a dense layer of the rank {word.rank}, but it reads "
            f"layer {line.parents[0]} ({first.name}).",
            where=where,
            hint="Put it right after that layer, with the same rank.",
        )
    biased = set(net._biased).intersection(line.parents)
    if biased and not isinstance(word, SpanBias | SharedBias):
        raise StudyError(
            f"it reads layer {biased.pop()}, to which a bias in its span is added.",
            where=where,
            hint="Read the layer with its bias.",
        )


def _check_widths(net: Lines) -> None:
    for index, line in enumerate(net.lines):
        where, read = _where(net, index), [net.widths[parent] for parent in line.parents]
        if None in read:
            raise StudyError("it reads a readout, whose width does not grow.", where=where)
        if len(set(read)) > 1:
            shown = ", ".join(f"{each} n" for each in read)
            raise StudyError(f"it joins layers of the widths {shown}.", where=where)
        word = line.word
        if isinstance(word, Map) and word.rank is not None and 0 not in line.parents:
            narrow = word.family in ("orthogonal", "padded")
            if narrow and word.rank * word.width > (read[0] or 1):
                raise StudyError(
                    f"the rank is {word.rank} times the width of {word.width} n, more than the "
                    f"{read[0]} n coordinates that it reads.",
                    where=where,
                    hint="The rank is at most the smaller width.",
                )
