"""``likeness``: how alike the first gradients of neighbouring blocks are, by their cosines."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

from tpcalc.errors import EvaluationError, TpcalcError
from tpcalc.evaluate.numbers import numbers
from tpcalc.evaluate.particles.estimate import Budget
from tpcalc.exponents import as_ex
from tpcalc.functions.fn import INNER
from tpcalc.integrals.bounded import Bounded
from tpcalc.limit.context import Record
from tpcalc.limit.derive import graph_of
from tpcalc.limit.graph import Target
from tpcalc.limit.scales import Scales, scales
from tpcalc.passes.block import CARRY, SEED
from tpcalc.passes.step import redrawn
from tpcalc.program.base import input_of, renumbered
from tpcalc.program.nodes import Family, Input, Moment, Ref, Scale
from tpcalc.program.program import Builder
from tpcalc.questions.depth.flow import DEPTH
from tpcalc.questions.depth.found import Found
from tpcalc.questions.depth.generic import Clear, R, in_width
from tpcalc.results import Estimate, Method


def likeness(found: Found) -> dict[str, Estimate]:
    """The cosine of the first gradients in two blocks that differ in what they draw.

    Both see one stream of mean square 1 and one adjoint of it, as blocks next to each other do. A
    gradient is an outer product, and the cosine of two that of their sides; of matrices that
    have several there is none, nor where a power or a number is not known.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, section 8.
    """
    if found.block.shared or found.block.correlated or found.start_alone:
        return {}
    generic = found.stream.generic
    template, (network, _, gradients) = generic.block.template, generic.differentiated
    out = Builder(generic.block.program.dims)
    x = out.add(Input(Family(CARRY, (generic.block.dim,))))
    d = out.add(Input(Family(SEED, (generic.block.dim,))))
    enter = (x, out.add(Scale(d, as_ex(generic.power + 1))))
    ends = dict(zip((template.program.inputs[name] for name in (CARRY, SEED)), enter, strict=True))
    copies = [dict[Ref, Ref](ends) for _ in range(2)]
    for (tag, made), ref in product(enumerate(copies), range(len(network))):
        drawn = input_of(network.node(ref))
        if ref not in made:
            again = tag and drawn is not None and drawn.family.name not in template.zeros
            node = redrawn(network.node(ref), "next") if again else network.node(ref)
            made[ref] = out.add(renumbered(node, made.__getitem__))
    labels = [
        (mark.label, gradients.matrices[ref][0])
        for ref, mark in template.parameters.items()
        if len(gradients.matrices.get(ref, ())) == 1
    ]
    for (label, sides), (one, other) in product(labels, ((0, 0), (0, 1))):
        for side, name in zip(sides, "rc", strict=True):
            pair = (copies[one][side], copies[other][side])
            out.output(f"{name}[{label},{other}]", out.add(Moment(INNER, pair)))
    program = generic.at_start(in_width(out.finish(keep_unused=False)))
    at = found.stream.chamber.point
    derived = scales(program, at=at, depth=DEPTH * R, record=Record(clear=Clear()))
    cosines = ((label, _cosine(derived, label)) for label, _ in labels)
    return {label: cosine for label, cosine in cosines if cosine is not None}


def _cosine(derived: Scales, label: str) -> Estimate | None:
    """The product of the cosines of both sides; None: something is not known."""
    found, sign = Bounded(1.0), derived.context.ranking.chamber.sign
    try:
        for side in "rc":
            (size, own), (power, both) = (_lead(derived, f"{side}[{label},{k}]") for k in (0, 1))
            smaller = power is None or sign(size - power) > 0
            if own is None or (both is None and not smaller):
                return None
            if smaller or both is None:
                return Estimate(0.0, 0.0, Method.EXACT)
            found = found * _number(derived, both) / _number(derived, own)
    except TpcalcError:
        return None
    return found.estimate()


def _lead(derived: Scales, name: str) -> tuple[Any, Any]:
    """The power of an average and the node of its number; of what is at most so large no node."""
    series = derived.series(name)
    if series.terms:
        return series.terms[0]
    powers = [one.power for one in (series.rest, series.soft) if one is not None]
    if None in powers:
        raise EvaluationError(f"{name} is not known.")
    return max(powers, default=None), None  # type: ignore[type-var]


def _number(derived: Scales, node: Any) -> Bounded:
    graph = graph_of(derived.context, (("", Target(Fraction(0), node)),))
    found = numbers(graph, "auto", Budget(2**12, 8), 0).found[""][0]
    return Bounded(found.value, found.stderr, found.method)
