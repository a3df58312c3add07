"""Functions of coordinates that follow each other as one function of one layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

from tpcalc.errors import StudyError
from tpcalc.exponents import Ex
from tpcalc.functions import Call, Expr, Par, Var, const
from tpcalc.functions.expr import Mul, add, mul, substitute, walk
from tpcalc.functions.fn import slope_or_none
from tpcalc.meanfield.layers.norms import normed
from tpcalc.meanfield.layers.parts import (
    NOTHING,
    ZERO,
    Made,
    NotFollowed,
    Part,
    holds,
    linear,
    multiple,
    without_averages,
)
from tpcalc.meanfield.operations import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Gain,
    Input,
    LayerNorm,
    Number,
    Operation,
    Product,
    SharedBias,
)
from tpcalc.names import what_of
from tpcalc.program.program import Program
from tpcalc.program.types import Ref
from tpcalc.registry.values import squared

Terms = list[tuple[Number, int]]  # layers, each with its factor
HINT = (
    "tp.kernel and tp.limit take programs as they are; for the recursion put a matrix in between."
)


@dataclass
class Fusing:
    """The layers so far.

    Args:
        program: What is read, of single vectors.
        start: The inputs.
        batch: The size of the batch that an input is part of; None: infinite, or none.
    """

    program: Program
    start: Input
    batch: int | None = None
    made: list[Made] = field(init=False)
    averages: dict[int, tuple[int, Expr]] = field(default_factory=dict)
    over_batch: set[Ref] = field(default_factory=set)
    bent: dict[tuple[int, Expr], int] = field(default_factory=dict)
    multiples: dict[int, dict[Number, int]] = field(default_factory=dict)
    sums: dict[tuple[tuple[Number, int], ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.made = [Made(self.start, (), frozenset({"the input"}), True)]

    def refused(self, ref: Ref, said: str) -> NotFollowed:
        """The error of a node that the recursion does not follow."""
        return NotFollowed(
            f"the recursion does not hold: {said}.", where=self.program.place(ref), hint=HINT
        )

    def add(self, made: Made) -> int:
        """A new layer."""
        self.made.append(made)
        return len(self.made) - 1

    def is_start(self, head: int | None) -> bool:
        """Whether a layer is a start vector."""
        return head is not None and self.made[head].operation is None

    # -------------------------------------------------------------------------------- functions

    def applied(self, ref: Ref, expr: Expr, parts: Sequence[Part], scalars: Sequence[Expr]) -> Part:
        """A function of vectors and scalars."""
        given: dict[Expr, Expr] = {Par(index): own for index, own in enumerate(scalars)}
        if len(parts) == 1 and parts[0].power != ZERO:
            pair = linear(substitute(expr, given))
            if pair is not None and pair[1] == 0:
                return self.summed(ref, [(const(pair[0]), parts[0])])
        parts = [self.settled(ref, part) for part in parts]
        for index, part in enumerate(parts):
            if part.head is None:
                given[Var(index)] = part.expr
        heads = {part.head for part in parts if part.head is not None}
        if len(heads) > 1:
            parts = [self.based(part) for part in parts]
            heads = {part.head for part in parts if part.head is not None}
        if len(heads) > 1:
            return self._of_several(ref, substitute(expr, given), parts)
        given |= {Var(index): part.expr for index, part in enumerate(parts)}
        return self.formed(ref, next(iter(heads), None), substitute(expr, given))

    def _of_several(self, ref: Ref, expr: Expr, parts: Sequence[Part]) -> Part:
        """A function of several layers, which is a sum of them or refused."""
        used = [index for index, part in enumerate(parts) if part.head is not None]
        slopes = [slope_or_none(expr, Var(index)) for index in used]
        if any(own is None or holds(own, Var) for own in slopes):
            gate = self._product(ref, expr, parts)
            if gate is not None:
                return gate
            shown = " and ".join(self.told(head) for head in {parts[k].head: 0 for k in used})
            raise self.refused(ref, f"it is a function of two vectors, {shown}")
        rest = substitute(expr, {Var(index): const(0) for index in used})
        terms = zip(slopes, (parts[index] for index in used), strict=True)
        return self.summed(ref, [(own, part) for own, part in terms if own], rest)

    def _product(self, ref: Ref, expr: Expr, parts: Sequence[Part]) -> Part | None:
        """A product of functions of layers that are independent; None of what is none."""
        factors: dict[int, list[Expr]] = {}
        number: list[Expr] = []
        for factor in expr.factors if isinstance(expr, Mul) else ():
            used = [own.index for own in walk(factor) if isinstance(own, Var)]
            heads = {parts[index].head: None for index in used}
            if len(heads) > 1:
                return None
            own = substitute(factor, {Var(index): parts[index].expr for index in used})
            head = next(iter(heads), None)
            (number if head is None else factors.setdefault(head, [])).append(own)
        gains = {head: factors.pop(head) for head in list(factors) if self.is_start(head)}
        shared = any(self.made[head].shared for head in gains)
        if not factors or len(factors | gains) < 2 or shared or self._overlap(factors | gains):
            return None
        place = self.program.place(ref)
        found: tuple[int, Number] | None = None
        for head, each in factors.items():
            layer, weight = self.layer(ref, Part(head, mul(each)))
            if found is not None:
                both = (found[0], layer)
                near = self.made[both[0]].near | self.made[layer].near
                layer = self.add(Made(Product(), both, near, False, place))
                weight = found[1] * weight
            found = layer, weight
        assert found is not None
        layer, weight = found
        for head, each in gains.items():
            near = self.made[layer].near | self.made[head].near
            gain = Gain(mul(each), self.made[head].variance)
            layer = self.add(Made(gain, (layer,), near, False, place))
        return self.formed(ref, layer, mul((*number, const(weight), Var(0))))

    def formed(self, ref: Ref, head: int | None, expr: Expr, power: Ex = ZERO) -> Part:
        """A function of one layer; one that normalises it is a layer."""
        if head is None or not holds(expr, Var):
            return Part(None, expr, power)
        if not holds(expr, Par):
            return self._scaled(ref, head, expr, power)
        if power != ZERO and not self._batch_in(expr):  # averages are of what is settled
            raise self.sized(ref, power)
        found = normed(expr, head, self.averages)
        if found is None:
            return Part(head, expr, power)
        read, weight = self.layer(ref, Part(head, found.of))
        layer = self.made[read]
        epsilon = found.epsilon / squared(weight) if found.epsilon else found.epsilon
        operation = self._norm(ref, expr, found.centred, layer.gaussian, epsilon)
        place = self.program.place(ref)
        new = self.add(Made(operation, (read,), layer.near, layer.gaussian, place))
        sign = -1 if weight < 0 else 1
        return Part(new, mul((const(found.factor * sign), Var(0))), power)

    def _norm(
        self, ref: Ref, expr: Expr, centred: bool, gaussian: bool, epsilon: Number
    ) -> Operation:
        """Normalisation over coordinates or over the batch, as the averages in it are."""
        if not self._batch_in(expr):
            return LayerNorm(epsilon, centred or gaussian)
        coordinates = any(isinstance(p, Par) and p.index not in self.over_batch for p in walk(expr))
        if coordinates or not centred:
            raise self.averaged(ref, expr)
        if not gaussian:
            raise self.refused(ref, "it normalises over the batch what is not Gaussian")
        return BatchNorm(self.batch, epsilon)

    def _batch_in(self, *exprs: Expr) -> bool:
        """Whether averages over the batch are in expressions."""
        parts = (part for expr in exprs for part in walk(expr))
        return any(isinstance(part, Par) and part.index in self.over_batch for part in parts)

    def batched(self, ref: Ref, part: Part) -> Part:
        """The average of a vector over the batch."""
        if part.head is None or self.is_start(part.head):
            return part
        self.averages[ref] = part.head, part.expr
        self.over_batch.add(ref)
        return Part(None, Par(ref), part.power)

    def _scaled(self, ref: Ref, head: int, expr: Expr, power: Ex) -> Part:
        """A function of one layer; a factor in front of a Gaussian one is a layer."""
        pair = linear(expr)
        if pair is None or pair[0] == 1 or self.is_start(head) or not self.made[head].gaussian:
            return Part(head, expr, power)
        multiples = self.multiples.setdefault(head, {})
        if pair[0] not in multiples:
            own, term = self.made[head], (pair[0], head)
            place = self.program.place(ref)
            made = Made(Addition(term[:1]), (head,), own.near, True, place, (term,))
            multiples[pair[0]] = self.add(made)
        return Part(multiples[pair[0]], add((Var(0), const(pair[1]))), power)

    def based(self, part: Part) -> Part:
        """The same function of the layer that its own layer is a multiple of."""
        terms = () if part.head is None else self.made[part.head].terms
        if len(terms) != 1:
            return part
        ((weight, head),) = terms
        expr = substitute(part.expr, {Var(0): mul((const(weight), Var(0)))})
        return self.based(Part(head, expr, part.power))

    # ------------------------------------------------------------------------------------- sums

    def summed(self, ref: Ref, terms: Iterable[tuple[Expr, Part]], rest: Expr = NOTHING) -> Part:
        """A sum of vectors with factors."""
        found: dict[int, Expr] = {}
        terms = [(factor, part) for factor, part in terms if mul((factor, part.expr)) != NOTHING]
        powers = {part.power for _, part in terms} | ({ZERO} if rest != NOTHING else set())
        if len(powers) > 1:
            terms, powers = [(own, self.settled(ref, part)) for own, part in terms], {ZERO}
        for factor, part in terms:
            own = mul((factor, part.expr))
            if part.head is None:
                rest = add((rest, own))
            else:
                found[part.head] = add((found.get(part.head, NOTHING), own))
        found = {head: own for head, own in found.items() if own != NOTHING}
        (power,) = powers or {ZERO}
        if len(found) < 2:
            return self._alone(ref, found, rest, power)
        for head, own in found.items():  # averages are taken off the whole sum
            found[head], averages = without_averages(own)
            rest = add((rest, averages))
        if not holds(rest, Par):
            return self._joined(ref, found, rest, power)
        part = self._joined(ref, found, NOTHING, power)
        return self.formed(ref, part.head, add((part.expr, rest)), power)

    def _alone(self, ref: Ref, exprs: dict[int, Expr], rest: Expr, power: Ex) -> Part:
        """A sum of functions of one layer, or of none."""
        head = next(iter(exprs), None)
        own = exprs.get(head, NOTHING) if head is not None else NOTHING
        if head is not None and holds(rest, Par):  # averages are those of the multiple
            part = self._scaled(ref, head, own, power)
            head, own = part.head, part.expr
        return self.formed(ref, head, add((own, rest)), power)

    def _joined(self, ref: Ref, found: dict[int, Expr], rest: Expr, power: Ex) -> Part:
        found = self._apart(ref, found)
        if len(found) < 2:
            return self._alone(ref, found, rest, power)
        if any(holds(own, Par) for own in found.values()):
            raise self.averaged(ref, *found.values())
        straight: Terms = []
        curved: list[tuple[int, Expr]] = []
        starts: Terms = []
        for head, own in found.items():
            pair = linear(own)
            if pair is None or not self.made[head].gaussian:
                curved.append((head, own))
                continue
            if self.is_start(head):
                starts.append((pair[0], head))
            else:  # a layer that is read with a factor is that multiple
                factor, multiple = next(
                    iter(self.multiples.get(head, {}).items()), (Fraction(1), head)
                )
                straight.append((pair[0] / factor, multiple))
            rest = add((rest, const(pair[1])))
        layer = self._added(ref, straight, starts, curved, rest)
        shifted = NOTHING if curved else rest
        return Part(layer, add((Var(0), shifted)), power)

    def _added(
        self, ref: Ref, straight: Terms, starts: Terms, curved: list[tuple[int, Expr]], rest: Expr
    ) -> int:
        """A layer that adds layers, functions of layers and biases."""
        terms = list(straight)
        for index, (head, own) in enumerate(curved):
            bent = add((own, rest)) if index == 0 else own
            terms.append(self.layer(ref, Part(head, bent))[::-1])
        if not terms:
            raise self.refused(ref, "it is a sum of start vectors, which no input reaches")
        key = (*sorted(terms, key=lambda term: term[1]), *starts)
        if key not in self.sums:
            self.sums[key] = self._sum_layer(ref, terms, starts, gaussian=not curved)
        return self.sums[key]

    def _sum_layer(self, ref: Ref, terms: Terms, starts: Terms, *, gaussian: bool) -> int:
        """A new layer that adds layers and biases."""
        place = self.program.place(ref)
        near = frozenset[str]().union(*(self.made[head].near for _, head in terms))
        layer = terms[0][1]
        if len(terms) > 1 or terms[0][0] != 1:
            weights, parents = zip(*terms, strict=True)
            addition = Addition(weights)
            layer = self.add(Made(addition, parents, near, gaussian, place, tuple(terms)))
        for weight, start in starts:
            near |= self.made[start].near
            variance, shared = squared(weight) * self.made[start].variance, self.made[start].shared
            bias = SharedBias(variance) if shared else Bias(variance)
            gaussian = gaussian and not shared
            one: tuple[Number, int] = (Fraction(1), layer)
            made = Made(bias, (layer,), near, gaussian, place, (one, (weight, start)))
            layer = self.add(made)
        return layer

    def _apart(self, ref: Ref, exprs: dict[int, Expr]) -> dict[int, Expr]:
        """The terms of a sum as independent ones: layers that are sums are taken apart."""
        if not self._overlap(exprs):
            return exprs
        own: dict[int, Expr] = {}
        sums: dict[int, Expr] = {}
        for head, expr in exprs.items():
            based = self.based(Part(head, expr))
            assert based.head is not None
            pair = linear(based.expr)
            parts = [(based.head, based.expr)]
            if pair is not None:
                parts = self._atoms(based.head, pair[0])
                parts[0] = parts[0][0], add((parts[0][1], const(pair[1])))
            into = sums if pair is None and self.made[based.head].terms else own
            for term, part in parts:
                into[term] = add((into.get(term, NOTHING), part))
        for head in sums:  # h + f(h), where h is a sum of which all terms stand there
            atoms = self._atoms(head, Fraction(1))
            factor = multiple(own, atoms)
            if factor is not None:
                shifts = (substitute(own.pop(term), {Var(0): NOTHING}) for term, _ in atoms)
                sums[head] = add((sums[head], mul((const(factor), Var(0))), *shifts))
        whole = {head: part for head, part in (own | sums).items() if part != NOTHING}
        both = self._overlap(whole)
        if both:
            raise self.refused(
                ref,
                "it adds functions of two vectors that are not independent, "
                f"{self.told(both[0])} and {self.told(both[1])}",
            )
        return whole

    def _overlap(self, heads: Iterable[int]) -> tuple[int, int] | None:
        """Two layers that read one matrix with no other in between."""
        for left, right in combinations(heads, 2):
            if self.made[left].near & self.made[right].near:
                return left, right
        return None

    def _atoms(self, head: int, weight: Number) -> list[tuple[int, Expr]]:
        """A multiple of a layer as functions of layers that are no sums."""
        made = self.made[head]
        if made.bends is not None:
            return [(made.parents[0], mul((const(weight), made.bends)))]
        if not made.terms:
            return [(head, mul((const(weight), Var(0))))]
        parts = [part for factor, term in made.terms for part in self._atoms(term, weight * factor)]
        found: dict[int, Expr] = {}
        for term, part in parts:
            found[term] = add((found.get(term, NOTHING), part))
        return list(found.items())

    # ----------------------------------------------------------------------------------- layers

    def settled(self, ref: Ref, part: Part) -> Part:
        """The same vector; one that vanishes or grows with n is refused."""
        if part.power != ZERO:
            raise self.sized(ref, part.power)
        return part

    def layer(self, ref: Ref, part: Part) -> tuple[int, Number]:
        """A vector as a layer and a factor in front of it."""
        if part.head is None and self._batch_in(part.expr):
            raise self.averaged(ref, part.expr)
        if part.head is None or self.is_start(part.head):
            raise self.refused(ref, "it reads a vector that no input reaches")
        pair = linear(part.expr)
        if pair is not None and pair[1] == 0:
            return part.head, pair[0]
        if holds(part.expr, Par):
            raise self.averaged(ref, part.expr)
        known = self.bent.get((part.head, part.expr))
        if known is not None:
            return known, Fraction(1)
        read = self.made[part.head]
        if not read.gaussian:
            raise self.refused(
                ref,
                f"it bends {self.told(part.head)}, which is a sum of functions and not Gaussian",
            )
        call = isinstance(part.expr, Call) and part.expr.arg == Var(0)
        operation = Activation(part.expr, part.expr.atom.text if call else "")  # type: ignore[attr-defined]
        place = self.program.place(ref)
        new = self.add(Made(operation, (part.head,), read.near, False, place, bends=part.expr))
        self.bent[part.head, part.expr] = new
        return new, Fraction(1)

    def told(self, head: int | None) -> str:
        """A layer in words."""
        if head is None:
            return "a constant"
        made = self.made[head]
        sources = ", ".join(sorted(set(map(what_of, made.near))))
        if made.operation is None:
            return f"the start vector {sources}"
        if made.near == {"the input"}:
            return "the input"
        line = made.place.partition(" at ")[2]
        return f"a vector that {sources} wrote{f' ({line})' if line else ''}"

    def sized(self, ref: Ref, power: Ex) -> StudyError:
        """The error of a vector that vanishes or grows."""
        return StudyError(
            f"the recursion does not hold: vectors of the size n^({power}) vanish or grow with n.",
            where=self.program.place(ref),
            hint="tp.orders(tp.signal.program_of(net)) follows powers of n; tp.kernel takes it.",
        )

    def averaged(self, ref: Ref, *exprs: Expr) -> StudyError:
        """The error of an average that is part of no normalisation."""
        if self._batch_in(*exprs):
            said = "it uses averages over the batch in other ways than batch norm does"
        else:
            said = "it uses averages over coordinates in other ways than layer norm and RMS norm do"
        return self.refused(ref, said)
