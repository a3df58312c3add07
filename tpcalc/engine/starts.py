"""Start vectors: factors of covariances (singular ones included), and drawing images only.

Where start vectors are only ever used in linear combinations with numbers (the columns of an input
layer applied to data) the combinations themselves are drawn, jointly, with as many draws as their
covariance has rank: 784 columns and four inputs take four draws.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.engine.instructions import Instruction, Script, Starts, Sum, vector_inputs
from tpcalc.errors import ProgramError

RELATIVE_RANK = 1e-12

HUGE = 1e100


def factor(cov: Array, name: str) -> tuple[tuple[float, ...], ...]:
    """A factor F with F F^T = cov, one column for each rank, in the order of the members.

    Members keep their order, so the first draws (the best ones of a quasi-random sequence) serve
    the first members; a member that depends on earlier ones costs no draw. Repeated inputs make
    such covariances every day.

    Args:
        cov: Shape (m, m), symmetric positive semidefinite.
        name: Of the group, for messages.

    Returns:
        m rows of ``rank`` numbers.

    Raises:
        ProgramError: The matrix is not positive semidefinite.

    Example:
        >>> factor(np.array([[1.0, 1.0], [1.0, 1.0]]), "g")
        ((1.0,), (1.0,))
    """
    size = len(cov)
    scale = float(np.max(np.diag(cov), initial=0.0))
    tolerance = RELATIVE_RANK * scale * max(size, 1)
    residual = np.array(cov, dtype=np.float64)
    columns: list[Array] = []
    for index in range(size):
        pivot = residual[index, index]
        lost = pivot <= tolerance
        if pivot < -1e-8 * scale or (lost and np.max(np.abs(residual[index])) > 1e-6 * scale):
            raise ProgramError(
                f"the covariance of group {name!r} is not positive semidefinite (member {index}).",
                hint="Check its entries: |cov(i, j)| <= sqrt(cov(i, i) cov(j, j)) at least.",
            )
        if lost:
            continue
        column = residual[:, index] / np.sqrt(pivot)
        column[:index] = 0.0
        columns.append(column)
        residual -= np.outer(column, column)
    if not columns:
        return tuple(() for _ in range(size))
    return tuple(tuple(row) for row in np.column_stack(columns).tolist())


def members_factor(
    cov: Sequence[Sequence[Fraction | float]] | None, members: Sequence[int], name: str
) -> tuple[tuple[float, ...], ...] | None:
    """The factor of the covariance of some members of a group; None for the identity."""
    if cov is None:
        return None
    return factor(np.array([[float(cov[i][j]) for j in members] for i in members]), name)


def starts_of(group: Any, members: Sequence[int], out: Sequence[int]) -> Starts:
    """The draw of some members of a Gaussian group, into these registers."""
    means = tuple(float(group.means[index]) for index in members)
    return Starts(group.dim, means, members_factor(group.cov, members, group.name), tuple(out))


def draw_images(script: Script) -> Script:
    """Replace start vectors by their images, where only images under constant sums are used."""
    origin: dict[int, int] = {}
    for index, step in enumerate(script.instructions):
        if isinstance(step, Starts):
            origin.update(dict.fromkeys(step.out, index))
    images: dict[int, list[Sum]] = defaultdict(list)
    opaque = {origin[register] for register in script.vectors if register in origin}
    for step in script.instructions:
        used = {origin[register] for register in vector_inputs(step) if register in origin}
        if not used:
            continue
        if isinstance(step, Sum) and len(used) == 1 and _constant(step, origin):
            images[used.pop()].append(step)
        else:
            opaque.update(used)
    chosen = {index: sums for index, sums in images.items() if index not in opaque}
    dropped = {id(step) for sums in chosen.values() for step in sums}
    out: list[Instruction] = []
    for index, step in enumerate(script.instructions):
        if index in chosen:
            assert isinstance(step, Starts)
            out.append(_image_starts(step, chosen[index]))
        elif id(step) not in dropped:
            out.append(step)
    return replace(script, instructions=tuple(out))


def _constant(step: Sum, origin: dict[int, int]) -> bool:
    """Whether a sum is of start vectors with given numbers, whose squares do not overflow."""
    if any(abs(number) > HUGE for number in step.numbers):
        return False
    return all(scalar is None for scalar in step.scalars) and all(
        register in origin for register in step.vectors
    )


def _image_starts(starts: Starts, sums: list[Sum]) -> Starts:
    place = {register: index for index, register in enumerate(starts.out)}
    rows = np.zeros((len(sums), len(starts.out)))
    for row, step in zip(rows, sums, strict=True):
        for number, register in zip(step.numbers, step.vectors, strict=True):
            row[place[register]] += number
    mean = rows @ np.array(starts.mean)
    spread = rows if starts.factor is None else rows @ np.array(starts.factor)
    return Starts(
        starts.space,
        tuple(mean.tolist()),
        factor(spread @ spread.T, "of input images"),
        tuple(step.out for step in sums),
    )
