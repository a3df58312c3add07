"""Where the recursion holds beyond what is proved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tpcalc.functions import Call
from tpcalc.functions.expr import walk
from tpcalc.meanfield.control import GAUSSIAN, growth
from tpcalc.meanfield.operations import (
    Activation,
    Addition,
    BatchNorm,
    Dense,
    LayerNorm,
    Operation,
    Product,
    SharedBias,
)
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.program.base import Table
from tpcalc.shown import Rows, Shown

JOINS = {"22.8": 1, "22.9": 2, "22.10": 2, "22": 2}  # told after what single layers do
Said = tuple[str, str] | tuple[str, str, Literal["limit", "unproved"]]
Pairs = Sequence[tuple[Operation, tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Finding(Shown):
    """A condition that a layer graph does not meet.

    Args:
        condition: Its number in Definition 22.
        layer: The layer.
        message: What the layer does.
        kind: ``"extended"``: the recursion holds by a rule beyond Definition 22; ``"limit"``: it
            holds as a limit of graphs that meet the condition; ``"unproved"``: no theorem covers
            it.
    """

    condition: str
    layer: str
    message: str
    kind: Literal["extended", "limit", "unproved"] = "extended"

    def __str__(self) -> str:
        return f"{self.layer}: {self.message} (condition {self.condition})"


def findings(network: Layers) -> tuple[Finding, ...]:
    """What a network does not meet of conditions 22.1 to 22.11, one finding for each breach.

    What the recursion would be wrong for (22.10, 22.11: functions of what is not Gaussian, sums of
    layers that are not independent) is refused where a network is read.

    Args:
        network: The network.

    Returns:
        The breaches; none where every condition is met.

    Source: Schoenherr, The nonlinearity coefficient, Definition 22; for the extensions section 5.1.

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> [(each.condition, each.kind) for each in findings(lookup("mlp").make(1, "relu"))]
        [('22.2', 'limit')]
    """
    found = _found(layers(network).pairs)
    return Rows(sorted(found, key=lambda each: JOINS.get(each.condition, 0)))


def grouped(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Findings as lines, one for all layers of which the same is said.

    Example:
        >>> said = ("22.7", "layer 2 (layer norm)", "epsilon is 0", "limit")
        >>> grouped([Finding(*said), Finding("22.7", "layer 5 (layer norm)", *said[2:])])
        ('layer 2 (layer norm) and 1 more: epsilon is 0 (condition 22.7)',)
    """
    lines: dict[tuple[str, str], list[str]] = {}
    for each in findings:
        lines.setdefault((each.condition, each.message), []).append(each.layer)
    return tuple(
        f"{layers[0]}{f' and {len(layers) - 1} more' if len(layers) > 1 else ''}: {message} "
        f"(condition {condition})"
        for (condition, message), layers in lines.items()
    )


def _found(pairs: Pairs) -> Iterator[Finding]:
    """Layer by layer what its kind breaches; conditions 1 and 8 are of more than one layer."""
    near: list[frozenset[int]] = []  # what a layer reads with no dense layer in between, and itself
    norms: dict[str, int] = {}
    for index, (operation, parents) in enumerate(pairs):
        read = [near[parent] for parent in parents]
        bent = [[k for k in sorted(part) if pairs[k][0].bends] for part in read]
        where = _where(pairs, index)
        for breach in _BREACHES(operation, pairs, [own[-1] for own in bent if own]):
            yield Finding(breach[0], where, *breach[1:])
        if operation.bends and len(parents) == 1 and not pairs[parents[0]][1]:
            said = "an activation reads the inputs, whose coordinates count as Gaussian"
            yield Finding("22.1", where, said)
        if operation.normalises:
            norms[operation.normalises] = index
        near.append(frozenset({index}).union(*() if operation.matrix else read))
    if len(pairs) < 3:
        said = "no layer between input and output grows with n"
        yield Finding("22.4", _where(pairs, len(pairs) - 1), said, "unproved")
    if len(norms) > 1:
        said = "layer norm and batch norm are in one graph, for which no limit is proved"
        yield Finding("22.8", _where(pairs, max(norms.values())), said)


def _activation(operation: Activation, *_: object) -> Iterator[Said]:
    if any(isinstance(part, Call) and part.atom.facts.kinks for part in walk(operation.tau)):
        yield "22.2", "the activation has kinks, and counts as the limit of smooth ones", "limit"
    steep, how = growth(operation)
    if steep >= GAUSSIAN:
        said = "the activation or its slope may grow faster than exp(c |z|^p) for every p < 2"
        yield "22.2", f"{said} (C^E2): {how}", "unproved"


def _dense(operation: Dense, *_: object) -> Iterator[Said]:
    if operation.family != "gaussian":
        yield "22.5", "the weights are not independent Gaussians"


def _batch_norm(operation: LayerNorm | BatchNorm, *_: object) -> Iterator[Said]:
    if not operation.epsilon:
        yield "22.7", "epsilon is 0, the limit of small ones", "limit"


def _layer_norm(operation: LayerNorm, pairs: Pairs, bent: list[int]) -> Iterator[Said]:
    yield from _batch_norm(operation)
    if bent:
        taken = "the mean of that is subtracted" if operation.centred else "it keeps its mean"
        where = _where(pairs, bent[-1])
        yield "22.10", f"it reads {where} with no dense layer in between; {taken}"


def _addition(operation: Addition, pairs: Pairs, bent: list[int]) -> Iterator[Said]:
    if len(bent) > 1:
        said = f"it adds the activations of the layers {', '.join(map(str, bent))} with no dense"
        yield "22.9", f"{said} layer in between; products of their means are added"


_BREACHES: Table[Iterable[Said]] = Table(
    {
        Activation: _activation,
        Addition: _addition,
        BatchNorm: _batch_norm,
        Dense: _dense,
        LayerNorm: _layer_norm,
        Product: lambda *_: [("22", "it multiplies layers that are independent")],
        SharedBias: lambda *_: [("22.6", "one bias is shared by all coordinates")],
    },
    lambda *_: (),
)


def _where(pairs: Pairs, index: int) -> str:
    return f"layer {index} ({pairs[index][0].name})"
