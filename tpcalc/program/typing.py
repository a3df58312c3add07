"""What type rules need of the part of a program that stands before a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpcalc.errors import ProgramError
from tpcalc.functions import Fn
from tpcalc.program.types import Axes, Kind, Ref, Type


@dataclass(frozen=True, slots=True)
class Typing:
    """The types before a node, and the messages of what does not fit.

    Args:
        types: The type of each earlier node.
        place: The node, for messages.
    """

    types: Sequence[Type]
    place: str

    def fail(self, message: str, hint: str | None = None) -> ProgramError:
        """An error that says where."""
        return ProgramError(message, where=self.place, hint=hint)

    def vector(self, ref: Ref) -> Type:
        """The type of a node that must be a vector, or a block of vectors."""
        found = self.types[ref]
        if found.kind is not Kind.VECTOR:
            raise self.fail(f"%{ref} is a {found.kind.value}; a vector is needed here.")
        return found

    def common_dim(self, refs: Sequence[Ref]) -> str:
        """The dimension class that vectors share."""
        if not refs:
            raise self.fail("at least one vector is needed to know the dimension.")
        names = [self.vector(ref).width[0] for ref in refs]
        for ref, name in zip(refs, names, strict=True):
            if name != names[0]:
                raise self.fail(
                    f"%{refs[0]} lives on {names[0]!r} and %{ref} on {name!r}: coordinates of "
                    "different dimension classes cannot be combined one by one.",
                    hint="Take a moment of one of them first, or multiply it by a matrix.",
                )
        return names[0]

    def scalars(self, refs: Sequence[Ref]) -> None:
        """Check that nodes are scalars, or blocks of scalars."""
        for ref in refs:
            if self.types[ref].kind is not Kind.SCALAR:
                raise self.fail(f"%{ref} is a {self.types[ref].kind.value}; a scalar is needed.")

    def arity(self, fn: Fn, vectors: int, scalars: int) -> None:
        """Check the number of arguments of a function."""
        if (fn.vectors, fn.scalars) != (vectors, scalars):
            raise self.fail(
                f"{fn.text} takes {fn.vectors} vectors and {fn.scalars} scalars; "
                f"{vectors} and {scalars} are given."
            )

    def axes(self, refs: Sequence[Ref]) -> Axes:
        """The finite axes of what is computed of nodes: they meet by name, with one size."""
        found: dict[str, tuple[int, Ref]] = {}
        for ref in refs:
            for name, size in self.types[ref].axes:
                known, first = found.setdefault(name, (size, ref))
                if known != size:
                    raise self.fail(
                        f"the axis {name!r} has {known} cells in %{first} ({self.types[first]}) "
                        f"and {size} in %{ref} ({self.types[ref]}).",
                        hint="Axes meet by name: give one of the two another name.",
                    )
        return tuple((name, size) for name, (size, _) in found.items())
