"""Which layers a network's layers read, and how many neurons each has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from tpcalc.errors import StudyError
from tpcalc.finite.layered.steps import Addition, BatchNorm, Bias, Dense, Elementwise, Input, Step

__all__ = ["connected", "rank_of", "sizes_of"]

_NAMES: dict[type, str] = {
    Input: "input",
    Dense: "dense",
    Bias: "bias",
    Elementwise: "elementwise",
    BatchNorm: "batch norm",
    Addition: "addition",
}


def connected(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with their parents filled in.

    Args:
        steps: The steps; one without parents reads the one before it.

    Raises:
        StudyError: The first is no input, a later one is, or one reads what comes after it.

    Example:
        >>> [step.parents for step in connected([Input(), Dense(), Dense()])]
        [(), (0,), (1,)]
    """
    if not steps or not isinstance(steps[0], Input):
        raise StudyError("the first layer is no input.", where="Layered")
    found: list[Step] = [steps[0]]
    for index, step in enumerate(steps[1:], start=1):
        if isinstance(step, Input):
            raise StudyError("an input comes after other layers.", where=f"layer {index}")
        own = step if step.parents else replace(step, parents=(index - 1,))
        wanted = _wanted(own)
        if len(own.parents) != wanted or not all(0 <= p < index for p in own.parents):
            raise StudyError(
                f"it reads the layers {', '.join(map(str, own.parents))}; it takes {wanted} that "
                "come before it.",
                where=_where(index, own),
            )
        if isinstance(own, Bias) and own.span != "all":
            read = found[own.parents[0]]
            if not isinstance(read, Dense):
                raise StudyError(
                    f"its biases are in the span ({own.span!r}) of layer {own.parents[0]}, which "
                    "is not dense.",
                    where=_where(index, own),
                    hint="Put it right after the dense layer.",
                )
        found.append(own)
    return tuple(found)


def _wanted(step: Step) -> int:
    if isinstance(step, Addition):
        return len(step.weights)
    return step.function.vectors if isinstance(step, Elementwise) else 1


def sizes_of(steps: Sequence[Step], width: int, inputs: int) -> tuple[int, ...]:
    """How many neurons each layer has.

    Args:
        steps: The layers, connected.
        width: The width of the network.
        inputs: Features of an input.

    Raises:
        StudyError: A width that is no whole number, or a sum of layers of different sizes.

    Example:
        >>> sizes_of(connected([Input(), Dense(width=0.5), Dense(size=3)]), 8, 5)
        (5, 4, 3)
    """
    found = [inputs]
    for index, step in enumerate(steps[1:], start=1):
        read = {found[parent] for parent in step.parents}
        if isinstance(step, Dense):
            share = _whole(step.width, width, "a width", _where(index, step))
            found.append(share if step.size is None else step.size)
        elif len(read) > 1:
            raise StudyError(
                f"it reads layers of {' and '.join(map(str, sorted(read)))} neurons.",
                where=_where(index, step),
                hint="Only layers of one size can be added.",
            )
        else:
            found.append(read.pop())
    return tuple(found)


def rank_of(step: Dense, index: int, rows: int, columns: int) -> int:
    """The rank r of a dense layer.

    Args:
        step: The layer.
        index: Its number, for messages.
        rows: Its neurons n.
        columns: Its fan-in.

    Raises:
        StudyError: r = rank * n is no whole number, or orthonormal columns do not fit the fan-in.

    Example:
        >>> rank_of(Dense(rank=0.25), 1, 8, 8)
        2
    """
    where = _where(index, step)
    rank = _whole(step.rank, rows, "a rank", where)
    full = step.rank == 1 and step.family == "orthogonal"
    if step.family in ("orthogonal", "padded") and rank > columns and not full:
        raise StudyError(
            f"its rank is {rank} and its fan-in {columns}.",
            where=where,
            hint="Orthogonal weights have no rank above the fan-in.",
        )
    return min(rank, columns) if full else rank


def _whole(ratio: Fraction | float, of: int, what: str, where: str) -> int:
    found = round(ratio * of)
    if found < 1 or abs(float(ratio * of) - found) > 1e-9 * of:
        raise StudyError(
            f"{what} of {ratio} times {of} neurons is {float(ratio * of):.6g}, not a whole number "
            "above 0.",
            where=where,
            hint="Take another width of the network, or another ratio.",
        )
    return found


def _where(index: int, step: Step) -> str:
    return f"layer {index} ({_NAMES.get(type(step), 'layer norm')})"
