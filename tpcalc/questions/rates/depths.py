"""Learning rates of a network whose depth L is a symbol.

One hidden layer is derived with powers of n coming in from both sides as symbols. If no comparison
is made on the way, the powers going out are the same polynomials at every layer: a first-order
recurrence, which is solved in closed form.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tpcalc import checks
from tpcalc.errors import NotDifferentiable, ScaleError, StudyError, UsageError
from tpcalc.exponents import Ex, as_ex
from tpcalc.exponents.chamber import Chamber, Region
from tpcalc.functions import Fn, Var
from tpcalc.functions.expr import substitute
from tpcalc.functions.fn import derivative
from tpcalc.limit.scales import Unsolved, scales
from tpcalc.limit.series import NeedsMore
from tpcalc.networks.architectures.mlp import MLP
from tpcalc.networks.chain import Chain, chain_of
from tpcalc.program.nodes import Family, Input, LinComb, MatMul, Moment, Nonlin, Ref, Scale
from tpcalc.program.program import Builder, Program
from tpcalc.questions.rates.unknowns import ASSUMED, SYMBOLIC, Rates, Run, sample_point
from tpcalc.results import Solution
from tpcalc.results.tables import provenance

DEPTHS = (2, 3, 4, 5)
HALF = Fraction(1, 2)
# Powers that come into a layer, that of h^L, and those that are solved for.
E, B, TOP, RATE, FINAL = "e_in__", "b_in__", "e_top__", "c_rate__", "c_final__"
SAMPLE = {E: Fraction(-5, 11), B: Fraction(-7, 9)}
AGREES = (
    "the powers of step 0 follow by induction over the layers: what a layer does to powers of n "
    "was derived with symbols for those that come in, without a comparison; derivations at L = "
    f"{', '.join(map(str, DEPTHS))} give the same"
)


@dataclass(frozen=True)
class _Weights:
    """The powers a_1, a_l = a of hidden layers and a_(L+1)."""

    first: Ex
    hidden: Ex
    last: Ex


@dataclass(frozen=True)
class _Layer:
    """What a hidden layer does to powers of n, with h^l of size n^e."""

    program: Program  # where it was read off
    forward: Ex  # the power of h^(l+1)
    backward: Ex  # the power of the gradient of h^l, with that of h^(l+1) of size n^b
    last: Ex  # the power of the gradient of h^L
    rate: Ex  # the power c_(l+1), with the gradient of h^(l+1) of size n^b
    final: Ex  # the power c_(L+1)

    @property
    def growth(self) -> Ex:
        """The factor p in e_(l+1) = p e_l + w."""
        return self.forward.put({E: as_ex(1)}) - self.shift

    @property
    def shift(self) -> Ex:
        """The term w in it."""
        return self.forward.put({E: as_ex(0)})


def in_depth(run: Run, at: Mapping[str, object] | None, started: float) -> Solution:
    """The learning rates at step 0 as formulas in L, checked against those at L = 2, ..., 5.

    Let h^l be of size n^(e_l) and its gradient n^(d_l) at the start. The derived layer gives
    e_(l+1) as a function of e_l, which is solved for e_l, and d_l + e_l = d_(l+1) + e_(l+1): the
    sum is the same at all layers. What the update of layer l contributes is a product of n^(d_l),
    of the size of x^(l-1) at the start, and of an x^(l-1) at the next step, which is of order one
    as the layers below contribute so much.

    Source: Hajjar, Chizat, Giraud, Definition 3.2, Lemmas F.2 to F.4 and H.4.
    """
    chain = _layers(run)
    weights = _weights(run, chain)
    small = _at_depth(run, chain, DEPTHS[0])
    program = small.program()
    known = sample_point(small, program, {}).keys()
    point = sample_point(small, program, checks.powers(at, known))
    layer = _layer(chain, weights, point)
    chamber = Chamber(point)
    _premises(chamber, weights, layer)
    closed = _closed(weights, layer)
    found = {depth: _derived(_at_depth(run, chain, depth), depth, point) for depth in DEPTHS}
    for depth, rates in found.items():
        _check(closed, depth, rates)
    formulas = [(name, str(formula)) for name, formula in closed.items()]
    formulas += _limits(closed, layer.growth)
    notes = [AGREES, ASSUMED, SYMBOLIC]
    for step in range(1, run.steps):
        row = _read_off(found, step)
        formulas += row
        notes.append(
            f"the powers of step {step} are those of the same derivations, not proved at all depths"
            if row
            else f"the powers of step {step} differ from depth to depth"
        )
    if "p" in point:
        notes.append("relu^p is followed for p >= 1: below that it has no gradient at 0")
    if chain.biased:
        notes.append("the bias of the first layer takes c_1")
    return Solution(
        (),
        _joined(chamber.region, found.values() if run.steps > 1 else ()),
        tuple((name, str(value)) for name, value in sorted(point.items())),
        tuple(formulas),
        provenance(
            layer.program.digest,
            None,
            run.settings,
            time.perf_counter() - started,
        ),
        tuple(notes),
    )


def _weights(run: Run, chain: Chain) -> _Weights:
    """The powers a_l of the three kinds of layers."""
    if run.solved_for == "multipliers":
        raise UsageError(
            "multipliers of a network of symbolic depth are not solved for.",
            hint="Ask for them at some depth; they are the same at every depth.",
        )
    found: set[_Weights] = set()
    for depth in DEPTHS:
        try:
            table = run.parameterization.exponents(depth, 0)
        except StudyError as error:
            raise _uneven(run) from error
        hidden = set(table.a[1:-1])
        if len(hidden) > 1 or any(table.mean):
            raise _uneven(run)
        if chain.biased and table.bias_a[0] != table.a[0]:
            raise _uneven(run)
        found.add(_Weights(table.a[0], hidden.pop(), table.a[-1]))
    if len(found) > 1:
        raise _uneven(run)
    (weights,) = found
    if any("L" in power.symbols for power in (weights.first, weights.hidden, weights.last)):
        raise UsageError("a power of the weights is called 'L', as the depth is.")
    return weights


def _uneven(run: Run) -> UsageError:
    return UsageError(
        f"the weights of {run.parameterization.text} are not centred ones with the powers a_1, a, "
        "..., a, a_(L+1) at every depth.",
        hint="Where the depth is a symbol, give three powers (first, hidden, last).",
    )


def _layer(chain: Chain, weights: _Weights, point: Mapping[str, Fraction]) -> _Layer:
    """Derive one hidden layer."""
    program = _layer_program(chain, weights)
    try:
        found = scales(program, at={**SAMPLE, **point}, unknowns={"rate": RATE, "final": FINAL})
        powers = {name: found.scale(name) for name in ("forward", "backward", "last")}
    except Unsolved as error:
        raise ScaleError(
            f"with {_name(chain)} no learning rate is known to move a hidden layer by order one "
            "at every depth.",
            where="a hidden layer",
            hint="Ask at some depth to see which layer it is, and why.",
        ) from error
    except NeedsMore:
        raise _not_uniform(chain) from None
    if found.region.lines or any(size.bound or size.power is None for size in powers.values()):
        raise _not_uniform(chain)
    exponents = {name: as_ex(size.power or Fraction(0)) for name, size in powers.items()}
    layer = _Layer(program, **exponents, rate=found.solved[RATE], final=found.solved[FINAL])
    e, b = Ex.symbol(E), Ex.symbol(B)
    linear = layer.growth * e + layer.shift == layer.forward
    if not linear or layer.backward + e != b + layer.forward:
        raise _not_uniform(chain)
    return layer


def _name(chain: Chain) -> str:
    return "" if chain.activation is None else chain.activation.text


def _not_uniform(chain: Chain) -> ScaleError:
    return ScaleError(
        f"uniform pattern not proved: what a layer with {_name(chain)} does to powers of n "
        "depends on the powers that come in.",
        where="a hidden layer",
        hint="Take an activation with a degree of homogeneity (relu, relu^2), or give the depth.",
    )


def _layer_program(chain: Chain, weights: _Weights) -> Program:
    """A hidden layer between powers of n that are symbols.

    Its update acts on x^l at the next step, where h^l is led by an update too: a gradient.
    """
    builder = Builder()

    def start(name: str) -> Ref:
        return builder.add(Input(Family.group(name, "n", (Fraction(0),))))

    def sized(ref: Ref, power: Ex) -> Ref:
        return builder.add(Scale(ref, power))

    function = chain.activation
    assert function is not None  # of plain ones
    act = Fn(function, 1)
    try:
        inner = substitute(derivative(function, Var(0)), {Var(0): Var(1)})
    except NotDifferentiable as error:
        raise ScaleError(error.message, where="the activation", hint=error.hint) from error
    slope = Fn(Var(0) * inner, 2)
    g, u, v = start("g"), start("u"), start("v")
    matrix = builder.add(Input(Family("W", ("n", "n"))))
    h = sized(g, Ex.symbol(E))
    x = builder.add(Nonlin(act, (h,)))
    builder.output("forward", sized(builder.add(MatMul(matrix, x)), -weights.hidden))
    gradient = sized(u, Ex.symbol(B))
    back = sized(builder.add(MatMul(matrix, gradient, True)), -weights.hidden)
    builder.output("backward", builder.add(Nonlin(slope, (back, h))))
    builder.output("last", builder.add(Nonlin(slope, (sized(u, -weights.last), h))))
    later = builder.add(Nonlin(act, (builder.add(Nonlin(slope, (v, g))),)))
    overlap = builder.add(Moment(Fn(Var(0) * Var(1), 2), (x, later)))
    update = builder.add(LinComb((Fraction(1),), (overlap,), (gradient,)))
    builder.output("rate", sized(update, 1 - 2 * weights.hidden - Ex.symbol(RATE)))
    builder.output("final", sized(overlap, 1 - 2 * weights.last - Ex.symbol(FINAL)))
    return builder.finish()


def _premises(chamber: Chamber, weights: _Weights, layer: _Layer) -> None:
    """What makes h^l and f at most of order one at every depth, by induction over the layers.

    With e_1 = -a_1 <= 0, p > 0 and w <= 0 every e_(l+1) = p e_l + w is at most 0, and f_0, of the
    power p e_L + 1/2 - a_(L+1), is if a_(L+1) >= 1/2; so the loss has a derivative of order one.
    By the same w <= 0 the weights of the start add at most order one to h^l at the next step.
    """
    for power, what in (
        (weights.first, "a_1 >= 0"),
        (-layer.shift, "a_l >= 1/2 for l = 2..L"),
        (weights.last - HALF, "a_(L+1) >= 1/2"),
    ):
        if chamber.sign(power.constant if power.constant is not None else power) < 0:
            raise ScaleError(
                f"uniform pattern not proved: it takes {what}, and {power} is negative"
                f"{' at the sample point' if power.symbols else ''}.",
                where="the powers of the weights",
                hint="With such weights something explodes or may explode; give the depth.",
            )
    growth = layer.growth
    if chamber.sign(growth.constant if growth.constant is not None else growth) <= 0:
        raise ScaleError(
            f"uniform pattern not proved: the degree {growth} of the activation is not positive.",
            hint="Take a sample point with p >= 1.",
        )


def _closed(weights: _Weights, layer: _Layer) -> dict[str, Any]:
    """The learning rates at step 0 as sympy expressions in L."""
    import sympy

    top = Ex.symbol(TOP)
    last = layer.last.put({E: top})
    # d_l + e_l is the same at all layers, so that of h^l is known from h^L.
    first = last + top - (-weights.first) - 2 * weights.first
    inner = layer.rate.put({B: last + top - layer.forward})
    if E in inner.symbols:
        raise ScaleError("uniform pattern not proved: the rates of hidden layers differ.")
    depth = sympy.Symbol("L", integer=True, positive=True)
    growth, shift, start = (_sympy(ex) for ex in (layer.growth, layer.shift, -weights.first))
    powers = _recurrence(growth, shift, start, depth)
    rates = {"c_1(0)": first, "c_l(0)": inner, "c_{L+1}(0)": layer.final.put({E: top})}
    return {
        name: sympy.factor(sympy.together(_sympy(rate).subs(sympy.Symbol(TOP), powers)))
        for name, rate in rates.items()
    }


def _recurrence(growth: Any, shift: Any, start: Any, depth: Any) -> Any:
    """The y(L) with y(l + 1) = growth y(l) + shift and y(1) = start."""
    if growth == 1:
        return start + (depth - 1) * shift
    power = growth**depth / growth
    return power * start + shift * (power - 1) / (growth - 1)


def _sympy(power: Ex) -> Any:
    import sympy

    return sympy.Add(
        *(
            sympy.Rational(number.numerator, number.denominator)
            * sympy.prod(sympy.Symbol(name) ** degree for name, degree in monomial)
            for monomial, number in power.terms
        )
    )


def _layers(run: Run) -> Chain:
    """The layers of the network, which are all alike."""
    chain = chain_of(run.network)
    if chain is not None and not chain.skips and None in chain.functions:
        raise UsageError(
            "normalised layers are not followed where the depth is a symbol.",
            hint="Give the depth.",
        )
    if chain is None or not chain.plain:
        raise UsageError(
            "the depth is a symbol of fully connected networks with one activation, and this is "
            f"{run.network.words}.",
            hint="Give the depth.",
        )
    if max(chain.biased, default=1) > 1:
        raise UsageError(
            "biases in all layers keep the sizes of deep layers from following one rule.",
            hint="Take bias='none' or bias='first' where the depth is a symbol.",
        )
    return chain


def _at_depth(run: Run, chain: Chain, depth: int) -> Run:
    """The run at another depth; constant factors of layers change no power."""
    function = chain.activation
    assert function is not None  # of plain ones
    network = MLP(
        depth,
        lambda z: substitute(function, {Var(0): z}),
        "first" if chain.biased else "none",
    )
    return run.of(network)


def _derived(run: Run, depth: int, point: Mapping[str, Fraction]) -> Rates:
    try:
        return run.derive(run.program(), point)
    except ScaleError as error:
        message = f"no formula in L, as at L = {depth} {error.message}"
        raise ScaleError(message, where=error.where, hint=error.hint) from error


def _check(closed: Mapping[str, Any], depth: int, rates: Rates) -> None:
    """Compare the formulas with a derivation at some depth, as polynomials."""
    import sympy

    first, *hidden, last = (c for c in rates.weights(0).values() if c is not None)
    symbol = sympy.Symbol("L", integer=True, positive=True)
    for name, values in zip(closed, ((first,), hidden, (last,)), strict=True):
        for value in dict.fromkeys(values):
            if sympy.cancel(closed[name].subs(symbol, depth) - _sympy(value)) != 0:
                raise ScaleError(
                    f"uniform pattern not proved: {name} would be {closed[name]}, but the "
                    f"derivation at L = {depth} gives {value}.",
                    hint="Give the depth.",
                )


def _limits(closed: Mapping[str, Any], growth: Ex) -> Iterator[tuple[str, str]]:
    """The formulas at p -> 1, where the power of the activation is a symbol."""
    import sympy

    (name, *others) = sorted(growth.symbols) or ("",)
    if others or not name or growth != Ex.symbol(name):
        return
    for rate, formula in closed.items():
        found = sympy.limit(formula, sympy.Symbol(name), 1)
        yield f"{rate}, {name} -> 1", str(sympy.factor(found))


def _read_off(found: Mapping[int, Rates], step: int) -> list[tuple[str, str]]:
    """The powers of a later step, where those at all depths are the same; else nothing."""
    rows = set()
    for rates in found.values():
        first, *hidden, last = (c for c in rates.weights(step).values() if c is not None)
        rows.add((first, *dict.fromkeys(hidden), last))
    row = rows.pop()
    if rows or len(row) != 3:
        return []
    names = (f"c_1({step})", f"c_l({step})", f"c_{{L+1}}({step})")
    return list(zip(names, map(str, row), strict=True))


def _joined(premises: Region, found: Iterable[Rates]) -> tuple[str, ...]:
    """The premises and what derivations take beyond them."""
    lowest: dict[str, Ex | Fraction] = {}
    for g in premises.positive:  # symbol - least > 0
        least = -g.put(dict.fromkeys(g.symbols, Fraction(0)))
        for name in g.symbols:
            if g == Ex.symbol(name) - least:
                lowest[name] = Ex.symbol(name) + least
    lines = dict.fromkeys(premises.lines)
    for rates in found:
        region = rates.found.region
        beyond = tuple(g for g in region.positive if not _follows(g, lowest))
        lines.update(dict.fromkeys(Region(beyond, region.zero).lines))
    return tuple(lines)


def _follows(positive: Ex, lowest: Mapping[str, Ex | Fraction]) -> bool:
    """Whether g > 0 as all its symbols are above their lowest values."""
    above = positive.put(lowest)
    return positive.symbols <= lowest.keys() and all(number > 0 for _, number in above.terms)
