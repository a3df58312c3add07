"""Types of nodes, and the conditions under which a node list is a Tensor Program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tpcalc.errors import ProgramError
from tpcalc.functions import Fn
from tpcalc.functions.numbers import is_finite
from tpcalc.orders import Ex
from tpcalc.program.nodes import (
    Dim,
    Group,
    InputMatrix,
    InputScalar,
    InputVector,
    Kind,
    LinComb,
    MatMul,
    Moment,
    Node,
    Nonlin,
    OuterNonlin,
    Ref,
    ScalarFn,
    Scale,
)

__all__ = ["Type", "node_refs", "type_of"]


@dataclass(frozen=True, slots=True)
class Type:
    """Kind of a node with its dimension classes: (d,) for a vector, (rows, cols) for a matrix."""

    kind: Kind
    dims: tuple[str, ...] = ()


SCALAR = Type(Kind.SCALAR)


def node_refs(node: Node) -> Iterator[Ref]:
    """The nodes that a node refers to, in order."""
    if isinstance(node, MatMul):
        yield node.matrix
        yield node.vector
    elif isinstance(node, Nonlin | Moment):
        yield from node.vectors
        yield from node.scalars
    elif isinstance(node, LinComb):
        yield from node.vectors
        yield from (scalar for scalar in node.scalars if scalar is not None)
    elif isinstance(node, OuterNonlin):
        yield from node.rows
        yield from node.cols
        yield from node.scalars
        yield node.vector
    elif isinstance(node, ScalarFn):
        yield from node.scalars
    elif isinstance(node, Scale):
        yield node.of


@dataclass(frozen=True, slots=True)
class _Context:
    """What the checks of one node need."""

    types: Sequence[Type]
    dims: Mapping[str, Dim]
    groups: Mapping[str, Group]
    place: str

    def fail(self, message: str, hint: str | None = None) -> ProgramError:
        return ProgramError(message, where=self.place, hint=hint)

    def dim_of(self, ref: Ref) -> str:
        found = self.types[ref]
        if found.kind is not Kind.VECTOR:
            raise self.fail(f"%{ref} is a {found.kind.value}; a vector is needed here.")
        return found.dims[0]

    def common_dim(self, refs: Sequence[Ref]) -> str:
        if not refs:
            raise self.fail("at least one vector is needed to know the dimension.")
        names = [self.dim_of(ref) for ref in refs]
        for ref, name in zip(refs, names, strict=True):
            if name != names[0]:
                raise self.fail(
                    f"%{refs[0]} lives on {names[0]!r} and %{ref} on {name!r}: coordinates of "
                    "different dimension classes cannot be combined one by one.",
                    hint="Take a moment of one of them first, or multiply it by a matrix.",
                )
        return names[0]

    def scalars(self, refs: Sequence[Ref]) -> None:
        for ref in refs:
            if self.types[ref].kind is not Kind.SCALAR:
                raise self.fail(f"%{ref} is a {self.types[ref].kind.value}; a scalar is needed.")

    def arity(self, fn: Fn, vectors: int, scalars: int) -> None:
        if (fn.vectors, fn.scalars) != (vectors, scalars):
            raise self.fail(
                f"{fn.text} takes {fn.vectors} vectors and {fn.scalars} scalars; "
                f"{vectors} and {scalars} are given."
            )

    def known_dim(self, name: str) -> None:
        if name not in self.dims:
            raise self.fail(
                f"the dimension class {name!r} is not declared.",
                hint=f"Declared: {', '.join(self.dims) or 'none'}.",
            )


def _input_vector(node: InputVector, context: _Context) -> Type:
    group = context.groups.get(node.group)
    if group is None:
        raise context.fail(f"the Gaussian group {node.group!r} is not declared.")
    context.known_dim(group.dim)
    size = len(group.mean)
    if not 0 <= node.index < size:
        raise context.fail(f"group {group.name!r} has {size} members; there is no {node.index}.")
    return Type(Kind.VECTOR, (group.dim,))


def _input_matrix(node: InputMatrix, context: _Context) -> Type:
    context.known_dim(node.rows)
    context.known_dim(node.cols)
    if node.law not in ("gaussian", "orthogonal"):
        raise context.fail(
            f"a matrix law is 'gaussian' or 'orthogonal', not {node.law!r}.",
        )
    return Type(Kind.MATRIX, (node.rows, node.cols))


def _input_scalar(node: InputScalar, context: _Context) -> Type:
    if not is_finite(node.value) or not is_finite(node.std) or node.std < 0:
        raise context.fail(
            f"the scalar {node.name!r} has value {node.value} and standard deviation {node.std}; "
            "both must be finite and the second not negative."
        )
    return SCALAR


def _matmul(node: MatMul, context: _Context) -> Type:
    matrix = context.types[node.matrix]
    if matrix.kind is not Kind.MATRIX:
        raise context.fail(f"%{node.matrix} is a {matrix.kind.value}, not a matrix.")
    rows, cols = matrix.dims[::-1] if node.transpose else matrix.dims
    found = context.dim_of(node.vector)
    if found != cols:
        side = "W.T" if node.transpose else "W"
        raise context.fail(
            f"{side} (%{node.matrix}) takes vectors on {cols!r}; "
            f"%{node.vector} lives on {found!r}.",
            hint="Use the transpose, or a matrix between the right dimension classes.",
        )
    return Type(Kind.VECTOR, (rows,))


def _nonlin(node: Nonlin, context: _Context) -> Type:
    context.arity(node.fn, len(node.vectors), len(node.scalars))
    context.scalars(node.scalars)
    return Type(Kind.VECTOR, (context.common_dim(node.vectors),))


def _lincomb(node: LinComb, context: _Context) -> Type:
    if not len(node.numbers) == len(node.scalars) == len(node.vectors):
        raise context.fail("a linear combination needs as many coefficients as vectors.")
    if not all(is_finite(number) for number in node.numbers):
        raise context.fail("a coefficient of the linear combination is not finite.")
    context.scalars([scalar for scalar in node.scalars if scalar is not None])
    return Type(Kind.VECTOR, (context.common_dim(node.vectors),))


def _moment(node: Moment, context: _Context) -> Type:
    context.arity(node.fn, len(node.vectors), len(node.scalars))
    context.scalars(node.scalars)
    context.common_dim(node.vectors)
    return SCALAR


def _outer(node: OuterNonlin, context: _Context) -> Type:
    context.arity(node.fn, len(node.rows) + len(node.cols), len(node.scalars))
    context.scalars(node.scalars)
    context.common_dim((*node.cols, node.vector))
    return Type(Kind.VECTOR, (context.common_dim(node.rows),))


def _scalar_fn(node: ScalarFn, context: _Context) -> Type:
    context.arity(node.fn, 0, len(node.scalars))
    context.scalars(node.scalars)
    return SCALAR


def _scale(node: Scale, context: _Context) -> Type:
    found = context.types[node.of]
    if found.kind is Kind.MATRIX:
        raise context.fail(
            "a power of n in front of a matrix.", hint="Put it in front of the product W @ x."
        )
    if not isinstance(node.n_power, Ex) or not isinstance(node.depth_power, Ex):
        raise context.fail("the powers of n and L must be exponents.", hint="Use orders.as_ex.")
    return found


_RULES: dict[type, Callable[[Any, _Context], Type]] = {
    InputVector: _input_vector,
    InputMatrix: _input_matrix,
    InputScalar: _input_scalar,
    MatMul: _matmul,
    Nonlin: _nonlin,
    LinComb: _lincomb,
    Moment: _moment,
    OuterNonlin: _outer,
    ScalarFn: _scalar_fn,
    Scale: _scale,
}


def type_of(
    node: Node,
    types: Sequence[Type],
    dims: Mapping[str, Dim],
    groups: Mapping[str, Group],
    *,
    place: str,
) -> Type:
    """The type of a node, given the types of the nodes before it.

    Raises:
        ProgramError: The node is ill-typed or refers to a node that does not come before it.
    """
    context = _Context(types, dims, groups, place)
    rule = _RULES.get(type(node))
    if rule is None:
        raise context.fail(f"{type(node).__name__} is not a node of the language.")
    for ref in node_refs(node):
        if not 0 <= ref < len(types):
            raise context.fail(f"%{ref} is not an earlier node.")
    return rule(node, context)
