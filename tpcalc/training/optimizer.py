"""Optimizers as texts: lines over a weight w, its gradient g and a state, read for every entry."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from tpcalc import checks
from tpcalc.activations.entries.sign import SIGN
from tpcalc.doors.numbers import exact
from tpcalc.errors import StudyError
from tpcalc.exponents import Ex, as_ex, parse_ex
from tpcalc.functions import Call, Const, Expr, Fn, Par, Var, const
from tpcalc.functions.expr import Add, Mul, Pow, add, mul, power, substitute, walk
from tpcalc.functions.fn import derivative
from tpcalc.functions.form import RECIPROCAL
from tpcalc.functions.numbers import Number, root
from tpcalc.functions.tape import evaluate
from tpcalc.passes.course import Path, Rate
from tpcalc.sources import Source
from tpcalc.training.optimizer_sizes import (
    SIDES,
    START,
    WHOLE,
    Entries,
    FirstStep,
    first_step,
)
from tpcalc.training.optimizer_text import (
    FUNCTIONS,
    UNBOUNDED,
    OutsideError,
    OverArrays,
    Powers,
    Reader,
    broken,
    number_of,
)
from tpcalc.training.update_kinds import is_lasting

ZERO = as_ex(0)
FAR = Fraction(1000)  # a power of n beside which those of a text are small
LITTLE = -10 * FAR  # that of weights which are less than any gradient
LONG = 10**15  # denominators beyond it are rounded
KEPT = ((ZERO, Fraction(1)),)
Setting = tuple[Number, Ex]  # a number times a power of n
_PRODUCT = re.compile(r"(?<=[\w)])\s+(?=[\w(])")
_SETTING = re.compile(r"(.*?)\*?\s*\bn(?:\s*(?:\^|\*\*)\s*(.+))?")


def setting(value: object, what: str) -> Setting:
    """A hyperparameter: a number, or a text with a power of the width.

    Example:
        >>> number, power = setting("0.1 n^(-1/2)", "eps")
        >>> str(number), str(power)
        ('1/10', '-1/2')
    """
    found = _SETTING.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return exact(value, what=what), ZERO
    number = exact(found[1].strip() or 1, what=what)
    return number, parse_ex(found[2]) if found[2] else as_ex(1)


@dataclass(frozen=True)
class Optimizer:
    r"""An entry of the catalogue: the rule of an update, read off its text.

    The text has a line for each part of the state and one for ``w``, in order; in it stand the
    weight ``w``, its gradient ``g``, the learning rate ``lr``, the number ``t`` = 1, 2, ... of the
    step, the hyperparameters, ``sqrt``, ``sign``, ``abs``; a blank is a product. The state starts
    at 0. Every parameter has its own, entry by entry.

    Functions of a whole parameter are ``norm`` (Frobenius), ``rms``, ``polar`` (the exact polar
    factor), ``factored`` (row means times column means over the mean), numbers ``rows`` and
    ``cols``; beside them ``max(a, b)``, ``ratio(a, b)``, 1 where one of both is 0, and
    ``clipped(g, c)``, g shortened where the norm of the gradients of all parameters is above c,
    which every entry takes as its hyperparameter ``clip``. Of these the first step alone is
    followed, by its size.

    Example:
        >>> lion = Optimizer(
        ...     "lion",
        ...     "w = (1 - lr decay) w - lr sign(b1 m + (1 - b1) g)\nm = b2 m + (1 - b2) g",
        ...     "the sign of a momentum", Source(""), {"b1": "9/10", "b2": "99/100", "decay": 0},
        ... )
        >>> lion.degree
        0
        >>> [(str(power), psi.text) for power, psi in lion.path([(1, as_ex(0))]).moves]
        [('0', '-1*sign(x0)')]
    """

    name: str  # the name it is listed under
    program: str  # the text
    text: str  # what it is, in one line
    source: Source  # where it is defined
    # the hyperparameters with their values: numbers, or texts with a power of n
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    aliases: tuple[str, ...] = ()  # other names
    others: str = ""  # of an optimizer of hidden matrices the name of that of all other parameters

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", dict(self.values))
        for name in self.values:
            if not name.isidentifier() or name in TAKEN:
                raise broken(self.name, name, "a hyperparameter is a name that means nothing else")
        for name, (number, _) in self.settings.items():
            # A share of what is left: b beside 1 - b, or the b of a state m = b m + ...
            share = re.search(rf"\b1\s*-\s*{name}\b|\b(\w+)\s*=\s*{name}\s+\1\b", self.program)
            low = 0 if share or name in ("decay", EPS, CLIP) else number
            if not low <= number or (share and number >= 1) or (name == CLIP and not number):
                wanted = {CLIP: "above 0"}.get(name, "at least 0")
                raise StudyError(
                    f"the hyperparameter {name} of {self.name} is {self.values[name]}; it must be "
                    f"{'from 0 to below 1' if share else wanted}.",
                )
        try:
            found = self.first(Entries(Fraction(0), LITTLE))  # reads the text
            with suppress(*(() if found.by_weight else (OutsideError,))):
                self.path(TWO)  # also with a state
        except (RecursionError, MemoryError):
            raise broken(self.name, self.rule, "it is too long or nested too deeply") from None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The hyperparameters with their values: ``decay=0``."""
        values = self.values.items()
        return tuple(f"{name}={str(value).replace(' ', '*')}" for name, value in values)

    @property
    def label(self) -> str:
        """Its name with its hyperparameters, as ``lookup`` takes it."""
        return f"{self.name}({', '.join(self.parameters)})" if self.values else self.name

    @property
    def rule(self) -> str:
        """Its lines, as one."""
        return "; ".join(name + " = " + line.strip() for name, line in self._written)

    @cached_property
    def settings(self) -> Mapping[str, Setting]:
        """The hyperparameters as numbers times powers of n."""
        return {name: self._setting(name, value) for name, value in self.values.items()}

    def _setting(self, name: str, value: object) -> Setting:
        return setting(value, f"the hyperparameter {name} of {self.name}")

    def with_settings(self, **values: object) -> Optimizer:
        """The same optimizer with other hyperparameters."""
        known, program = list(self.values), self.program
        if CLIP in values and CLIP not in known:
            known, program = [*known, CLIP], f"g = clipped(g, {CLIP})\n{program}"
        for name, value in values.items():
            checks.one_of(f"hyperparameter of {self.name}", name, known)
            self._setting(name, value)
        changed = {**self.values, **values}
        return replace(self, program=program, values=changed) if values else self

    @cached_property
    def is_plain(self) -> bool:
        """Whether it is w - lr g."""
        if len(self._written) > 1 or self.whole:
            return False
        first = self.path([(Fraction(1), ZERO)])
        return first.moves == ((ZERO, -Var(0)),) and first.start == KEPT

    @cached_property
    def is_lasting(self) -> bool:
        """Whether updates are sums of gradients, or bounded functions of them, at every step."""
        numbers = {name: value != 0 for name, (value, _) in self.settings.items()}
        return is_lasting(self._lines, {**numbers, "lr": True, "t": True})

    @cached_property
    def has_units(self) -> bool:
        """Whether it acts on 2 w in another way than on w: by decay, or by eps."""
        path = self.path([(Fraction(1), ZERO)])
        fn = Fn(add(psi for _, psi in path.moves), 1)
        near, far = (float(evaluate(fn, [x])) for x in (0.75, 3.0))
        homogeneous = abs(far - near * 4.0**self.degree) < 1e-9 * abs(near)
        return not (path.start == KEPT and homogeneous)

    @cached_property
    def is_linear_in_rate(self) -> bool:
        """Whether the first step is the learning rate times what does not depend on it."""
        one, two = (self.path([(Fraction(factor), ZERO)]) for factor in (1, 2))
        kept, left = (sum(number for _, number in path.start) - 1 for path in (one, two))
        doubled = tuple((power, mul((const(2), psi))) for power, psi in one.moves)
        return doubled == two.moves and left == 2 * kept

    @cached_property
    def degree(self) -> int:
        """The degree of an update in the gradient: 1 of sums of gradients, 0 of Adam and sign.

        What vanishes beside the gradient (eps) counts as absent.
        """
        near, far = ((self._size(at), self._size(at + 1)) for at in (-FAR, FAR))
        degree = near[1] - near[0]
        if degree not in (0, 1) or far[1] - far[0] != degree:
            raise StudyError(
                f"an update of {self.name} is neither linear in the gradient nor of degree 0.",
                hint="Learning rates are known for such optimizers alone.",
            )
        return int(degree)

    @cached_property
    def weight_degree(self) -> Fraction:
        """The degree of an update in the weight: 1 of a step that is a share of its norm."""
        return self._size(Fraction(0), LITTLE + 1) - self._size(Fraction(0))

    def _size(self, gradient: Fraction, weight: Fraction = LITTLE) -> Fraction:
        return self.first(Entries(gradient, weight)).size or Fraction(0)

    def own_size(self, role: str) -> Fraction:
        """The power of n in entries of a step where those of weight and gradient have none."""
        sides = {"hidden": 2, "finite": 0}.get(role, 1)
        return self.first(Entries(Fraction(0), sides=sides, role=role)).size or Fraction(0)

    @cached_property
    def is_along(self) -> bool:
        """Whether the first step is a number times the gradient."""
        return self.first(Entries(Fraction(0), LITTLE)).is_along

    def first(
        self,
        at: Entries,
        rate: Fraction = Fraction(0),
        values: Mapping[str, Fraction] | None = None,
    ) -> FirstStep:
        """The first step at a learning rate n^(-rate), by its size.

        An eps without a power of n counts as absent, unless nothing else is left; without values
        of symbols no hyperparameter has one.

        Example:
            >>> from tpcalc.training.optimizers import lookup
            >>> lookup("lamb").first(Entries(Fraction(-1), Fraction(-1, 2))).size
            Fraction(-1, 2)
        """
        given = {
            name: (number, Fraction(0) if values is None else power.at(values))
            for name, (number, power) in self.settings.items()
        }
        absent = EPS in given and (values is None or self.has_constant_eps)
        bare = {**given, EPS: (Fraction(0), Fraction(0))} if absent else given
        each = (tuple(own.items()) for own in (bare, given))
        first, whole = (first_step(self.name, self._lines, own, rate, at) for own in each)
        return whole if first.size is None else first

    @cached_property
    def has_constant_eps(self) -> bool:
        """Whether it adds an eps that has no power of the width."""
        number, power = self.settings.get(EPS, (0, ZERO))
        return number != 0 and power == ZERO

    @cached_property
    def whole(self) -> tuple[str, ...]:
        """The functions of a whole parameter in its text."""
        used = {node.id for _, line in self._lines for node in _names(line)}
        return tuple(name for name in (*WHOLE, *SIDES) if name in used)

    @cached_property
    def beyond(self) -> str:
        """Why first steps alone are followed; empty: all are."""
        try:
            self.path(TWO)
        except OutsideError as error:
            return error.message
        return ""

    @cached_property
    def _written(self) -> tuple[tuple[str, str], ...]:
        lines = [line for line in self.program.splitlines() if line.strip()]
        found = [line.partition("=") for line in lines]
        return tuple((name.strip(), text) for name, _, text in found)

    @cached_property
    def _lines(self) -> tuple[tuple[str, ast.expr], ...]:
        found = []
        for name, text in self._written:
            if name in (*TAKEN[2:], *self.values):
                raise broken(self.name, name, "a line stands for w, g or a part of the state")
            if not name.isidentifier():
                raise broken(self.name, name, "a line is 'name = formula'")
            written = _PRODUCT.sub("*", text.strip()).replace("^", "**")
            try:
                found.append((name, ast.parse(written, mode="eval").body))
            except SyntaxError as error:
                raise broken(self.name, text.strip(), str(error.msg)) from None
        if "w" not in dict(found):
            raise broken(self.name, self.program.strip(), "no line says what becomes of w")
        return tuple(found)

    def path(self, rates: Sequence[Rate]) -> Path:
        """What a parameter has become, as a function of its gradients."""
        if self.whole:
            raise OutsideError(
                f"a step is a function of whole parameters ({', '.join(self.whole)}), of which the "
                "first alone is followed, by its size.",
                where=f"optimizer {self.name}",
                hint="Ask tp.first_order, tp.check or tp.solve, or take adam for all steps.",
            )
        return _path(self, tuple(self.settings.items()), tuple(rates))

    @property
    def parts(self) -> tuple[str, ...]:
        """What a step goes from: the weight, its gradient, and the parts of the state."""
        return tuple(dict.fromkeys(("w", "g", *(name for name, _ in self._lines))))

    def lines(self, step: int, numbers: Mapping[str, float]) -> tuple[tuple[str, Fn], ...]:
        """A step over arrays: for each line what it names, and the function that it becomes.

        Example:
            >>> from tpcalc.training.optimizers import lookup
            >>> adam = lookup("adam")
            >>> adam.parts
            ('w', 'g', 'm', 'v')
            >>> numbers = {"b1": 0.5, "b2": 0, "eps": 0, "decay": 0}
            >>> [fn.expr.text for _, fn in adam.lines(1, numbers)][0]
            '0.5*x1 + 0.5*x2'
        """
        timed = any(node.id == "t" for _, line in self._lines for node in _names(line))
        return _lines(self, step if timed else 1, tuple(numbers.items()))


@lru_cache(maxsize=4096)
def _path(
    optimizer: Optimizer, values: tuple[tuple[str, Setting], ...], rates: tuple[Rate, ...]
) -> Path:
    shift = next((-power for name, (_, power) in values if name == "eps"), ZERO)
    weight, _ = _walked(optimizer, values, rates, shift)
    start: dict[Ex, Number] = {}
    moves: dict[Ex, Expr] = {}
    for exponent, expr in weight.items():
        kept = derivative(expr, START)
        if not isinstance(kept, Const):
            raise OutsideError(
                "an entrywise function of the initial weights, a random matrix with entries of "
                "its own, is outside the theory.",
                where=f"optimizer {optimizer.name}",
                hint="Decouple the decay: w = (1 - lr decay) w - lr (...), as in adamw.",
            )
        if kept.value != 0:
            start[exponent] = kept.value
        moved = _signed(substitute(expr, {START: const(0)}))
        if _divides(moved):
            raise broken(optimizer.name, moved.text, UNBOUNDED)
        if any(not _moves(part) for part in (moved.terms if isinstance(moved, Add) else (moved,))):
            raise broken(optimizer.name, moved.text, "w takes a step that no gradient is in")
        if moved != const(0):
            moves[exponent] = moved
    return Path(tuple(start.items()), tuple(moves.items()), shift)


@lru_cache(maxsize=4096)
def _walked(
    optimizer: Optimizer,
    values: tuple[tuple[str, Setting], ...],
    rates: tuple[Rate, ...],
    shift: Ex,
) -> tuple[Powers, dict[str, Powers]]:
    """The weight and the state after some steps."""
    if not rates:
        return {ZERO: START}, {}
    weight, state = _walked(optimizer, values, rates[:-1], shift)
    step, (factor, exponent) = len(rates), rates[-1]
    names: dict[str, Powers] = {name: number_of(*value) for name, value in values}
    names |= {name: state.get(name, {}) for name, _ in optimizer._lines}
    names |= {
        "w": weight,
        "g": {-shift: Var(step - 1)},
        "t": number_of(Fraction(step), ZERO),
        "lr": number_of(factor, -exponent),
    }
    reader = Reader(optimizer.name, names)
    for name, line in optimizer._lines:
        names[name] = {p: _rounded(expr) for p, expr in reader.read(line).items()}
    kept = {name: names[name] for name, _ in optimizer._lines if name not in ("w", "g")}
    return names["w"], kept


@lru_cache(maxsize=4096)
def _lines(
    optimizer: Optimizer, step: int, numbers: tuple[tuple[str, float], ...]
) -> tuple[tuple[str, Fn], ...]:
    parts = optimizer.parts
    names: dict[str, Powers] = {name: {ZERO: Var(place)} for place, name in enumerate(parts)}
    names |= {name: number_of(value, ZERO) for name, value in numbers}
    names |= {"t": number_of(Fraction(step), ZERO), "lr": {ZERO: Par(0)}}
    reader = OverArrays(optimizer.name, names)
    read = ((name, reader.read(line)) for name, line in optimizer._lines)
    found = ((name, found.get(ZERO, const(0))) for name, found in read)
    changed = ((name, expr) for name, expr in found if expr != Var(parts.index(name)))
    return tuple((name, Fn(expr, len(parts), 1)) for name, expr in changed)


def _names(line: ast.expr) -> Iterator[ast.Name]:
    return (node for node in ast.walk(line) if isinstance(node, ast.Name))


TAKEN = ("w", "g", "lr", "t", *FUNCTIONS, *WHOLE, *SIDES)  # names that every text has
EPS, CLIP = "eps", "clip"
TWO: tuple[Rate, ...] = ((Fraction(1), ZERO),) * 2  # steps that show a text, its state included


def _signed(expr: Expr) -> Expr:
    """A sum whose quotients of a single gradient are signs: b g / sqrt(a g^2)."""
    if isinstance(expr, Add):
        return add(_signed(term) for term in expr.terms)
    used = {part for part in walk(expr) if isinstance(part, Var)}
    divided = [p for p in walk(expr) if isinstance(p, Call) and p.atom.name == RECIPROCAL]
    if len(used) != 1 or len(divided) != 1 or not isinstance(expr, Mul):
        return expr
    (own,), call = used, divided[0]
    half = call.atom.params == (Fraction(1, 2),)
    above = mul(factor for factor in expr.factors if factor is not call)
    b, a = derivative(above, own), derivative(derivative(call.arg, own), own)
    if not half or not isinstance(b, Const) or not isinstance(a, Const):
        return expr
    size = root(Fraction(a.value) / 2, Fraction(-1, 2))
    return mul((b, const(size), SIGN(own)))


def _moves(part: Expr) -> bool:
    """Whether a gradient is in a part of a step; a step of 0 has none to have."""
    return part == const(0) or any(isinstance(own, Var) for own in walk(part))


def _divides(expr: Expr) -> bool:
    """Whether something is divided by a root that may be 0 where it is not."""
    for part in walk(expr):
        factors = part.factors if isinstance(part, Mul) else (part,)
        for below in factors:
            if isinstance(below, Call) and below.atom.name == RECIPROCAL:
                used = (own for own in walk(below.arg) if isinstance(own, Var))
                none: dict[Expr, Expr] = dict.fromkeys(used, const(0))
                above = mul(factor for factor in factors if factor is not below)
                if isinstance(part, Mul) and substitute(above, none) != const(0):
                    return True
    return False


def _rounded(expr: Expr) -> Expr:
    """An expression whose long fractions are floats."""
    if isinstance(expr, Const):
        long = isinstance(expr.value, Fraction) and expr.value.denominator > LONG
        return const(float(expr.value)) if long else expr
    below = expr.parts
    parts = [_rounded(part) for part in below]
    if all(a is b for a, b in zip(parts, below, strict=True)):
        return expr
    if isinstance(expr, Add):
        return add(parts)
    if isinstance(expr, Mul):
        return mul(parts)
    if isinstance(expr, Pow):
        return power(parts[0], expr.exponent)
    assert isinstance(expr, Call)
    return expr.atom(parts[0])
