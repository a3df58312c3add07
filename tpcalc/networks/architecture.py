"""Entries of the catalogue of networks, and checks of what their networks are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from inspect import signature
from typing import Any, ClassVar

from tpcalc import checks
from tpcalc.activations.given import as_activation
from tpcalc.doors.numbers import exact
from tpcalc.dsl.vectors import Vector, nonlin
from tpcalc.errors import StudyError, placed
from tpcalc.functions import Expr, Fn
from tpcalc.functions.numbers import root as root
from tpcalc.networks.layers.norms import layer_norm, rms_norm
from tpcalc.networks.network import Architecture as Architecture
from tpcalc.networks.tracer import NetworkTracer
from tpcalc.sources import Source

Number = Fraction | float
# What normalises preactivations, and how networks with it are called.
NORMS: dict[str, tuple[Callable[[Vector], Vector] | None, str]] = {
    "none": (None, ""),
    "layer": (layer_norm, "normalised"),
    "rms": (rms_norm, "RMS-normalised"),
}


@dataclass(frozen=True)
class ArchitectureFamily:
    """An entry of the catalogue: the networks of one kind.

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> lookup("mlp").parameters[:3]
        ('depth', 'act', 'bias')
    """

    name: str  # the name it is listed under
    make: Callable[..., Architecture]  # the class: what it takes are the parameters
    text: str  # what it is, in one line
    source: Source  # where it is defined
    aliases: tuple[str, ...] = ()  # other names
    own: tuple[str, ...] | None = None  # what it takes, where make does not say it

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of what it takes."""
        if self.own is not None:
            return self.own
        return tuple(signature(self.make).parameters)


class Catalogued(Architecture):
    """What the networks of the catalogue share: an activation, a norm, and how they are called."""

    kind: ClassVar[str]
    size: ClassVar[tuple[str, str, str]]  # a preposition, the field that counts, what it counts
    normed: ClassVar[str]  # what is normalised
    act: Any
    norm: str
    _activation: Expr

    def _settle(self, **values: Any) -> None:
        """Fill in the fields as they are checked."""
        values["_activation"] = activation_of(self.act, type(self).__name__)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def activation(self) -> Expr:
        """The activation, an expression of ``Var(0)``."""
        return self._activation

    @property
    def heading(self) -> str:
        """The same for the heading of a page."""
        return f"{named(self.act)} {self._sized}"

    @property
    def _sized(self) -> str:
        of, field, word = self.size
        count = getattr(self, field)
        return f"{self.kind} {of} {count} {word}{'s' if count != 1 else ''}"

    @property
    def _begun(self) -> str:
        """The network in a phrase, as far as all of them are told alike."""
        said = NORMS[self.norm][1]
        normed = f"{said} {self.normed} and " if said else ""
        return f"a {self._sized} with {normed}{named(self.act)}"


def activated(t: NetworkTracer, layer: int | str, h: Vector, act: Expr, norm: str) -> Vector:
    """Act(h), or act of the normalised h; h, that and the result are reported."""
    t.watch("h", layer, h)
    x = nonlin(Fn(act, 1), [read(t, layer, h, norm)])
    t.watch("x", layer, x)
    return x


def read(t: NetworkTracer, layer: int | str, h: Vector, norm: str) -> Vector:
    """The normalised h, which is reported, or h itself."""
    normalise, _ = NORMS[norm]
    if normalise is None:
        return h
    h = normalise(h)
    t.watch("hhat", layer, h)
    return h


def activation_of(act: Any, where: str) -> Expr:
    """An activation as an expression of one argument.

    Example:
        >>> activation_of("relu", "MLP").text
        'relu(x0)'
    """
    return as_activation(act, where).expr


def named(act: str | Callable[[Expr], Expr]) -> str:
    """The name of an activation, for sentences.

    Example:
        >>> named("relu")
        'relu'
    """
    return act if isinstance(act, str) else getattr(act, "name", "a function")


def chosen(value: Any, name: str, words: Sequence[str], where: str) -> str:
    """A word of a list.

    Example:
        >>> chosen("none", "norm", ("none", "layer"), "MLP")
        'none'
    """
    if not isinstance(value, str) or value not in words:
        raise StudyError(
            f"{name} is {value!r}.", where=where, hint=f"It is one of {', '.join(words)}."
        )
    return value


def variance_of(value: Any, name: str, where: str) -> Fraction:
    """A variance of weights, exact.

    Example:
        >>> variance_of(2.25, "weight_variance", "MLP")
        Fraction(9, 4)
    """
    return _number(value, name, where, above=0)


def row_of(value: Any, layers: int, name: str, where: str) -> Fraction | tuple[Fraction, ...]:
    """A number for all layers, or one for each; none below 0; equal ones are one for all.

    Example:
        >>> row_of("2, 1/2", 2, "weight_variance", "MLP")
        (Fraction(2, 1), Fraction(1, 2))
        >>> row_of([2, 2], 2, "weight_variance", "MLP")
        Fraction(2, 1)
    """
    if isinstance(value, str) and "," in value:
        value = value.split(",")
    single = isinstance(value, str) or not isinstance(value, Sequence)
    found = tuple(_number(one, name, where) for one in ((value,) if single else value))
    if not single and len(found) != layers:
        raise StudyError(
            f"{name} has {len(found)} numbers; there are {layers} layers that it is for.",
            where=where,
            hint="Give one number for all of them, or one for each.",
        )
    return found[0] if len(set(found)) == 1 else found


def bias_variance_of(value: Any, where: str) -> Fraction | None:
    """A variance of biases; None stays None, and 0 means that there are none.

    Example:
        >>> bias_variance_of("0.01", "MLP"), bias_variance_of(None, "MLP")
        (Fraction(1, 100), None)
    """
    if value is None:
        return None
    return _number(value, "bias_variance", where)


def _number(value: Any, name: str, where: str, *, above: float | None = None) -> Fraction:
    with placed(where):
        found = exact(value, what=name)
        checks.real(value, name, least=0, above=above)
    return found


def spread(weights: Any, biases: Any) -> str:
    """Variances other than 1 as the end of a sentence.

    Args:
        weights: Of the weights, one or a row.
        biases: Of the biases; None or 0 where nothing is to be said.

    Example:
        >>> spread(Fraction(9, 4), Fraction(1, 100)), spread(1, None)
        (', weight variance 9/4, bias variance 1/100', '')
    """
    said = f", weight variance {weights}" if weights != 1 else ""
    if isinstance(weights, tuple):
        said = f", weight variances {', '.join(map(str, weights))}"
    return said + (f", bias variance {biases}" if biases and biases != 1 else "")
