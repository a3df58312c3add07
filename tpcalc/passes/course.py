"""``Course``: a parameter under an optimizer whose updates are not multiples of one gradient each.

Of every parameter the optimizer makes a function of its gradients, entry by entry. For vectors and
numbers it is a ``Nonlin`` of them; a matrix is never formed: its gradient of step s is the sum of
products of rows and columns, and the function of these forms times a vector is an ``OuterNonlin``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import Expr, Fn, Par, Var, const
from tpcalc.functions.expr import Add, add, substitute
from tpcalc.functions.numbers import Number
from tpcalc.passes import separate
from tpcalc.passes.sums import Term, fresh, padded, pulled, ratio, renamed, scaled
from tpcalc.program.nodes import (
    Data,
    Kind,
    LinComb,
    MatMul,
    Nonlin,
    OuterNonlin,
    Ref,
    Stack,
)
from tpcalc.program.program import Builder
from tpcalc.program.types import Axes

T = TypeVar("T")
Rate = tuple[Number, Ex]  # eta and c of eta n^(-c)
ZERO, ONE = as_ex(0), as_ex(1)


@dataclass(frozen=True, slots=True)
class Path:
    """w(t) = (sum of number * n^power) w(0) + sum of n^power * psi(g_0, ..., g_{t-1})."""

    # what is left of the initial value: powers of n with their numbers
    start: tuple[tuple[Ex, Number], ...]
    # powers of n with their functions of the gradients, entry by entry: argument s is n^shift times
    # the gradient of step s
    moves: tuple[tuple[Ex, Expr], ...]
    shift: Ex  # the power of n in front of the gradients

    def since(self, before: Path) -> Path:
        """The change from an earlier path."""
        start = _less(self.start, before.start, lambda a, b: a - b, Fraction(0))
        moves = _less(self.moves, before.moves, lambda a, b: a - b, const(0))
        return Path(start, moves, self.shift)


def _less(
    now: Sequence[tuple[Ex, T]], then: Sequence[tuple[Ex, T]], less: Callable[[T, T], T], zero: T
) -> tuple[tuple[Ex, T], ...]:
    first, second = dict(now), dict(then)
    powers = dict.fromkeys((*first, *second))
    found = ((p, less(first.get(p, zero), second.get(p, zero))) for p in powers)
    return tuple((power, value) for power, value in found if value != zero)


@dataclass
class Course:
    """What a parameter goes through."""

    path: Callable[[Sequence[Rate]], Path]  # the path for the learning rates of the steps so far
    family: frozenset[str]  # the names of the axes that the parameter has itself
    # the s of a parameter s w whose w is written: steps are those of s w
    unit: Number = Fraction(1)
    rates: list[Rate] = field(default_factory=list)  # these rates
    # for each step the gradient; of a matrix the rows and columns whose products are summed to it
    gradients: list[tuple[tuple[Ref, Ref], ...] | Ref] = field(default_factory=list)
    _paths: dict[int, Path] = field(default_factory=dict)

    @property
    def now(self) -> Path:
        """From the start to now."""
        return self._after(len(self.rates))

    @property
    def last(self) -> Path:
        """The last step."""
        return self.now.since(self._after(len(self.rates) - 1))

    def _after(self, steps: int) -> Path:
        if steps not in self._paths:
            self._paths[steps] = self.path(self.rates[:steps])
        return self._paths[steps]

    def value(self, out: Builder, start: Ref, path: Path) -> list[Term]:
        """A vector or number: terms of a sum."""
        terms: list[Term] = [
            (number, None, scaled(out, start, power), ()) for power, number in path.start
        ]
        for power, psi in path.moves:
            for part in psi.terms if isinstance(psi, Add) else (psi,):
                number, rest = separate.scaled(part)
                moved = scaled(out, self._applied(out, rest), power)
                terms.append((number / self.unit, None, moved, ()))
        return terms

    def _applied(self, out: Builder, psi: Expr) -> Ref:
        fn, steps, _ = Fn(psi, len(self.gradients)).compact()
        shift = self.now.shift
        refs = tuple(scaled(out, self._gradient(step), shift) for step in steps)
        if out.type(refs[0]).kind is Kind.VECTOR:
            return refs[0] if fn.expr == Var(0) else out.add(Nonlin(fn, refs))
        numbers: Mapping[Expr, Expr] = {Var(k): Par(k) for k in range(len(refs))}
        return out.add(Nonlin(Fn(substitute(fn.expr, numbers), 0, len(refs)), (), refs))

    def _gradient(self, step: int) -> Ref:
        found = self.gradients[step]
        assert isinstance(found, Ref)
        return found

    def product(
        self, out: Builder, node: MatMul, x: Ref, start: Ref, path: Path, kept: Ex | None
    ) -> list[Term]:
        """A matrix, or its transpose, times a vector: terms of a sum."""
        terms: list[Term] = [
            (number, None, scaled(out, start, power - kept), ())
            for power, number in path.start
            if kept is not None
        ]
        taken = {name for name, _ in out.type(x).axes} | self.family
        share = ratio(out, x) / self.unit
        for power, whole in path.moves:
            linear, psi = _linear(whole)
            if linear:
                moved_by = path.shift + power + ONE
                terms += self._sums(out, node, x, linear, moved_by, share)
            if psi == const(0):
                continue
            fn, steps, _ = Fn(psi, len(self.gradients)).compact()
            rows: list[Ref] = []
            cols: list[Ref] = []
            forms: list[int] = []
            summed: dict[tuple[str, int], str] = {}  # steps may have other numbers of samples
            for form, step in enumerate(steps):
                pairs = self.gradients[step]
                assert not isinstance(pairs, Ref)
                for row, col in pairs:
                    axes = dict.fromkeys((*out.type(row).axes, *out.type(col).axes))
                    for axis in axes:
                        if axis[0] not in self.family and axis not in summed:
                            summed[axis] = fresh(f"{axis[0]}'", taken.union(summed.values()))
                    names = {axis[0]: summed[axis] for axis in axes if axis in summed}
                    row, col = (renamed(out, ref, names) for ref in (row, col))
                    rows.append(scaled(out, row, path.shift))
                    cols.append(col)
                    forms.append(form)
            result, into = (cols, rows) if node.transpose else (rows, cols)
            own = OuterNonlin(
                fn, tuple(result), tuple(into), (), x, tuple(forms), tuple(summed.values())
            )
            moved = scaled(out, out.add(own), power + ONE)
            terms.append((share, None, moved, ()))
        return terms

    def _sums(
        self,
        out: Builder,
        node: MatMul,
        x: Ref,
        numbers: Mapping[int, Number],
        power: Ex,
        share: Number,
    ) -> Iterator[Term]:
        """Multiples of gradients times a vector: rows and averages, with no function of a matrix.

        The gradients of all steps are stacked; those that have other axes are apart.
        """
        kinds: dict[Axes, list[tuple[int, Ref, Ref]]] = {}
        for step in numbers:
            pairs = self.gradients[step]
            assert not isinstance(pairs, Ref)
            for row, col in pairs:
                axes = tuple(pair for pair in out.type(row).axes if pair[0] not in self.family)
                kinds.setdefault(axes, []).append((step, row, padded(out, col, axes)))
        taken = {name for name, _ in out.type(x).axes} | self.family
        for axes, found in kinds.items():
            axis = fresh("s", {*taken, *(name for name, _ in axes)})
            steps, rows, cols = zip(*found, strict=True)
            marks = tuple(numbers[step] for step in steps)
            mark = out.add(Data(f"of {node.matrix}: {len(out)}", marks, ((axis, len(marks)),)))
            rows = tuple(scaled(out, row, power) for row in rows)
            stacks = [out.add(Stack(part, axis)) for part in (rows, cols)]
            result, into = stacks[::-1] if node.transpose else stacks
            result = out.add(LinComb((Fraction(1),), (mark,), (result,)))
            names, result, gram = pulled(out, x, result, into, self.family)
            over = tuple(names[name] for name in (*(name for name, _ in axes), axis))
            yield share, gram, result, over


def _linear(psi: Expr) -> tuple[dict[int, Number], Expr]:
    """The gradients that a function is a sum of, with their numbers, and what else there is."""
    numbers: dict[int, Number] = {}
    left: list[Expr] = []
    for term in psi.terms if isinstance(psi, Add) else (psi,):
        number, rest = separate.scaled(term)
        if isinstance(rest, Var):
            numbers[rest.index] = number
        else:
            left.append(term)
    return numbers, add(left)
