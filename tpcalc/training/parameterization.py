"""What a parameterization is: the powers of the width in weights and learning rates.

Weights are written W^l = n^(-a_l) w^l with w^l of order-one entries at the start, and a step is
w^l <- w^l - eta n^(-c_l) grad_{w^l} loss, where c_l may change from step to step; l runs from 1
(the input layer) to L + 1 (the output layer).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tpcalc import checks
from tpcalc.doors.numbers import exact
from tpcalc.errors import StudyError
from tpcalc.exponents import Ex, as_ex, parse_ex
from tpcalc.networks.depth_powers import DepthPowers
from tpcalc.program.family import Mark
from tpcalc.sources import Source

Power = Ex | Fraction | int


@dataclass(frozen=True, slots=True)
class Exponents:
    """The exponents of one step, each a tuple over the layers 1..L+1."""

    a: tuple[Ex, ...]  # weights: W^l = n^(-a_l) w^l
    c: tuple[Ex, ...]  # learning rates of weights: eta n^(-c_l)
    bias_a: tuple[Ex, ...]  # biases: B^l = n^(-bias_a_l) b^l
    bias_c: tuple[Ex, ...]  # learning rates of biases
    mean: tuple[Fraction, ...] = ()  # means of the entries of w^l at the start; empty: all 0
    # what is left of the initial weights of hidden layers at this step: w^l(0) stands in w^l(t)
    # with the factor n^(-kept_l), None where it is dropped; empty: all 0, nothing is lost. Layers 1
    # and L + 1 keep theirs: 0.
    kept: tuple[Ex | None, ...] = ()
    # the s of parameters n^(-s_l) w^l that are trained in place of w^l, biases too; empty: all 0.
    # Decay and eps of an optimizer are those of what is trained.
    stored: tuple[Ex, ...] = ()


Rule = Callable[[int, int], Exponents]
RateExponent = Callable[[int, int], Ex]
Own = Callable[[str, Mark, int, int], Ex | None]


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of a parameterization."""

    name: str
    text: str  # what it is
    required: bool = False  # whether it must be given


@dataclass(frozen=True)
class Parameterization:
    """Exponents for every depth and step, the parameters bound.

    Example:
        >>> from tpcalc.training.parameterizations import lookup
        >>> [str(c) for c in lookup("ip-llr", p=2).exponents(3, 0).c]
        ['-4', '-9/2', '-9/2', '-4']
    """

    name: str  # the catalogue name
    rule: Rule = field(compare=False, repr=False)  # rule(depth, step): the exponents
    biases: str  # the layers that have biases where it was defined: "none", "first" or "all"
    source: Source  # where it is defined
    values: tuple[tuple[str, str], ...] = ()  # the parameters as given, for messages and reports
    # the functions that give its learning rates, where they are not its own (with_rates)
    rates: tuple[RateExponent | None, RateExponent | None] = field(default=(None, None), repr=False)
    # the exponents under optimizers whose updates are of degree 0 in the gradient (Adam, sign);
    # None: it is not defined for them
    entrywise: Rule | None = field(default=None, compare=False, repr=False)
    degree: int = 1  # the degree that it is taken for (under)
    # own(kind, mark, step, degree): of some parameters the exponent "a" or "c" that stands in place
    # of that of their layer; None: that of the layer
    own: Own | None = field(default=None, compare=False, repr=False)
    deep: DepthPowers | None = None  # the powers of the number of blocks; None: it has none
    # whether an n^(-c) of entrywise optimizers is the size of what entries of w move by, whatever
    # the rate is of an optimizer that moves them so
    by_updates: bool = False

    def under(self, degree: int) -> Parameterization:
        """The parameterization with the learning rates that an optimizer needs.

        Example:
            >>> from tpcalc.training.parameterizations import lookup
            >>> [str(c) for c in lookup("mup").under(0).exponents(3).c]
            ['0', '1/2', '1/2', '0']
        """
        if degree == 0 and self.entrywise is None:
            raise StudyError(
                f"{self.text} has learning rates for gradient descent alone, and none for an "
                "entrywise optimizer (Adam, sign).",
                hint="Use mup, ntk or standard, or give the rates, as in 'ac:0,1/2,1;0,1/2,0'.",
            )
        return self if degree == self.degree else replace(self, degree=degree)

    @property
    def text(self) -> str:
        """Name with the parameters that were given: ``ip-llr(p=2)``."""
        given = ", ".join(f"{name}={value}" for name, value in self.values)
        own = f"{self.name}({given})" if given else self.name
        return own if self.rates == (None, None) else f"{own} with other learning rates"

    def layered(self) -> Parameterization:
        """Itself, whose exponents are those of layers alone."""
        if self.own is not None:
            raise StudyError(
                f"the exponents of {self.text} are those of single parameters.",
                where=self.text,
                hint="Take tables over layers: 'ac:0,1/2,1;-1,-1,-1'.",
            )
        return self

    def power(self, mark: Mark, table: Exponents) -> Ex:
        """The exponent a of a parameter."""
        row = table.bias_a if mark.bias else table.a
        found = _first(self._own("a", mark, 0), row[mark.layer - 1])
        if mark.init is not None and -mark.init != found:
            raise StudyError(
                f"{self.text} starts {mark.label} at n^({-found}), and its init says "
                f"n^({mark.init}).",
                hint="Leave the init out, or take the parameterization 'own', which has the powers "
                "that a network writes.",
            )
        return found

    def rate(self, mark: Mark, table: Exponents, step: int = 0) -> Ex:
        """The exponent c of the learning rate of a parameter."""
        row = table.bias_c if mark.bias else table.c
        found = _first(self._own("c", mark, step), row[mark.layer - 1])
        return found - mark.speed if mark.speed.terms else found

    def stored(self, mark: Mark, table: Exponents) -> Ex:
        """The s of the n^(-s) w that is trained; 0: w is."""
        row = table.stored
        return _first(self._own("stored", mark, 0), row[mark.layer - 1] if row else as_ex(0))

    def _own(self, kind: str, mark: Mark, step: int) -> Ex | None:
        return None if self.own is None else self.own(kind, mark, step, self.degree)

    def exponents(self, depth: int, step: int = 0) -> Exponents:
        """The exponents a_l and c_l.

        Args:
            depth: Number of hidden layers L, at least 1.
            step: The step t that the learning rates are for.

        Raises:
            StudyError: A depth below 1, a negative step, or tables for another depth.
        """
        for what, value, least in (("depth", depth, 1), ("step", step, 0)):
            checks.whole(value, what, least=least)
        entrywise = self.entrywise if self.degree == 0 else None
        return (entrywise or self.rule)(depth, step)


@dataclass(frozen=True)
class ParameterizationFamily:
    """An entry of the catalogue: a parameterization, or a family of them."""

    name: str  # the name it is listed under
    make: Callable[..., Rule]  # make(**parameters): the exponents as a function of depth and step
    text: str  # what it is, in one line
    source: Source  # where it is defined
    # the layers that have biases where it was defined: "none", "first" or "all"
    biases: str = "all"
    parameters: tuple[Argument, ...] = ()  # what make takes
    # as make, for optimizers whose updates are of degree 0 in the gradient; None: it is not defined
    # for them
    entrywise: Callable[..., Rule] | None = None
    aliases: tuple[str, ...] = ()  # other names
    own: Own | None = None  # of its members: the exponents of single parameters
    # as make, for the powers of the number of blocks; None: it has none
    deep: Callable[..., DepthPowers] | None = None
    by_updates: bool = False  # whether its rates of entrywise optimizers are sizes of updates of w

    def __call__(self, *ordered: object, **named: object) -> Parameterization:
        """The member with these parameters."""
        names = [argument.name for argument in self.parameters]
        if len(ordered) > len(names):
            takes = ", ".join(names) or "none"
            raise StudyError(
                f"{len(ordered)} parameters are given; it takes {takes}.", where=self.name
            )
        given = dict(zip(names, ordered, strict=False))
        for name, value in named.items():
            checks.one_of(f"parameter of {self.name}", name, names)
            if name in given:
                raise StudyError(f"the parameter {name!r} is given twice.", where=self.name)
            given[name] = value
        for argument in self.parameters:
            if argument.required and argument.name not in given:
                raise StudyError(
                    f"it needs its parameter {argument.name!r}: {argument.text}.", where=self.name
                )
        shown = tuple((name, _shown(given[name])) for name in names if name in given)
        entrywise = None if self.entrywise is None else self.entrywise(**given)
        return Parameterization(
            self.name,
            self.make(**given),
            self.biases,
            self.source,
            shown,
            entrywise=entrywise,
            own=self.own,
            deep=None if self.deep is None else self.deep(**given),
            by_updates=self.by_updates,
        )


def _first(own: Ex | None, other: Ex) -> Ex:
    return other if own is None else own


def _shown(value: object) -> str:
    if isinstance(value, tuple | list):
        return f"({', '.join(_shown(part) for part in value)})"
    return str(value)


def exponent(value: object, *, what: str) -> Ex:
    """A number, a text or an exponent as an exponent; decimals are exact.

    Example:
        >>> str(exponent(0.5, what="a_1"))
        '1/2'
    """
    if isinstance(value, Ex):
        return value
    if isinstance(value, str):
        return parse_ex(value)
    return as_ex(exact(value, what=what))


def layers(depth: int, first: Power, hidden: Power, last: Power) -> tuple[Ex, ...]:
    """One exponent for each of the layers 1..L+1: the first, L - 1 in between, the last.

    Example:
        >>> [str(a) for a in layers(3, 0, 1, 2)]
        ['0', '1', '1', '2']
    """
    return tuple(map(as_ex, (first, *(hidden,) * (depth - 1), last)))


def reinitialised(exponents: Exponents, power: Ex | None) -> Exponents:
    """The same exponents, the hidden layers 2..L re-initialised: w^l(0) times n^(-power).

    Source: Hajjar, Chizat, Giraud, sections 4.1 and 4.2 (HP, HPZ).

    Example:
        >>> from tpcalc.training.parameterizations import lookup
        >>> [str(kept) for kept in reinitialised(lookup("mup").exponents(3), None).kept]
        ['0', 'None', 'None', '0']
    """
    zero = as_ex(0)
    return replace(exponents, kept=(zero, *(power,) * (len(exponents.a) - 2), zero))


def shared(a: Iterable[Ex], c: Iterable[Ex]) -> Exponents:
    """Exponents where the biases of a layer have those of its weights."""
    weights, rates = tuple(a), tuple(c)
    return Exponents(weights, rates, weights, rates)


def with_rates(
    parameterization: Parameterization,
    rate: RateExponent,
    bias_rate: RateExponent | None = None,
) -> Parameterization:
    """The same parameterization with other learning rates: c_l(t) = rate(l, t).

    Example:
        >>> from tpcalc.training.parameterizations import lookup
        >>> free = with_rates(lookup("naive-ip"), lambda l, t: Ex.symbol(f"c_{l}_{t}"))
        >>> [str(c) for c in free.exponents(2, 1).c], str(free.exponents(2, 1).bias_c[0])
        (['c_1_1', 'c_2_1', 'c_3_1'], '-1')
    """
    for what, given in (("rate", rate), ("bias_rate", bias_rate)):
        if not callable(given) and not (given is None and what == "bias_rate"):
            raise StudyError(
                f"{what} is {given!r}, not a function of layer and step.",
                where=parameterization.text,
                hint="Write it as lambda layer, step: Ex.symbol(f'c_{layer}_{step}').",
            )

    def with_own(rule: Rule) -> Rule:
        def exponents(depth: int, step: int) -> Exponents:
            found, rates = rule(depth, step), _rates(rate, depth, step, "rate")
            if bias_rate is None:
                return replace(found, c=rates)
            return replace(found, c=rates, bias_c=_rates(bias_rate, depth, step, "bias_rate"))

        return exponents

    return replace(
        parameterization,
        rule=with_own(parameterization.rule),
        entrywise=with_own(parameterization.entrywise or parameterization.rule),
        rates=(rate, bias_rate),
    )


def _rates(rate: RateExponent, depth: int, step: int, what: str) -> tuple[Ex, ...]:
    return tuple(
        exponent(rate(layer, step), what=f"{what} of layer {layer} at step {step}")
        for layer in range(1, depth + 2)
    )
