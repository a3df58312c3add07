"""``scales``: the size of every output of a program, as powers of n, from its limit graph.

The same derivation as that of the limit, with symbols in the exponents if there are any: they are
compared at a sample point, and the comparisons made are the region where the answer holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tpcalc.errors import ScaleError, Undecided
from tpcalc.exponents import Ex, as_ex, without_number
from tpcalc.exponents.chamber import Chamber, Power, Region
from tpcalc.functions import Call
from tpcalc.functions.expr import walk
from tpcalc.functions.fn import SQUARE
from tpcalc.limit.chains import degree
from tpcalc.limit.context import Claim, Context, Piece, Record
from tpcalc.limit.graph import LRef
from tpcalc.limit.lost import refused, where_lost
from tpcalc.limit.rules import LIMIT_RULES
from tpcalc.limit.series import NeedsMore, Ranking, Rest, Series
from tpcalc.program.base import applied_of
from tpcalc.program.nodes import Ref
from tpcalc.program.program import Program
from tpcalc.program.rules import interpret_from
from tpcalc.results import NotCovered


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of one output.

    Args:
        power: The growth exponent: the output is Theta(n^power), or O(n^power) if ``bound``. None:
            identically 0 (or, with ``bound``, nothing is known).
        node: The leading coefficient in the limit graph; None for a bound or a zero.
        bound: Whether only an upper bound is known.
        strict: Whether the bound is o(n^power).
        certain: Whether the leading coefficient is provably not 0.
        noise: Whether it rests on an average that is 0 in the limit and fluctuates.
        random: Whether the leading coefficient stays random.
        uncovered: Why nothing is known: what no rule covers on the way to the output.
    """

    power: Power | None
    node: LRef | None = None
    bound: bool = False
    strict: bool = False
    certain: bool = False
    noise: bool = False
    random: bool = False
    uncovered: NotCovered | None = None


@dataclass
class Scales:
    """A derivation at one depth: the series of the nodes of a program, as far as asked for."""

    program: Program
    context: Context  # the limit graph with the chamber
    values: list[Any] = field(default_factory=list)  # the series by node
    # the exponents found for the unknowns, in order
    solved: dict[str, Ex] = field(default_factory=dict)
    _walk: Iterator[Ref] = field(init=False)

    def __post_init__(self) -> None:
        self._walk = interpret_from(self.program, LIMIT_RULES, self.context, self.values)

    def reach(self, names: Iterable[str]) -> Scales:
        """The same, followed up to some outputs."""
        last = max((self.program.ref(name) for name in names), default=-1)
        for _ in self.walk(last):
            pass
        return self

    def walk(self, last: Ref) -> Iterator[Ref]:
        """The nodes up to one, as they are followed."""
        outputs = {ref for _, ref in self.program.outputs}
        while len(self.values) <= last:
            ref = next(self._walk)
            if ref in outputs and isinstance(value := self.values[ref], Series):
                self._claim_square(value, ref)
            yield ref

    def _claim_square(self, value: Series[LRef], ref: Ref) -> None:
        """Of a vector the size is that of its mean square."""
        for power, node in value.terms:
            vector = self.context.dims[node] is not None
            if vector and not isinstance(degree(self.context, node), Fraction):
                self.context.claim_mean(Piece(power, SQUARE, (node,), ()), ref)

    @property
    def region(self) -> Region:
        """Where the comparisons made so far have the same answers."""
        return self.context.ranking.chamber.region

    def claims(self, names: Iterable[str]) -> dict[Claim, None]:
        """What the sizes of some outputs rest on besides the form of the program."""
        asked = list(names)
        self.reach(asked)
        return self.context.claims_below(self.program.ref(name) for name in asked)

    def series(self, name: str) -> Series[LRef]:
        """The series of an output."""
        self.reach([name])
        found: Series[LRef] = self.values[self.program.ref(name)]
        return found

    def scale(self, name: str) -> Scale:
        """The size of an output."""
        series = self.series(name)
        ranking = self.context.ranking
        try:
            lead = ranking.leading(series)
        except NeedsMore:
            largest = ranking.bound(series)
            assert largest is not None
            lost = self._uncovered(name) if largest.power is None else None
            return Scale(largest.power, bound=True, strict=largest.strict, uncovered=lost)
        if lead is None:
            return Scale(None, certain=True)
        power, node = lead
        context = self.context
        return Scale(
            power,
            node,
            certain=context.certainty.holds(node),
            noise=context.is_lawless(node),
            random=context.random[node],
        )

    def _uncovered(self, name: str) -> NotCovered | None:
        """What stands against an output without a bound, where that is a node without a rule."""
        ref = where_lost(self.context, self.values, self.program.ref(name))
        error = self.context.uncovered.get(ref)
        return None if error is None else refused(self.context, name, ref, error)

    def bound(self, ref: Ref) -> Scale:
        """The bound on a node whose leading term is not known."""
        series = self.values[ref]
        bounds = [rest for rest in (series.rest, series.soft) if rest is not None]
        if series.terms:
            bounds.append(Rest(series.terms[0][0]))
        largest: Rest | None = None
        for rest in bounds:
            largest = self.context.ranking.larger(largest, rest)
        assert largest is not None
        return Scale(largest.power, bound=True, strict=largest.strict)


class Unsettled(NeedsMore):
    """An unknown that terms below the depth decide."""

    def __init__(self, symbol: str, bound: Power | None) -> None:
        self.symbol = symbol
        self.bound = bound
        super().__init__()


class Unsolved(ScaleError):
    """An unknown for which no value is known, whatever the depth."""

    def __init__(
        self, symbol: str, reason: str, *, where: str, hint: str, zero: bool = False
    ) -> None:
        self.symbol = symbol
        self.reason = reason
        self.zero = zero
        message = f"no {symbol} is known to make this output of order one: at {symbol} = 0 {reason}"
        super().__init__(message, where=where, hint=hint)


def symbols(program: Program) -> frozenset[str]:
    """The symbols in the exponents of a program: in its powers of n, and in those of functions.

    Example:
        >>> import tpcalc as tp
        >>> @tp.program
        ... def layer(t):
        ...     x = tp.relu_pow("p")(t.gaussian("g"))
        ...     t.output("h", tp.n ** -tp.symbol("a") * (t.matrix("W") @ x))
        >>> sorted(symbols(layer.build()))
        ['a', 'p']
    """
    depth = {"L"} if program.repeats else set()  # what repeats a block is refused as that
    return program.symbols - depth | _degrees(program)


def _degrees(program: Program) -> frozenset[str]:
    """The symbols in degrees of homogeneity."""
    functions = {node.fn for node in map(applied_of, program.nodes) if node is not None}
    atoms = {part.atom for fn in functions for part in walk(fn.expr) if isinstance(part, Call)}
    degrees = [atom.facts.homogeneity for atom in atoms]
    return frozenset(
        name for degree in degrees if isinstance(degree, Ex) for name in degree.symbols
    )


def scales(
    program: Program,
    *,
    values: Mapping[str, Ex | Fraction] | None = None,
    at: Mapping[str, Fraction] | None = None,
    depth: Power = Fraction(0),
    unknowns: Mapping[str, str] | None = None,
    record: Record | None = None,
) -> Scales:
    """Derive the size of outputs, each when it is asked for.

    Source: Hajjar, Chizat, Giraud, Lemmas F.2 to F.4 and Theorem B.1.

    Example:
        >>> import tpcalc as tp
        >>> @tp.program
        ... def layer(t):
        ...     h = tp.n ** -tp.symbol("a") * (t.matrix("W") @ tp.relu(t.gaussian("g")))
        ...     t.output("h", h)
        >>> str(scales(layer.build(), at={"a": Fraction(1)}).scale("h").power)
        '1/2 - a'
    """
    given = dict(values or {})
    point = dict(at or {})
    pending = {program.ref(name): symbol for name, symbol in (unknowns or {}).items()}
    degrees = _degrees(program)
    for name in sorted(degrees & given.keys()):
        raise ScaleError(
            f"the symbol {name!r} is the power of a function, not of n: no number can be put in.",
            hint="Write the function with the number, as in relu^2, or keep the symbol (at=...).",
        )
    known = given.keys() | point.keys() | set(pending.values())
    for name in sorted((program.symbols | degrees) - known):
        kept = f", or a point to keep it as a symbol, at={{{name!r}: '1/2'}}"
        raise without_number(name, more=kept)
    context = Context(
        program,
        ranking=Ranking(_Solving(point, pending.values(), given), depth),
        values=given,
        record=record or Record(),
    )
    found = Scales(program, context)
    for ref in found.walk(len(program.nodes) - 1) if pending else ():
        symbol = pending.get(ref)
        if symbol is not None and symbol not in context.values:
            _solve(found, ref, symbol)
    return found


class _Solving(Chamber):
    """A chamber with unknowns: terms that share one are sorted, and its sign is never asked."""

    def __init__(
        self,
        point: Mapping[str, Fraction],
        unknowns: Iterable[str],
        solved: Mapping[str, Ex | Fraction],
    ) -> None:
        super().__init__(point)
        self._unknowns = frozenset(unknowns)
        self._solved = solved

    def sign(self, value: Power) -> int:
        if isinstance(value, Ex):
            early = sorted(self.unsolved(value))
            if early:
                raise Undecided(
                    f"the size of something hangs on whether n^({value}) grows, before the output "
                    f"that decides the unknown {early[0]!r}.",
                    hint="Name an output that comes before all that depends on the unknown.",
                )
        return super().sign(value)

    def unsolved(self, value: Ex) -> frozenset[str]:
        """The unknowns in an exponent that have no value yet."""
        return value.symbols & self._unknowns - self._solved.keys()

    def at(self, value: Power) -> Fraction:
        if isinstance(value, Ex):
            return value.at({**dict.fromkeys(self._unknowns, Fraction(0)), **self.point})
        return value


def _solve(scales: Scales, ref: Ref, symbol: str) -> None:
    """Bind an unknown so that the value of a node is of order one."""
    context, chamber = scales.context, scales.context.ranking.chamber
    try:
        lead = context.ranking.leading(scales.values[ref])
    except NeedsMore:
        raise Unsettled(symbol, _without(scales.bound(ref), symbol)) from None
    where = scales.program.place(ref)
    if lead is None:
        hint = "Check the data and the loss: no update reaches it."
        raise Unsolved(symbol, "it is identically 0.", where=where, hint=hint, zero=True)
    power = as_ex(lead[0])
    free = power.put({symbol: Fraction(0)})
    if context.missing[lead[1]] == "noise":
        raise Unsolved(
            symbol,
            f"it is at most n^({free}), and its leading part holds an average whose expectation is "
            "0 by symmetry.",
            where=where,
            hint="What is left of that average fluctuates, and only a bound of it is known.",
        )
    slope = _slope(power, symbol)
    if not slope or (isinstance(chamber, _Solving) and chamber.unsolved(free)):
        hint = "Name an output with a power of n that holds the unknown, and no later one."
        raise Unsolved(symbol, f"it is of size n^({free}).", where=where, hint=hint)
    solution = -free / slope
    context.values[symbol] = solution
    scales.solved[symbol] = solution
    replaced = {symbol: solution}
    for index, value in enumerate(scales.values):
        if isinstance(value, Series):
            scales.values[index] = _put(value, replaced)


def _without(scale: Scale, symbol: str) -> Power | None:
    return None if scale.power is None else _power(scale.power, {symbol: Ex()})


def _slope(power: Ex, symbol: str) -> Fraction | None:
    """The coefficient of a symbol that occurs on its own only; None if it occurs otherwise."""
    total = Fraction(0)
    for monomial, coefficient in power.terms:
        if (symbol, 1) in monomial and len(monomial) == 1:
            total += coefficient
        elif any(name == symbol for name, _ in monomial):
            return None
    return total


def _put(series: Series[LRef], values: Mapping[str, Ex]) -> Series[LRef]:
    terms = tuple((_power(power, values), node) for power, node in series.terms)
    rest, soft, drift = (
        bound
        if bound is None or bound.power is None
        else Rest(_power(bound.power, values), bound.strict)
        for bound in (series.rest, series.soft, series.drift)
    )
    if (terms, rest, soft, drift) == (series.terms, series.rest, series.soft, series.drift):
        return series
    return Series(terms, rest, soft, drift)


def _power(power: Power, values: Mapping[str, Ex]) -> Power:
    if isinstance(power, Fraction):
        return power
    put = power.put(values)
    constant = put.constant
    return put if constant is None else constant
