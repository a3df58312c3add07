"""Changes of vectors along a change of what they are computed from, by the backward pass twice.

With probes v_l the gradient of sum_l <v_l, y_l> by x is sum_l J_l^T v_l, which is linear in the
probes: the gradient of its inner product with u by v_l is J_l u. So the rules of the backward pass
are those of derivatives forward as well, and what the probes touched is not part of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpcalc.exponents import as_ex
from tpcalc.functions import Fn, Par
from tpcalc.functions.expr import add, const, mul
from tpcalc.functions.fn import INNER
from tpcalc.passes.backward import backward
from tpcalc.program.nodes import Family, Input, Moment, Nonlin, Ref, Scale
from tpcalc.program.program import Builder

PROBE = "<probe>"


def changes(builder: Builder, along: Mapping[Ref, Ref], watched: Iterable[Ref]) -> dict[Ref, Ref]:
    """The derivative of vectors along a change of others."""
    probes: dict[Ref, Ref] = {}
    for ref in watched:
        family = Family(f"{PROBE}{ref}", builder.type(ref).width)
        probes.setdefault(ref, builder.add(Input(family)))
    back = backward(builder, [(_inner(builder, probes.items()), None)], list(along))
    pairs = [(back.adjoints[ref], to) for ref, to in along.items() if ref in back.adjoints]
    if not pairs:
        return {}
    forth = backward(builder, [(_inner(builder, pairs), None)], list(probes.values()))
    return {ref: forth.adjoints[own] for ref, own in probes.items() if own in forth.adjoints}


def _inner(builder: Builder, pairs: Iterable[tuple[Ref, Ref]]) -> Ref:
    """The sum of inner products over all coordinates."""
    parts, terms = [], []
    for place, (left, right) in enumerate(pairs):
        dim = builder.dim_of(builder.type(left).width[0])
        parts.append(builder.add(Moment(INNER, (left, right))))
        terms.append(mul((const(dim.ratio), Par(place))))
    total = builder.add(Nonlin(Fn(add(terms), 0, len(parts)), (), tuple(parts)))
    return builder.add(Scale(total, as_ex(1)))
