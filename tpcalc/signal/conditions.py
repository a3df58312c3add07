"""Where the recursion does not hold: what no dense layer separates is not independent."""

from __future__ import annotations

from collections.abc import Sequence

from tpcalc.errors import StudyError
from tpcalc.signal.operations import Activation, Addition, BatchNorm, Dense, Operation

__all__ = ["check_conditions"]


def check_conditions(layers: Sequence[tuple[Operation, tuple[int, ...]]]) -> None:
    """Refuse a graph of which the recursion would give wrong numbers.

    Args:
        layers: Operations with the numbers of the layers that they read.

    Raises:
        StudyError: Names the layer and the condition; ``program_of`` covers such graphs.

    Source: Schoenherr, The nonlinearity coefficient, Definition 22, conditions 9 to 11.
    """
    near: list[frozenset[int]] = []  # what a layer reads with no dense layer in between, and itself
    for index, (operation, parents) in enumerate(layers):
        read = [near[parent] for parent in parents]
        bent = [[k for k in sorted(part) if isinstance(layers[k][0], Activation)] for part in read]
        where = f"layer {index} ({operation.name})"
        if isinstance(operation, Activation | BatchNorm) and any(bent):
            raise _refused(
                where,
                f"it reads layer {bent[0][-1]} ({layers[bent[0][-1]][0].name}) with no dense layer "
                "in between, so that what it reads is not Gaussian (condition 22.10)",
            )
        if isinstance(operation, Addition):
            _check_sum(where, read, bent)
        own = frozenset({index})
        near.append(own if isinstance(operation, Dense) else own.union(*read))


def _check_sum(where: str, read: Sequence[frozenset[int]], bent: Sequence[list[int]]) -> None:
    for place, part in enumerate(read):
        for other in read[place + 1 :]:
            if part & other:
                raise _refused(
                    where,
                    f"it reads layer {max(part & other)} along two ways with no dense layer in "
                    "between (condition 22.11)",
                )
    curved = [own[-1] for own in bent if own]
    if len(curved) > 1:
        raise _refused(
            where,
            f"it adds the activations of the layers {', '.join(map(str, curved))}, whose means "
            "are correlated, with no dense layer in between (condition 22.9)",
        )


def _refused(where: str, why: str) -> StudyError:
    return StudyError(
        f"the recursion does not hold: {why}.",
        where=where,
        hint="Put a dense layer in between, or take the limit of tpcalc.signal.program.program_of.",
    )
