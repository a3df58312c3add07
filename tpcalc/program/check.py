"""``Checker``: what a program must satisfy, checked part by part in its order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpcalc.errors import ProgramError
from tpcalc.functions.numbers import is_finite
from tpcalc.program.nodes import (
    Dim,
    Group,
    InputMatrix,
    InputScalar,
    InputVector,
    Kind,
    Node,
    Ref,
)
from tpcalc.program.typing import Type, type_of

__all__ = ["Checker"]


class Checker:
    """Takes the parts of a program one after the other and refuses the first that does not fit.

    Attributes:
        dims: Dimension classes so far, by name.
        groups: Gaussian groups so far, by name.
        types: The type of each node so far.
        outputs: Named results so far.
    """

    def __init__(self) -> None:
        self.dims: dict[str, Dim] = {}
        self.groups: dict[str, Group] = {}
        self.types: list[Type] = []
        self.outputs: dict[str, Ref] = {}
        self._inputs: set[tuple[str, str, int]] = set()

    def dim(self, dim: Dim) -> None:
        """Take a dimension class.

        Raises:
            ProgramError: It does not grow with n, or its name is taken.
        """
        where = f"dimension {dim.name!r}"
        if not dim.name or not is_finite(dim.ratio) or dim.ratio <= 0:
            raise ProgramError(
                f"the ratio {dim.ratio} is not above 0: a dimension class grows as ratio * n.",
                where=where,
            )
        if dim.name in self.dims:
            raise ProgramError(
                f"declared twice, with ratios {self.dims[dim.name].ratio} and {dim.ratio}.",
                where=where,
                hint="Give the second one another name.",
            )
        self.dims[dim.name] = dim

    def group(self, group: Group) -> None:
        """Take a Gaussian group.

        Raises:
            ProgramError: No members, numbers that are not finite, or a covariance of the wrong
                shape, not symmetric or not positive semidefinite; a singular one is fine.
                Its name is taken, or its dimension class is not declared.
        """
        where = f"Gaussian group {group.name!r}"
        if not group.mean or not group.name:
            raise ProgramError("a group needs a name and at least one member.", where=where)
        if group.name in self.groups:
            raise ProgramError(
                "declared twice.", where=where, hint="Give the second one another name."
            )
        if group.dim not in self.dims:
            raise ProgramError(
                f"the dimension class {group.dim!r} is not declared.",
                where=where,
                hint=f"Declared: {', '.join(self.dims) or 'none'}.",
            )
        _check_moments(group, where)
        self.groups[group.name] = group

    def node(self, node: Node, place: str) -> Type:
        """Take a node; returns its type.

        Raises:
            ProgramError: It is ill-typed, or an input whose name is taken.
        """
        found = type_of(node, self.types, self.dims, self.groups, place=place)
        name = _input_name(node)
        if name is not None:
            if name in self._inputs:
                raise ProgramError(
                    f"the {name[0]} {name[1]!r} is declared twice; one name stands for one random "
                    "object.",
                    where=place,
                    hint="Use the first one, or give the second another name.",
                )
            self._inputs.add(name)
        self.types.append(found)
        return found

    def output(self, name: str, ref: Ref) -> None:
        """Take a named result.

        Raises:
            ProgramError: The name is taken or empty, or the node is none, or a matrix.
        """
        where = f"output {name!r}"
        if not name:
            raise ProgramError("an output needs a name.", where=where)
        if name in self.outputs:
            raise ProgramError(
                "named twice.", where=where, hint="Give the second one another name."
            )
        if not 0 <= ref < len(self.types):
            raise ProgramError(f"%{ref} is not a node of the program.", where=where)
        if self.types[ref].kind is Kind.MATRIX:
            raise ProgramError(
                f"%{ref} is a matrix, and the limit of a matrix is not a random variable.",
                where=where,
                hint="Name a product of it with a vector.",
            )
        self.outputs[name] = ref


def _input_name(node: Node) -> tuple[str, str, int] | None:
    if isinstance(node, InputVector):
        return "member of group", node.group, node.index
    if isinstance(node, InputMatrix):
        return "matrix", node.name, 0
    return ("scalar", node.name, 0) if isinstance(node, InputScalar) else None


def _check_moments(group: Group, where: str) -> None:
    size = len(group.mean)
    cov = group.cov or ()
    if group.cov is not None and (len(cov) != size or any(len(row) != size for row in cov)):
        raise ProgramError(f"the covariance must be {size} x {size}.", where=where)
    if not all(is_finite(value) for row in (group.mean, *cov) for value in row):
        raise ProgramError("a mean or covariance is not a finite number.", where=where)
    for i, row in enumerate(cov):
        for j in range(i):
            if row[j] != cov[j][i]:
                raise ProgramError(f"the covariance is not symmetric at ({i}, {j}).", where=where)
    if cov:
        _check_semidefinite(cov, where)


def _check_semidefinite(cov: Sequence[Sequence[Any]], where: str) -> None:
    import numpy as np

    values = np.array(cov, dtype=float)
    lowest = float(np.linalg.eigvalsh(values)[0])
    # Covariances computed in floats from repeated inputs have eigenvalues of either sign near 0.
    if lowest < -1e-8 * float(np.abs(values).max()):
        raise ProgramError(
            f"the covariance has the negative eigenvalue {lowest:.3g}: no random vector has it.",
            where=where,
            hint="Check the entries; a covariance of rows x_i is x_i . x_j.",
        )
