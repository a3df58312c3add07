"""An architecture with the inputs that its kernels are of; chains of one closed form."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from tpcalc import checks
from tpcalc.activations.entries.erf import ERF
from tpcalc.activations.entries.exp import EXP
from tpcalc.activations.entries.gaussian import gaussian
from tpcalc.activations.entries.gelu import GELU
from tpcalc.activations.entries.sign import SIGN
from tpcalc.activations.entries.sine import COS, SIN
from tpcalc.activations.entries.step import STEP
from tpcalc.arrays import Array
from tpcalc.engine.chains import Chain, Family, Gram, chain_kernels
from tpcalc.engine.chains_series import Smooth
from tpcalc.engine.chains_tables import PLAIN
from tpcalc.errors import EvaluationError, NotDifferentiable, UsageError
from tpcalc.exponents import Ex
from tpcalc.functions import Atom, Call, Const, Expr, Fn, Var, const
from tpcalc.functions.expr import Add, mul, substitute, walk
from tpcalc.functions.fn import own_derivative, slope_or_none
from tpcalc.functions.form import slopes_of
from tpcalc.functions.numbers import Number
from tpcalc.functions.tape import NumpySpace, Tape, lower, run
from tpcalc.networks.chain import chain_of as layers_of
from tpcalc.networks.network import Architecture, features
from tpcalc.passes.separate import scaled
from tpcalc.passes.starts import started_at_zero
from tpcalc.passes.tangent import tangent_of_network
from tpcalc.passes.template import Template
from tpcalc.program.family import Mark
from tpcalc.program.program import Program
from tpcalc.progress import Progress
from tpcalc.questions.kernel.entries import Entries, Found, Inputs
from tpcalc.registry.values import squared
from tpcalc.results import Method
from tpcalc.training.parameterizations import Parameterization
from tpcalc.training.written import network_program, template_of

HIGHEST = 12  # degree of polynomials whose series is exact
LARGE = 1e75  # numbers whose fourth powers are still floats


@dataclass(frozen=True)
class Network:
    """An architecture with inputs.

    Args:
        architecture: The network.
        exponents: Its parameterization.
        left: The inputs of the rows.
        right: Those of the columns; None: the same.
        layers: The layers that are trained; None: all.
        kinds: Of ``"nngp"``, ``"ntk"``.
        rooms: Arrays that kernels may be written into.
    """

    architecture: Architecture
    exponents: Parameterization
    left: Inputs
    right: Inputs | None
    layers: frozenset[int] | None
    kinds: tuple[str, ...]
    rooms: Mapping[str, Array] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Of the forward program of one input, of several positions as it is written."""
        if isinstance(self.architecture, Hashable):
            return _digest(self.architecture, self.exponents)
        return _started(self.architecture, self.exponents).digest

    @cached_property
    def pair(self) -> Entries:
        """The tangent program of two inputs."""
        return self.entries(2)

    @cached_property
    def single(self) -> Entries:
        """That of one input."""
        return self.entries(1)

    def entries(self, copies: int) -> Entries:
        """The tangent program of some inputs."""
        table = self.exponents.exponents(self.architecture.hidden, 0)

        def rate(mark: Mark) -> tuple[Fraction | float, Ex]:
            return mark.rate, self.exponents.rate(mark, table)

        def trained(mark: Mark) -> bool:
            return self.layers is None or mark.layer in self.layers

        template = _template(self.architecture, self.exponents)
        return Entries(tangent_of_network(template, copies, rate, trained, self.kinds))


def _template(architecture: Architecture, exponents: Parameterization) -> Template:
    """The network with one feature for each token."""
    return template_of(architecture, exponents, architecture.tokens, 1)


@lru_cache(maxsize=64)
def _digest(architecture: Architecture, exponents: Parameterization) -> str:
    """Of the forward program: printing it takes as long as a small kernel."""
    return _started(architecture, exponents).digest


def _started(architecture: Architecture, exponents: Parameterization) -> Program:
    if architecture.tokens > 1:  # cell by cell it is long
        return network_program(architecture, exponents, architecture.tokens, 1)
    template = _template(architecture, exponents)
    return started_at_zero(template.program, template.zeros)


def network(
    architecture: Architecture,
    X: Any,
    X2: Any,
    exponents: Parameterization,
    layers: Sequence[int] | None,
    scale: float | None,
    kinds: Sequence[str],
) -> Network:
    """Check the inputs of a network and split them into tokens.

    Args:
        architecture: The network.
        X: Inputs, of shape (N, d).
        X2: Inputs of the columns, or None.
        exponents: The parameterization.
        layers: The layers that are trained, or None.
        scale: The factor of inner products, or None.
        kinds: Of ``"nngp"``, ``"ntk"``.

    Raises:
        UsageError: They do not fit.
    """
    if X is None:
        raise UsageError(
            "an architecture has a kernel on inputs; X is not given.",
            hint="Give an array of shape (N, d), one row for each input.",
        )
    left = checks.inputs(X, "X")
    right = None if X2 is None else checks.inputs(X2, "X2", left.shape[1])
    size = features(architecture, left.shape[1])
    factor = 1.0 / size if scale is None else float(checks.real(scale, "scale", above=0))
    for name, rows in (("X", left), ("X2", right)):
        if rows is not None:
            _check_range(rows, factor, name)

    def split(rows: Array) -> Inputs:
        return Inputs(rows.reshape(len(rows), -1, size), factor)

    return Network(
        architecture,
        exponents,
        split(left),
        None if right is None else split(right),
        None if layers is None else _layers(layers, architecture.hidden + 1),
        tuple(kinds),
    )


def _check_range(rows: Array, factor: float, name: str) -> None:
    """Inner products of inputs must be numbers whose squares are."""
    sizes = np.abs(rows).max(axis=1, initial=0.0)
    outside = (sizes > 0) & ((sizes > LARGE) | (sizes * factor**0.5 < 1 / LARGE))
    if np.any(outside):
        row = int(np.argmax(outside))
        raise EvaluationError(
            f"row {row} of {name} has numbers of size {sizes[row]:.1e}: its inner products leave "
            "the range of float64.",
            hint="Scale the inputs, or give scale=.",
        )


def _layers(layers: Any, last: int) -> frozenset[int]:
    given, hint = (
        checks.sequence(layers, "layers"),
        f"There are layers 1 to {last}, with the readout.",
    )
    return frozenset(checks.whole(one, "a layer", least=1, most=last, hint=hint) for one in given)


SIMPLE = (
    "gradient independence holds: the readout is centred, independent of everything else and used "
    "once (Tensor Programs II, the simple check)"
)


class Fused(NamedTuple):
    """A chain, and its activation where that is known as a function alone."""

    chain: Chain
    smooth: Smooth | None = None

    @property
    def method(self) -> Method:
        """How its kernels are found."""
        return Method.QUADRATURE if self.smooth and not self.smooth.powers else Method.EXACT

    @property
    def route(self) -> str:
        """The way that they are found on, in words."""
        if self.smooth is None:
            return "fused chain"
        return "tables in the angle" if self.smooth.kinked else "series or tables of each layer"


def chain_of(task: Network) -> Fused | None:
    """The chain that a network is; None where it is none.

    Source: Cho, Saul, Kernel methods for deep learning, section 2; Williams, Computing with
        infinite networks, section 3.1; the recursion of the NTK by Jacot, Gabriel, Hongler,
        Theorem 1.
    """
    if task.layers is not None:
        return None
    known = isinstance(task.architecture, Hashable)
    found = (_known_chain if known else _chain)(task.architecture, task.exponents)
    if found is not None and found.chain.family == "jump":
        every = [inputs.squares.min() for inputs in (task.left, task.right or task.left)]
        if "ntk" in task.kinds or not (found.chain.first_bias or min(every) > 0):
            return None
    return found


def _chain(architecture: Architecture, exponents: Parameterization) -> Fused | None:
    net = layers_of(architecture)
    if net is None or net.activation is None or not _is_ntk(architecture, exponents, net.marks):
        return None
    known = family_of(net.activation) or (None if net.skips else _jump(net.activation))
    name, a, b, shape = known or ("smooth", 1.0, 1.0, PLAIN)
    begin, *hidden, last = ((one.factor, one.shift) for one in net.maps)
    inner = set(hidden) or {begin}
    if last != (1, 0) or len(inner) > 1:
        return None
    first, (weights, biases) = _variances(*begin), _variances(*inner.pop())
    depth, residual = (len(net.maps) - 2, 1.0) if net.skips else (len(net.maps) - 1, None)
    chain = Chain(name, a, b, depth, weights, biases, residual, *first, shape)
    if name != "smooth":
        return Fused(chain)
    smooth = smooth_of(net.activation)
    return None if smooth is None else Fused(chain, smooth)


_known_chain = lru_cache(maxsize=64)(_chain)


def smooth_of(expr: Expr) -> Smooth | None:
    """A function of arrays with its slope, of an activation that has one."""
    from tpcalc.engine.kernels_functions import compiled_space

    try:
        slope = own_derivative(expr, Var(0))  # a series has the slopes of the function itself
    except NotDifferentiable:
        return None
    # whether kinks lie at 0 alone is seen by whether tables settle
    kinks = any(isinstance(part, Call) and part.atom.facts.kinks for part in walk(expr))
    value, bend = (partial(_at, lower(Fn(one, 1)), compiled_space()) for one in (expr, slope))
    return Smooth(value, bend, () if kinks else _powers(expr), kinks)


def _powers(expr: Expr) -> tuple[float, ...]:
    """The coefficients of a polynomial; empty for other functions, and for high degrees."""
    found: list[float] = []
    rest: Expr | None = expr
    while rest is not None and rest != const(0) and len(found) <= HIGHEST:
        start = substitute(rest, {Var(0): const(0)})
        if not isinstance(start, Const):
            return ()
        found.append(float(start.value) / math.factorial(len(found)))
        rest = slope_or_none(rest, Var(0))
    return tuple(found) if rest == const(0) else ()


def _at(tape: Tape, space: NumpySpace, values: Array) -> Array:
    found: Array = run(tape, space, [values])
    return found


def run_chain(fused: Fused, task: Network, threads: int | None, progress: Progress | None) -> Found:
    """The kernels of a chain.

    Source: Jacot, Gabriel, Hongler, Neural Tangent Kernel, Theorem 1.
    """
    left, right, kinds = task.left, task.right, task.kinds
    others = None if right is None else right.rows[:, 0]
    gram = Gram(left.rows[:, 0], others, left.scale)
    asked: dict[str, Any] = {"kinds": kinds, "threads": threads, "progress": progress}
    found = chain_kernels(gram, fused.chain, smooth=fused.smooth, rooms=task.rooms, **asked)
    matrices = {kind: getattr(found, kind) for kind in kinds}
    tangent = "ntk" in kinds
    return Found(
        matrices,
        fused.method,
        found.relative_error,
        found.near_error or None,
        True if tangent else None,
        (SIMPLE,) if tangent else (),
        {"route": fused.route},
    )


def _variances(factor: Number, shift: Number) -> tuple[float, float]:
    """Of the weights of a map, and of its bias, by the factors in front of them."""
    return float(squared(factor)), float(squared(shift))


def _is_ntk(architecture: Architecture, exponents: Parameterization, marks: Sequence[Mark]) -> bool:
    """Whether maps keep sizes, and all is trained at one rate from its full deviation on."""
    table = exponents.exponents(architecture.hidden, 0)
    return not any(table.mean) and all(
        mark.rate == mark.start == 1
        and exponents.power(mark, table) == mark.keeping
        and exponents.rate(mark, table) == Ex()
        for mark in marks
    )


_PLAIN: dict[Atom, Family] = {ERF: "erf", GELU: "gelu"}


def family_of(expr: Expr) -> tuple[Family, float, float, tuple[float, ...]] | None:
    """An activation as a|z| + bz or a f(bz), with what ``Chain.shape`` is."""
    slopes = slopes_of(expr)
    if slopes is not None:
        up, down = slopes
        return "abrelu", (up - down) / 2, (up + down) / 2, PLAIN
    powers = _powers(expr)
    if 0 < len(powers) <= 4:
        return "cubic", 1.0, 1.0, (*powers, *PLAIN[len(powers) :])
    number, rest = scaled(expr)
    return _family_of_call(rest, float(number)) if isinstance(rest, Call) else None


def _family_of_call(rest: Call, a: float) -> tuple[Family, float, float, tuple[float, ...]] | None:
    """Of a function times a number."""
    atom = rest.atom
    slope, start = slope_or_none(rest.arg, Var(0)), substitute(rest.arg, {Var(0): const(0)})
    if slope is None or not isinstance(start, Const):
        return None
    c = float(start.value)
    if isinstance(slope, Const):
        b = float(slope.value)
        if atom in (SIN, COS):
            return "sin", a, b, (math.cos(2 * c) * (1 if atom == SIN else -1), *PLAIN[1:])
        if atom == EXP:
            return "exp", a * math.exp(c), b, PLAIN
        if atom in _PLAIN and c == 0:
            return _PLAIN[atom], a, b, PLAIN
        known: Any = atom.params[0] if atom.params else 1  # the rate, if it is a Gaussian
        if (
            c == 0
            and isinstance(known, int | Fraction)
            and known > 0
            and atom == gaussian(Fraction(known))
        ):
            return "gaussian", a, b * math.sqrt(known), PLAIN
        return None
    rate = substitute(slope, {Var(0): const(Fraction(-1, 2))})  # of exp(c - rate z^2)
    if atom != EXP or slope != mul((const(-2), rate, Var(0))) or not isinstance(rate, Const):
        return None
    positive = rate.value > 0
    if not positive:
        return None
    return "gaussian", a * math.exp(c), math.sqrt(float(rate.value)), PLAIN


def _jump(expr: Expr) -> tuple[Family, float, float, tuple[float, ...]] | None:
    """An activation as a sign(z) + b."""
    a = b = 0.0
    for term in expr.terms if isinstance(expr, Add) else (expr,):
        number, rest = scaled(term)
        if isinstance(rest, Const):
            b += float(number) * float(rest.value)
            continue
        if not isinstance(rest, Call) or rest.atom not in (SIGN, STEP):
            return None
        slope, start = slope_or_none(rest.arg, Var(0)), substitute(rest.arg, {Var(0): const(0)})
        if not isinstance(slope, Const) or start != const(0):
            return None
        half = float(number) * (0.5 if rest.atom == STEP else 1.0)
        a += half * math.copysign(1.0, slope.value)
        b += half if rest.atom == STEP else 0.0
    return ("jump", a, b, PLAIN) if a else None
