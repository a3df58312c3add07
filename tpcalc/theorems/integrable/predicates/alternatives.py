"""Theorems 5.1 and 5.2: integrable parameterizations with means of weights, and with biases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial

from tpcalc.dsl import extend
from tpcalc.dsl.powers import n
from tpcalc.dsl.tracer import Tracer, mean
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import TpcalcError
from tpcalc.evaluate.limit import limit
from tpcalc.evaluate.settle import settle
from tpcalc.limit.context import Claim as Assumed
from tpcalc.limit.context import Context
from tpcalc.limit.derive import derive
from tpcalc.limit.graph import LimitGraph, LRef, is_drawn
from tpcalc.names import layered, stepped
from tpcalc.program.base import Table, reached, references
from tpcalc.program.nodes import LinComb, Nonlin
from tpcalc.program.program import restricted
from tpcalc.results import Claim, Hypothesis, Samples
from tpcalc.theorems.integrable.predicates.case import Case
from tpcalc.theorems.integrable.predicates.claims import Size, bounds, vanishing
from tpcalc.theorems.integrable.predicates.setting import (
    continuous_loss,
    hidden_layers,
    named,
    smooth,
)
from tpcalc.theorems.integrable.predicates.statement import theorem
from tpcalc.training.generic import far_query

Z = 5.0
SHARP = 1e-3  # a variance that is known to this part of E Z^2 is called 0 where it may be
SMALL = 1e-9  # what rounding leaves of a variance
SAMPLES = 2**12


def is_non_centered(case: Case) -> Hypothesis:
    """The tables of Naive-IP, with means of the initial weights above the first layer.

    Source: Hajjar, Chizat, Giraud, section 5.1.
    """
    means = tuple(case.exponents(0).mean[1:])
    if not means or 0 in means:
        text = "the parameterization is ip-non-centered, all means above layer 1 other than 0"
        found = "a mean is 0" if any(means) else "the initial weights are centred"
        return Hypothesis(text, False, f"{case.run.parameterization.text}: {found}")
    if len(means) == 2 and case.depth != 2:
        means = (means[0],) * (case.depth - 1) + means[1:]
    return named(case, "ip-non-centered", u=means)


@theorem(
    "IP-non-centered: the layers 2 to L - 1 are constants, updates of 3 to L - 1 collapse",
    "Theorems 5.1 and K.2",
    (is_non_centered, partial(hidden_layers, least=3), continuous_loss),
    smoothness=smooth,
    notes=lambda case: (
        ("with L = 3 no layer is left whose updates would collapse",) if case.depth == 3 else ()
    ),
    about=lambda case: is_non_centered(case).met,
)
def collapse(case: Case) -> Iterator[Claim]:
    """Whether hidden layers of IP-non-centered are constants: one number for all coordinates.

    That is so of h_t^l and x_t^l and of their gradients for the layers 2 to L - 1; all entries of
    w^l(t) - w^l(0) tend to one number for the layers 3 to L - 1. (The print says so of W^l, whose
    entries are of size 1/n.)

    Returns:
        The answer; each claim is about a layer, beside what the limit gives.

    Source: Hajjar, Chizat, Giraud, Theorems 5.1 and K.2.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = collapse(MLP(4, "gelu", bias="all"), "ip-non-centered:1")
        >>> found.answer, found.differs
        ('holds', False)
        >>> [claim.text for claim in found.claims if "w^l" in claim.text]
        ['layer 3: entries of w^l(t) - w^l(0), t <= 2']
    """
    stated = "one number for all coordinates"
    groups = _groups(case)
    if not case.limits:
        yield from (Claim(text, stated, "") for text in groups)
        return
    names = dict.fromkeys(name for group in groups.values() for name in group)
    try:
        found = _Limits(case)
        rest = [name for name in names if not found.constant(name)]
        variances = found.variances(rest) if rest else {}
    except TpcalcError as error:
        yield from (Claim(text, stated, f"not computed: {error.message}") for text in groups)
        return
    for text, group in groups.items():
        numbers = [variances[name] for name in group if name in variances]
        if numbers:
            yield Claim(text, stated, *_largest(numbers))
        else:
            shown = ", as far as particles tell what it rests on" if found.claims else ""
            yield Claim(text, stated, f"a constant, by the form of the limit{shown}", True)


def _groups(case: Case) -> dict[str, list[str]]:
    """What is to be constant, with the vectors that it is made of."""
    q, steps, depth = case.run.batch, range(case.run.steps + 1), case.depth
    found: dict[str, list[str]] = {}
    until = f"t <= {case.run.steps}"
    for layer in range(2, depth):
        forward = [layered(v, layer, t, q) for t in steps for v in ("h", "x")]
        backward = [layered(v, layer, t, 0) for t in steps for v in ("dh", "dx")]
        found[f"layer {layer}: h_t and x_t, {until}"] = forward
        found[f"layer {layer}: n dh_t and n dx_t, {until}"] = backward
    found[f"layer {depth}: h_0"] = [layered("h", depth, 0, q)]
    for layer in range(3, depth):
        names = [layered("dh", layer, t, 0) for t in steps[:-1]]
        names += [layered("x", layer - 1, t, 0) for t in steps[:-1]]
        found[f"layer {layer}: entries of w^l(t) - w^l(0), {until}"] = names
    return found


class _Limits:
    """The limit of the training run, by its graph and, where that leaves it open, by numbers."""

    def __init__(self, case: Case) -> None:
        self.program = case.trained(case.run.steps, ("h", "x", "dh", "dx"))
        self.claims: set[Assumed] = set()
        self.graph = derive(self.program, trial=self._tested)
        self.targets = dict(self.graph.targets)

    def _tested(self, context: Context, claims: Iterable[Assumed]) -> bool:
        """Test what the form of the limit does not show, and keep it."""
        found = list(claims)
        self.claims.update(found)
        return settle(context, found, 0)

    def constant(self, name: str) -> bool:
        """Whether a vector is a constant by the form of its limit, its power of n as it should be.

        A gradient is of order 1/n: a smaller one is 0 after multiplication by n.
        """
        target = self.targets[name]
        size = Fraction(-1) if name.startswith("d") else Fraction(0)
        if target.node is None or target.power < size:
            return True
        return target.power == size and _is_constant(self.graph, target.node)

    def variances(self, names: Sequence[str]) -> dict[str, tuple[float, float]]:
        """Variances relative to E Z^2, with their errors, from numbers; 0 for what is 0 itself."""

        def more(t: Tracer) -> None:
            for name in names:
                z = t[name] * n if name.startswith("d") else t[name]
                assert isinstance(z, Vector)
                apart = z - mean(z)
                t.output(f"variance of {name}", t.inner(apart, apart))
                t.output(f"square of {name}", t.inner(z, z))

        program = extend(self.program, more)
        asked = (name for name, _ in program.outputs if " of " in name)
        found = limit(restricted(program, asked), samples=SAMPLES)
        variances = {}
        for name in names:
            variance, square = found[f"variance of {name}"], found[f"square of {name}"]
            zero = square.value <= Z * square.stderr
            size = 1.0 if zero else square.value
            variances[name] = (
                (0.0, 0.0) if zero else (variance.value / size, variance.stderr / size)
            )
        return variances


def _largest(numbers: Sequence[tuple[float, float]]) -> tuple[str, bool | None]:
    """The largest of some relative variances in words, and whether all may be 0."""
    worst, error = max(numbers)
    text = f"relative variance {worst:.1e} +- {error:.1e} (particles)"
    if any(part > Z * spread + SMALL for part, spread in numbers):
        return text, False
    return text, True if all(spread <= SHARP for _, spread in numbers) else None


def _is_constant(graph: LimitGraph, ref: LRef) -> bool:
    """Whether a variable is made of no Gaussian, and of no scalar that is random."""

    def parts(one: LRef) -> tuple[LRef, ...] | None:
        return () if graph.vector_dim[one] is None else _PARTS(graph.nodes[one])

    made = reached([ref], lambda one: parts(one) or ())
    scalars = (one for one in made if graph.vector_dim[one] is None)
    gaussian = any(parts(one) is None for one in made)
    return not gaussian and not any(_is_random(graph, one) for one in scalars)


def _arguments(node: Nonlin) -> tuple[LRef, ...]:
    used = node.fn.uses[0]
    return *(other for index, other in enumerate(node.vectors) if index in used), *node.scalars


# What a vector is made of; None where that is a Gaussian.
_PARTS: Table[tuple[LRef, ...] | None] = Table(
    {Nonlin: _arguments, LinComb: references}, lambda node: None
)


def _is_random(graph: LimitGraph, ref: LRef) -> bool:
    """Whether a scalar rests on a random one."""
    made = reached([ref], lambda one: references(graph.nodes[one]))
    return any(is_drawn(graph.nodes[one]) for one in made)


is_ip_bias = partial(named, name="ip-bias")  # the tables of section 5.2


def _all_biases(case: Case) -> Hypothesis:
    return Hypothesis("biases in all layers", case.bias == "all", case.bias)


@theorem(
    "IP-bias: h_0 above layer 1, f_0 and the first updates above layer 2 do not feel the data",
    "Theorems 5.2 and K.1",
    (is_ip_bias, _all_biases, partial(hidden_layers, least=2), continuous_loss),
    smoothness=smooth,
    notes=lambda case: (
        "the two training inputs have the same target; what depends on x_1 itself depends on "
        "the data weakly, and is not meant",
    ),
    about=lambda case: case.bias != "none" and is_ip_bias(case).met,
)
def weak_data_dependence(case: Case) -> Iterator[Claim]:
    """Whether the start and first updates of IP-bias depend on the data, above its first layers.

    The limits of h_0^l and x_0^l for l >= 2 and of f_0 do not depend on the input; those of the
    first updates of the layers 3 to L + 1, applied to a vector that does not depend on the first
    training input, do not depend on it either.

    Returns:
        The answer; each claim is the difference between two inputs of one network.

    Source: Hajjar, Chizat, Giraud, Theorems 5.2 and K.1.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = weak_data_dependence(MLP(3, "tanh", bias="all"), "ip-bias")
        >>> found.answer, found.differs
        ('holds', False)
        >>> found = weak_data_dependence(MLP(3, "tanh"), "ip-bias", derive=False)
        >>> found.answer, [each.text for each in found.missing]
        ('outside', ['biases in all layers'])
    """
    depth = case.depth
    found = _differences(case) if case.limits else {}

    def part(name: str) -> dict[str, Size]:
        return {name: found[name]} if name in found else {}

    for layer in range(2, depth + 1):
        yield vanishing(f"layer {layer}: h_0 at one input less that at another", part(f"h{layer}"))
    yield vanishing("f_0 at one input less that at another", part("f"))
    for layer in range(2, depth + 2):
        where = "the output" if layer > depth else f"layer {layer}"
        text = f"{where}: first update by one training input less that by another"
        stated = "tends to 0" if layer > 2 else ""
        yield vanishing(text, part(f"W{layer}"), stated)


def _differences(case: Case) -> dict[str, Size]:
    """Differences between two inputs of one network, as orders: h_0, f_0 and first updates.

    The update of layer l by the input i, over eta chi, is n^(-(2 a_l + c_l)) dh_i^l x_i^(l-1)^T;
    it is applied to the features of a third input.
    """
    row, depth = case.exponents(0), case.depth
    first, target = case.samples.inputs[0], case.samples.targets[0]
    both = Samples((first, far_query(Samples((first,), (target,)))), (target, target))
    run = case.run.replace(data=both, steps=0, batch=2, queries=[far_query(both)])
    program = run.replace(watch=("h", "x", "dh")).program
    names = ["f", *(f"h{layer}" for layer in range(2, depth + 1))]
    names += [f"W{layer}" for layer in range(2, depth + 2)]

    def more(t: Tracer) -> None:
        t.output("f", t[stepped("f", 0, 0)] - t[stepped("f", 0, 1)])
        for layer in range(2, depth + 2):
            power = 1 - 2 * row.a[layer - 1] - row.c[layer - 1]
            first, second, x = (_vector(t, layered("x", layer - 1, 0, i)) for i in (0, 1, 2))
            products = (t.inner(first, x), t.inner(second, x))
            if layer > depth:
                t.output(f"W{layer}", n**power * (products[0] - products[1]))
                continue
            t.output(f"h{layer}", t[layered("h", layer, 0, 0)] - t[layered("h", layer, 0, 1)])
            updates = [products[i] * t[layered("dh", layer, 0, i)] for i in (0, 1)]
            t.output(f"W{layer}", n**power * (updates[0] - updates[1]))

    return bounds(extend(program, more), names)


def _vector(t: Tracer, name: str) -> Vector:
    found = t[name]
    assert isinstance(found, Vector)  # features are
    return found
