"""Where the recursion holds beyond what is proved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tpcalc.functions import Call
from tpcalc.functions.expr import walk
from tpcalc.meanfield.operations import (
    Activation,
    Addition,
    BatchNorm,
    Dense,
    Input,
    LayerNorm,
    Operation,
    Product,
    SharedBias,
)
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.shown import Rows, Shown

CURVED = (Activation, Product)
Pairs = Sequence[tuple[Operation, tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Finding(Shown):
    """A condition that a layer graph does not meet.

    Args:
        condition: Its number in Definition 22.
        layer: The layer.
        message: What the layer does.
        kind: ``"extended"``: the recursion holds by a rule beyond Definition 22; ``"limit"``: it
            holds as a limit of graphs that meet the condition.
    """

    condition: str
    layer: str
    message: str
    kind: Literal["extended", "limit"] = "extended"

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
    pairs = layers(network).pairs
    return Rows((*_single(pairs), *_mixed(pairs), *_joined(pairs)))


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


def _single(pairs: Pairs) -> Iterator[Finding]:
    """What one layer does by itself: conditions 1, 2, 5, 7."""
    for index, (operation, parents) in enumerate(pairs):
        where = _where(pairs, index)
        if isinstance(operation, SharedBias):
            said = "one bias is shared by all coordinates"
            yield Finding("22.6", where, said)
        elif isinstance(operation, Activation) and _has_kinks(operation):
            said = "the activation has kinks, and counts as the limit of smooth ones"
            yield Finding("22.2", where, said, "limit")
        elif isinstance(operation, Dense) and operation.law != "gaussian":
            said = "the weights are not independent Gaussians"
            yield Finding("22.5", where, said)
        elif isinstance(operation, LayerNorm | BatchNorm) and not operation.epsilon:
            yield Finding("22.7", where, "epsilon is 0, the limit of small ones", "limit")
        if isinstance(operation, Activation) and isinstance(pairs[parents[0]][0], Input):
            said = "an activation reads the inputs, whose coordinates count as Gaussian"
            yield Finding("22.1", where, said)


def _mixed(pairs: Pairs) -> Iterator[Finding]:
    """Both normalisations in one graph: condition 8."""
    kinds = {type(operation) for operation, _ in pairs}
    if {LayerNorm, BatchNorm} <= kinds:
        last = max(k for k, (o, _) in enumerate(pairs) if isinstance(o, LayerNorm | BatchNorm))
        said = "layer norm and batch norm are in one graph, for which no limit is proved"
        yield Finding("22.8", _where(pairs, last), said)


def _joined(pairs: Pairs) -> Iterator[Finding]:
    """What is joined with no dense layer in between: conditions 9 and 10."""
    near: list[frozenset[int]] = []  # what a layer reads with no dense layer in between, and itself
    for index, (operation, parents) in enumerate(pairs):
        read = [near[parent] for parent in parents]
        bent = [[k for k in sorted(part) if isinstance(pairs[k][0], CURVED)] for part in read]
        where = _where(pairs, index)
        if isinstance(operation, LayerNorm) and any(bent):
            yield Finding("22.10", where, _after_activation(pairs, operation, bent[0][-1]))
        curved = [str(own[-1]) for own in bent if own]
        if isinstance(operation, Addition) and len(curved) > 1:
            said = (
                f"it adds the activations of the layers {', '.join(curved)} with no dense layer in "
                "between; products of their means are added"
            )
            yield Finding("22.9", where, said)
        if isinstance(operation, Product):
            yield Finding("22", where, "it multiplies layers that are independent")
        own = frozenset({index})
        near.append(own if isinstance(operation, Dense) else own.union(*read))


def _after_activation(pairs: Pairs, operation: LayerNorm, bent: int) -> str:
    taken = "the mean of that is subtracted" if operation.centred else "it keeps its mean"
    return f"it reads {_where(pairs, bent)} with no dense layer in between; {taken}"


def _has_kinks(operation: Activation) -> bool:
    return any(isinstance(part, Call) and part.atom.facts.kinks for part in walk(operation.tau))


def _where(pairs: Pairs, index: int) -> str:
    return f"layer {index} ({pairs[index][0].name})"
