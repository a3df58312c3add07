"""Where the recursion does not hold, or holds beyond what is proved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tpcalc.errors import StudyError
from tpcalc.functions import Call
from tpcalc.functions.expr import walk
from tpcalc.signal.operations import (
    Activation,
    Addition,
    BatchNorm,
    Dense,
    Input,
    LayerNorm,
    Operation,
    Product,
    SharedBias,
    SpanBias,
)

__all__ = ["Finding", "check_conditions", "findings", "grouped"]

CURVED = (Activation, Product)
Layers = Sequence[tuple[Operation, tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Finding:
    """A condition that a layer graph does not meet.

    Args:
        condition: Its number in Definition 22.
        layer: The layer.
        message: What the layer does.
        kind: ``"refused"``: the recursion would be wrong, a program is needed; ``"extended"``: the
            recursion holds by a rule beyond Definition 22; ``"limit"``: it holds as a limit of
            graphs that meet the condition.
    """

    condition: str
    layer: str
    message: str
    kind: Literal["refused", "extended", "limit"]

    def __str__(self) -> str:
        return f"{self.layer}: {self.message} (condition {self.condition})"


def findings(layers: Layers) -> tuple[Finding, ...]:
    """What a graph does not meet of conditions 22.1 to 22.11, one finding for each breach.

    Numbers that make no sense (22.3, 22.5, 22.6: weights of 0, variances that are not positive) are
    refused where an operation is made.

    Args:
        layers: Operations with the numbers of the layers that they read.

    Source: Schoenherr, The nonlinearity coefficient, Definition 22; for the extensions section 5.1.

    Example:
        >>> from tpcalc.catalog.activations import lookup
        >>> tanh = Activation(lookup("tanh").fn.expr, "tanh")
        >>> found = findings([(Input(), ()), (Dense(1), (0,)), (tanh, (1,)), (tanh, (2,))])
        >>> [(each.condition, each.kind) for each in found]
        [('22.10', 'refused')]
    """
    return (*_single(layers), *_mixed(layers), *_joined(layers))


def grouped(found: Sequence[Finding]) -> tuple[str, ...]:
    """Findings as lines, one for all layers of which the same is said.

    Args:
        found: The findings.

    Example:
        >>> said = ("22.7", "layer 2 (layer norm)", "epsilon is 0", "limit")
        >>> grouped([Finding(*said), Finding("22.7", "layer 5 (layer norm)", *said[2:])])
        ('layer 2 (layer norm) and 1 more: epsilon is 0 (condition 22.7)',)
    """
    lines: dict[tuple[str, str], list[str]] = {}
    for each in found:
        lines.setdefault((each.condition, each.message), []).append(each.layer)
    return tuple(
        f"{layers[0]}{f' and {len(layers) - 1} more' if len(layers) > 1 else ''}: {message} "
        f"(condition {condition})"
        for (condition, message), layers in lines.items()
    )


def check_conditions(layers: Layers) -> None:
    """Refuse a graph of which the recursion would give wrong numbers.

    Args:
        layers: Operations with the numbers of the layers that they read.

    Raises:
        StudyError: Names the layer and the condition; ``program_of`` covers such graphs.

    Source: Schoenherr, The nonlinearity coefficient, Definition 22, conditions 10 and 11.
    """
    for finding in findings(layers):
        if finding.kind == "refused":
            raise StudyError(
                f"the recursion does not hold: {finding.message} (condition {finding.condition}).",
                where=finding.layer,
                hint="Put a dense layer in between, or take the limit of tpcalc.signal.program_of.",
            )


def _single(layers: Layers) -> Iterator[Finding]:
    """What one layer does by itself: conditions 1, 2, 5, 7."""
    for index, (operation, parents) in enumerate(layers):
        where = _where(layers, index)
        if isinstance(operation, SpanBias | SharedBias):
            said = "biases lie in the span of a layer of low rank"
            yield Finding("22.6", where, said, "extended")
        elif isinstance(operation, Activation) and _has_kinks(operation):
            said = "the activation has kinks, and counts as the limit of smooth ones"
            yield Finding("22.2", where, said, "limit")
        elif isinstance(operation, Dense) and (operation.family, operation.rank) != (
            "gaussian",
            None,
        ):
            said = "the weights are not independent Gaussians"
            yield Finding("22.5", where, said, "extended")
        elif isinstance(operation, LayerNorm | BatchNorm) and not operation.epsilon:
            yield Finding("22.7", where, "epsilon is 0, the limit of small ones", "limit")
        if isinstance(operation, Activation) and isinstance(layers[parents[0]][0], Input):
            said = "an activation reads the inputs, whose coordinates count as Gaussian"
            yield Finding("22.1", where, said, "extended")


def _mixed(layers: Layers) -> Iterator[Finding]:
    """Both normalisations in one graph: condition 8."""
    kinds = {type(operation) for operation, _ in layers}
    if {LayerNorm, BatchNorm} <= kinds:
        last = max(k for k, (o, _) in enumerate(layers) if isinstance(o, LayerNorm | BatchNorm))
        said = "layer norm and batch norm are in one graph, for which no limit is proved"
        yield Finding("22.8", _where(layers, last), said, "extended")


def _joined(layers: Layers) -> Iterator[Finding]:
    """What is joined with no dense layer in between: conditions 9, 10, 11."""
    near: list[frozenset[int]] = []  # what a layer reads with no dense layer in between, and itself
    for index, (operation, parents) in enumerate(layers):
        read = [near[parent] for parent in parents]
        bent = [[k for k in sorted(part) if isinstance(layers[k][0], CURVED)] for part in read]
        where = _where(layers, index)
        if isinstance(operation, Activation | BatchNorm | LayerNorm) and any(bent):
            yield _after_activation(layers, where, operation, bent[0][-1])
        if isinstance(operation, Addition | Product):
            yield from _sum(where, read, bent if isinstance(operation, Addition) else [])
        if isinstance(operation, Product):
            yield Finding("22", where, "it multiplies layers that are independent", "extended")
        own = frozenset({index})
        near.append(own if isinstance(operation, Dense) else own.union(*read))


def _after_activation(layers: Layers, where: str, operation: Operation, bent: int) -> Finding:
    read = f"it reads {_where(layers, bent)} with no dense layer in between"
    if isinstance(operation, LayerNorm):
        taken = "the mean of that is subtracted" if operation.centred else "it keeps its mean"
        return Finding("22.10", where, f"{read}; {taken}", "extended")
    said = f"{read}, so that what it reads is not Gaussian"
    return Finding("22.10", where, said, "refused")


def _sum(
    where: str, read: Sequence[frozenset[int]], bent: Sequence[list[int]]
) -> Iterator[Finding]:
    for place, part in enumerate(read):
        for other in read[place + 1 :]:
            if part & other:
                said = (
                    f"it reads layer {max(part & other)} along two ways with no dense layer in "
                    "between"
                )
                yield Finding("22.11", where, said, "refused")
                return
    curved = [own[-1] for own in bent if own]
    if len(curved) > 1:
        said = (
            f"it adds the activations of the layers {', '.join(map(str, curved))} with no dense "
            "layer in between; products of their means are added"
        )
        yield Finding("22.9", where, said, "extended")


def _has_kinks(operation: Activation) -> bool:
    return any(isinstance(part, Call) and part.atom.facts.kinks for part in walk(operation.tau))


def _where(layers: Layers, index: int) -> str:
    return f"layer {index} ({layers[index][0].name})"
