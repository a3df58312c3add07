"""What an activation of the catalogue is: a family of functions, and a member of it.

A family is one file of ``activations/``. Giving its parameters yields a member: a coordinatewise
function with its derivative and facts, which the rest of the package applies to expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any

from tpcalc.doors.numbers import exact
from tpcalc.errors import StudyError
from tpcalc.exponents import Ex, parse_ex
from tpcalc.functions import Atom, Expr, Facts, Fn, Var
from tpcalc.functions.expr import number_text
from tpcalc.functions.tape import evaluate
from tpcalc.sources import Source

DLMF = Source("NIST Digital Library of Mathematical Functions")
NONLINEARITY = Source("Schoenherr, The Nonlinearity Coefficient")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a family."""

    name: str
    text: str  # what it is
    default: Fraction | None = None  # its value where none is given; None if it must be given
    above: Fraction | None = None  # the value must be larger than this; None for no bound
    # whether it may hold symbols, for the exponents alone; a symbol is taken to be larger than
    # above
    symbolic: bool = False


@dataclass(frozen=True)
class Composite:
    """A function written with sums, products and powers, so that no atom hides its form."""

    text: str  # its name with parameters
    # the expression of an argument
    build: Callable[[Expr], Expr] = field(compare=False, repr=False)
    facts: Facts = field(compare=False, repr=False)  # declared facts
    # the function as a sympy expression, for display
    sympy: Callable[[Any], Any] = field(compare=False, repr=False)

    def __call__(self, arg: Expr) -> Expr:
        return self.build(arg)


@dataclass(frozen=True)
class ActivationFamily:
    """An entry of the catalogue: functions of one variable with parameters (or with none).

    Example:
        >>> from tpcalc.activations.entries import REGISTRY
        >>> REGISTRY["relu_pow"](2).text
        'relu_pow[2]'
    """

    name: str  # the name it is listed under, an identifier
    make: Callable[..., Atom | Composite]  # make(*parameters): the function, an Atom or a Composite
    text: str  # what it is, in one line
    source: Source  # where it is defined
    parameters: tuple[Parameter, ...] = ()  # its parameters in order
    aliases: tuple[str, ...] = ()  # other names
    variadic: bool = False  # whether the last parameter may be given any number of times
    domain: tuple[float, float] = (-inf, inf)  # the open interval on which it is defined

    @classmethod
    def of(
        cls, function: Atom | Composite, text: str, source: Source, **more: Any
    ) -> ActivationFamily:
        """The entry of a function without parameters, under its own name."""
        return cls(function.text, lambda: function, text, source, **more)

    def __call__(self, *values: object) -> Activation:
        """The member with these parameters; defaults stand in for those left out."""
        return _member(self, self._check(values))

    def _check(self, values: tuple[object, ...]) -> tuple[Fraction | Ex, ...]:
        names = ", ".join(parameter.name for parameter in self.parameters)
        takes = f"it takes {names}" if names else "it takes none"
        if len(values) > len(self.parameters) and not self.variadic:
            raise StudyError(f"{self.name} is given {len(values)} parameters; {takes}.")
        found: list[Fraction | Ex] = []
        for index, parameter in enumerate(self.parameters):
            if index >= len(values):
                if parameter.default is None:
                    raise StudyError(
                        f"{self.name} needs its parameter {parameter.name!r} ({parameter.text}).",
                        hint=f"Write it after a colon, as in {self.name}:2.",
                    )
                found.append(parameter.default)
                continue
            what = f"{parameter.name} of {self.name}"
            value = _polynomial(values[index]) if parameter.symbolic else None
            if value is None:
                value = exact(values[index], what=what)
            if isinstance(value, Ex):
                found.append(value)
                continue
            if parameter.above is not None and value <= parameter.above:
                raise StudyError(
                    f"{parameter.name} of {self.name} ({parameter.text}) must be larger than "
                    f"{parameter.above}, not {value}."
                )
            found.append(value)
        found.extend(
            exact(value, what=f"{self.parameters[-1].name} of {self.name}")
            for value in values[len(found) :]
        )
        return tuple(found)


@dataclass(frozen=True)
class Activation:
    """A coordinatewise function of the catalogue, its parameters bound.

    Args:
        function: What it applies.
        family: The entry it comes from.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> relu = lookup("relu")
        >>> relu.fn.text, relu.fn.by(0).text
        ('relu(x0)', 'step(x0)')
    """

    function: Atom | Composite
    family: ActivationFamily = field(compare=False, repr=False)

    def __call__(self, arg: Expr) -> Expr:
        return self.function(arg)

    @property
    def text(self) -> str:
        """Name with parameters, as ``lookup`` reads it: ``leaky_relu[1/5]``."""
        return self.function.text

    @property
    def name(self) -> str:
        """The same, for whoever asks any function for its name."""
        return self.function.text

    @property
    def facts(self) -> Facts:
        """Parity, homogeneity, kinks, growth, value and slope at 0."""
        return self.function.facts

    @property
    def source(self) -> Source:
        """Where it is defined."""
        return self.family.source

    @property
    def domain(self) -> tuple[float, float]:
        """The open interval on which it is defined."""
        return self.family.domain

    @property
    def fn(self) -> Fn:
        """The function of one vector argument."""
        return Fn(self(Var(0)), 1)

    def evaluate(self, z: Any) -> Any:
        """The values on a numpy array.

        Args:
            z: An array or a float.
        """
        return evaluate(self.fn, [z])

    def sympy(self, z: Any) -> Any:
        """The function as a sympy expression, for display; None where none was declared.

        Args:
            z: A sympy expression.
        """
        return None if self.function.sympy is None else self.function.sympy(z)


@lru_cache(maxsize=1024)
def _member(family: ActivationFamily, values: tuple[Fraction | Ex, ...]) -> Activation:
    """One object for each member, so that equal functions are the same atom."""
    return Activation(family.make(*values), family)


def _polynomial(value: object) -> Fraction | Ex | None:
    """A value that holds symbols, or a constant polynomial; None for anything else."""
    if isinstance(value, str) and re.search(r"[^\W\d]", value):
        try:
            float(value)  # 1e-3, nan
        except ValueError:
            value = parse_ex(value)
    if not isinstance(value, Ex):
        return None
    return value if value.constant is None else value.constant


def listed(values: tuple[Fraction, ...]) -> str:
    """Parameters as they are printed after a name.

    Example:
        >>> listed((Fraction(1), Fraction(1, 2)))
        '[1, 1/2]'
    """
    return f"[{', '.join(number_text(value) for value in values)}]"
