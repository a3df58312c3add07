"""Contractions and sums of tensors, where one of them may be a random matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any

from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import TraceError
from tpcalc.names import USE
from tpcalc.torch.arrays import Array, Cells, Matrix, Parts, is_zero
from tpcalc.torch.dims import Dim, Leaf, leaves, unite


class Space(Cells):
    """Where tensors live, with all that is done with them."""

    def contract(self, left: Array, right: Array, inputs: Sequence[str], output: str) -> Array:
        """A sum of products over the letters that the output lacks: ``("ij", "jk"), "ik"``."""
        known: dict[str, Dim] = {}
        for array, letters in zip((left, right), inputs, strict=True):
            for letter, dim in zip(letters, array.dims, strict=True):
                if letter in known and dim and known[letter]:
                    unite(known[letter], dim, self.place)
                known[letter] = known.get(letter, ()) or dim
        known = {letter: leaves(dim) for letter, dim in known.items()}
        dims = tuple(known[letter] for letter in output)
        summed = [known[letter] for letter in known if letter not in output]
        for array, other in ((left, right), (right, left)):
            over = {id(leaf) for dim in summed for leaf in dim if not leaf.is_finite}
            if array.label and over & {id(leaf) for leaf in self.grows(array.dims)}:
                self.contracted.add(array.label)
            if not array.label and not other.label:
                for leaf in (leaf for dim in summed for leaf in dim if leaf.is_finite):
                    leaf.fixed = True
        every = [leaf for dim in dims for leaf in dim if leaf.is_finite]
        for leaf in every:  # pairs of cells, as of positions
            leaf.fixed = leaf.fixed or every.count(leaf) > 1
        if self.tracer is None:
            return Array(dims)
        return self._contracted((left, right), inputs, output, known)

    def _contracted(
        self,
        pair: tuple[Array, Array],
        inputs: Sequence[str],
        output: str,
        known: Mapping[str, Dim],
    ) -> Array:
        dims = tuple(known[letter] for letter in output)
        leaf = next((one.value.leaf.root for one in pair if isinstance(one.value, Parts)), None)
        if leaf is not None:
            return self._in_parts(pair, inputs, output, leaf, dims)
        if any(is_zero(array.value) for array in pair):
            return Array(dims, 0)
        names = self._names(known)
        values = [
            self.named(array.value, [name for _, name in self.axes(array.dims)],
                       [name for letter in letters for name in names[letter]
                        if array.dims[letters.index(letter)]])
            for array, letters in zip(pair, inputs, strict=True)
        ]  # fmt: skip
        over = [letter for letter in known if letter not in output]
        found = self._product(pair, values, inputs, over, known, names)
        old = [name for letter in output for name in names[letter]]
        value = self.named(found, old, [name for _, name in self.axes(dims)])
        label = next((one.label for one in pair if one.label), "")
        if label and isinstance(value, Scalar | Vector):
            x = next((v for v, one in zip(values, pair, strict=True) if not one.label), None)
            self._used(label, x, value)
        return Array(dims, value)

    def _used(self, label: str, x: Any, value: Any) -> None:
        if isinstance(x, Scalar | Vector):
            self.uses[label] += 1
            count = self.uses[label] - 1
            called = f"{label}{USE}{count}" if count else label
            self.t.applied(called, x, value)
            self.written[value.ref] = called

    def shifted(self, x: Array, bias: Array | None) -> Array:
        """A tensor with a bias, where there is one: it belongs to what a map writes."""
        if bias is None:
            return x

        def moved(value: Any, shift: Any) -> Any:
            made = self.added(value, shift)
            called = self.written.get(value.ref) if isinstance(value, Scalar | Vector) else None
            if called is not None:
                _ = made.ref  # recorded where it is written
                self.t.uses[called] = self.t.uses[called][0], made
            return made

        return self.apply(moved, x, bias)

    def _names(self, known: Mapping[str, Dim]) -> dict[str, list[str]]:
        """Names of axes, no two alike, for each letter."""
        every = iter(self.axes(known.values()))
        return {
            letter: [next(every)[1] for leaf in dim if leaf.is_axis]
            for letter, dim in known.items()
        }

    def _in_parts(
        self, pair: Sequence[Array], inputs: Sequence[str], output: str, leaf: Leaf,
        dims: tuple[Dim, ...],
    ) -> Array:  # fmt: skip
        left, right = pair
        done = [
            self.contract(self.part_of(left, leaf, k), self.part_of(right, leaf, k), inputs, output)
            for k in range(leaf.count)
        ]
        if any(own is leaf for dim in dims for own in dim):
            return Array(dims, Parts(leaf, tuple(one.value for one in done)))
        total = done[0]
        for other in done[1:]:
            total = self.apply(lambda a, b: a + b, total, other)
        return replace(total, dims=dims)

    def _product(
        self, pair: Sequence[Array], values: list[Any], inputs: Sequence[str], over: Sequence[str],
        known: Mapping[str, Dim], names: Mapping[str, list[str]],
    ) -> Any:  # fmt: skip
        cells = [name for letter in over for name in names[letter]]
        wide = [leaf for letter in over for leaf in known[letter] if not leaf.is_finite]
        matrices = [k for k, value in enumerate(values) if isinstance(value, Matrix)]
        if matrices:
            (at, *more) = matrices
            if more:
                raise self.refuse(
                    "a product of two matrices whose sides all grow is formed.",
                    "Apply them one after the other to a vector.",
                )
            found = self._times_matrix(pair[at], values[at], inputs[at], values[1 - at], over)
        else:
            found, missing = self._meeting(values, wide)
            if missing:
                found = found * self.length(missing)
        held = found.axes if isinstance(found, Scalar | Vector) else {}
        summed = [name for name in cells if name in held]
        lost = [leaf for letter in over for leaf, name in
                zip((one for one in known[letter] if one.is_axis), names[letter], strict=True)
                if name not in held]  # fmt: skip
        found = self.t.sum(found, *summed) if summed else found
        return found * self.length(lost) if lost else found

    def _meeting(self, values: list[Any], wide: list[Leaf]) -> tuple[Any, list[Leaf]]:
        """Two values as one, and the growing leaves over which a sum is still to be taken."""
        vectors = [value for value in values if isinstance(value, Vector)]
        if len(wide) > 1:
            raise self.refuse("a product is summed over two dimensions that grow.")
        if wide and len(vectors) == 2:
            return self.length(wide) * self.t.inner(*vectors), []
        if wide and len(vectors) == 1:
            other = values[1] if vectors[0] is values[0] else values[0]
            return self.length(wide) * (self.t.mean(vectors[0]) * other), []
        if len(vectors) == 2 and vectors[0].dim != vectors[1].dim:
            raise self.outer()
        return values[0] * values[1], wide

    def outer(self) -> TraceError:
        """The error for an activation with two dimensions that grow."""
        return self.refuse(
            "a tensor has two dimensions that grow: an outer product of vectors, with entries of "
            "its own.",
            "A nonlinear outer product is contracted with a vector at once: keep one of the two "
            "dimensions finite.",
        )

    def _times_matrix(
        self, array: Array, matrix: Matrix, letters: str, x: Any, over: Sequence[str]
    ) -> Any:
        sides = [letter for letter, dim in zip(letters, array.dims, strict=True)
                 for _ in self.grows([dim])]  # fmt: skip
        taken = [side in over for side in sides]
        if not isinstance(x, Vector | Matrix) and sum(taken) == 1:
            (wide,) = (leaf for letter, dim in zip(letters, array.dims, strict=True)
                       if letter in over for leaf in self.grows([dim]))  # fmt: skip
            x = self.t.gaussian("ones", dim=self.dim_of(wide)) * 0 + x
        if sum(taken) != 1 or not isinstance(x, Vector):
            raise self.refuse(
                "a matrix whose sides both grow is not applied to a vector.",
                "It acts on one of its sides: W @ x, or W.T @ y.",
            )
        transpose = (taken[0]) != matrix.turned
        return matrix.front * self.t.product(matrix.ref, x, transpose=transpose)

    def summed(self, array: Array, places: Sequence[int], average: bool = False) -> Array:
        """The sum, or the average, over some dimensions."""
        dims = tuple(() if k in places else dim for k, dim in enumerate(array.expanded()))
        gone = [leaf for k in places for leaf in array.expanded()[k]]
        for leaf in gone:
            leaf.fixed = leaf.fixed or leaf.is_finite
        if self.tracer is None:
            return Array(dims)
        if isinstance(array.value, Parts):
            return self._summed_parts(array, places, average, dims)
        value = array.value
        if isinstance(value, Vector) and any(not leaf.is_finite for leaf in gone):
            value = self.t.mean(value)
        held = value.axes if isinstance(value, Scalar | Vector) else {}
        named = self._named(array)
        present = [name for place, _, name in named if place in places and name in held]
        value = self.t.sum(value, *present) if present else value
        cells = Fraction(prod(held[name] for name in present))
        factor = 1 / cells if average else self.length(gone) / cells
        kept = [name for place, _, name in named if place not in places]
        value = self.named(value * factor, kept, [name for _, name in self.axes(dims)])
        return Array(dims, value)

    def _summed_parts(
        self, array: Array, places: Sequence[int], average: bool, dims: tuple[Dim, ...]
    ) -> Array:
        leaf = array.value.leaf.root
        some = [self.part_of(array, leaf, k) for k in range(leaf.count)]
        if any(own is leaf for dim in dims for own in dim):
            done = [self.summed(one, places, average) for one in some]
            return Array(dims, Parts(leaf, tuple(one.value for one in done)))
        total = None
        for one in some:
            own = self.summed(one, places)
            total = own if total is None else self.apply(lambda a, b: a + b, total, own)
        assert total is not None
        if average:
            size = self.length([own for k in places for own in array.expanded()[k]])
            total = self.apply(lambda a: a / size, total)
        return replace(total, dims=dims)

    def _named(self, array: Array) -> list[tuple[int, Leaf, str]]:
        """The finite leaves of an array, with their dimensions and axes."""
        every = iter(self.axes(array.dims))
        return [
            (place, *next(every))
            for place, dim in enumerate(array.expanded())
            for leaf in dim
            if leaf.is_axis
        ]
