"""``initial_weights``: what the initial matrices still add to the vectors of a training run."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Unpack

from tpcalc.dsl import filled
from tpcalc.exponents import Ex, as_ex
from tpcalc.names import Name, cell_name
from tpcalc.passes.as_blocks import SOME, is_read_as_blocks
from tpcalc.passes.split import check_size, split
from tpcalc.program.base import Table, lincomb_of, matmul_of, matrix_of, the_matmul
from tpcalc.program.nodes import Kind, LinComb, MatMul, Ref, Scale
from tpcalc.program.program import Builder, Program
from tpcalc.questions.dependence.names import side
from tpcalc.questions.dependence.reading import Reading
from tpcalc.questions.orders import Order, Sizing, width_orders
from tpcalc.results import ZERO, Exponent
from tpcalc.results.dependencies import InitialWeightRow, InitialWeightTable
from tpcalc.results.tables import provenance

Factor = tuple[Fraction | float, Ref | None, tuple[str, ...]]
NOT_FOLLOWED = "the size of {name} is not known exactly: {reason}"


@dataclass(frozen=True, slots=True)
class _Term:
    """A product as a term of an output: n**power times numbers and scalars times the product."""

    product: Ref
    power: Ex
    factors: tuple[Factor, ...]


def initial_weights(program: object, **asked: Unpack[Sizing]) -> InitialWeightTable:
    """Whether what the initial matrices add to each vector vanishes in the limit.

    In a trained network h = W_t x is W_0 x and a sum over the updates. A row is one such term
    W_0 x (or W_0^T dh) with its size beside the whole vector: n^(-1/2) in the integrable
    parameterizations for t >= 1, 1 in muP. What vanishes by a power of n does so because the
    product has a finite second moment, which the row certifies: its normalised limit is bounded by
    a polynomial of Gaussians of finite variance.

    Args:
        program: A program, such as ``tp.train`` makes; its vector outputs (``h`` and ``dx`` of
            ``watch``) are searched for products with random matrices.
        asked: As ``tp.orders`` takes it: values, at (signs of exponents are read off there),
            budget, verify, seed, reading.

    Returns:
        One row for each product in each vector; ``print`` shows a table.

    Raises:
        ScaleError: A symbol without a value, or a function without a known order where it is asked.
        ProgramError: Blocks have too many cells to look at one by one.
        UsageError: Arguments that make no sense.

    Source: Hajjar, Chizat, Giraud, Lemma L.1 and Theorem L.9.

    Example:
        >>> import tpcalc as tp
        >>> data = tp.Samples(((1.0, 0.5),), ((1.0,),))
        >>> net = tp.MLP(2, "relu", bias="first")
        >>> found = initial_weights(tp.train(net, "ip-llr", data, watch=("h", "x")))
        >>> [(row.name, str(row.n), row.vanishes) for row in found.rows]
        [('W2 x[1,0,0]', '0', False), ('W2 x[1,1,0]', '-1/2', True)]
    """
    started = time.perf_counter()
    reading, seed = asked.get("reading", "auto"), asked.get("seed", 0)
    source = filled(program, reading)
    check_size(source)
    source = source if is_read_as_blocks(source, reading, SOME) else split(source)
    builder = Builder.copy(source)
    terms: dict[str, tuple[str, _Term]] = {}
    for name, ref in _vectors(source):
        for number, term in enumerate(_terms(source, ref)):
            label = f"term {number} of {name}"
            own = _node(builder, term)
            builder.output(label, own)
            axes = builder.type(own).axes
            for cell in product(*(range(size) for _, size in axes)):
                terms[cell_name(label, cell)] = (cell_name(name, cell), term)
    found = width_orders(builder.finish(), **asked)
    read = Reading(found, verify=False, seed=seed)
    rows = tuple(
        _row(read, source, label, *pair)
        for label, pair in terms.items()
        if not (source.has_blocks and found[label].zero)  # cell by cell it is no term
    )
    settings = {"verify": str(asked.get("verify", True))}
    made = provenance(source.digest, seed, settings, time.perf_counter() - started)
    return InitialWeightTable(rows, made, found.region.lines)


def _vectors(program: Program) -> list[tuple[str, Ref]]:
    """The vector outputs, each node once."""
    names = {ref: name for name, ref in reversed(program.outputs)}
    nodes = dict.fromkeys(ref for _, ref in program.outputs)
    return [(names[ref], ref) for ref in nodes if program.types[ref].kind is Kind.VECTOR]


def _terms(program: Program, root: Ref) -> list[_Term]:
    """The products with matrices that a vector is a linear combination of.

    Sums and powers of n are opened, other outputs are not: what they hold is theirs.
    """
    named = {ref for _, ref in program.outputs} - {root}
    out: list[_Term] = []
    stack: list[_Term] = [_Term(root, as_ex(0), ())]
    while stack:
        top = stack.pop()
        node = program.nodes[top.product]
        if matmul_of(node) is not None:
            out.append(top)
        elif top.product not in named:
            stack += _OPENED(node, top)
    return out


def _summands(node: LinComb, whole: _Term) -> Iterator[_Term]:
    """The last one first."""
    parts = node.terms
    for number, scalar, vector, axes in reversed([part for part in parts if part[0] != 0]):
        plain = number == 1 and scalar is None and not axes
        factors = whole.factors if plain else ((number, scalar, axes), *whole.factors)
        yield _Term(vector, whole.power, factors)


_OPENED: Table[Iterable[_Term]] = Table(
    {
        Scale: lambda node, term: [_Term(node.of, term.power + node.n_power, term.factors)],
        LinComb: _summands,
    },
    lambda node, term: (),
)


def _node(builder: Builder, term: _Term) -> Ref:
    """A term as a node of its own."""
    ref = term.product
    for number, scalar, axes in term.factors:
        ref = builder.add(LinComb((number,), (scalar,), (ref,), (axes,) if axes else ()))
    return ref if term.power == as_ex(0) else builder.add(Scale(ref, term.power))


def _row(read: Reading, source: Program, label: str, name: str, term: _Term) -> InitialWeightRow:
    node = the_matmul(source.nodes[term.product])
    matrix = matrix_of(source.nodes, node).name
    own, whole = read.orders[label], read.orders[name]
    n, status, vanishes = _relative(read, own, whole)
    lead = read.leads[label]
    degree = None if lead is None else read.growth.of[lead]
    key = Name.tabled(name)
    reason = own.reason
    if whole.status != "exact":
        reason = NOT_FOLLOWED.format(name=name, reason=whole.reason)
    return InitialWeightRow(
        f"{side(matrix, node.transpose)} {_vector(read, source, label, node)}",
        name,
        matrix,
        node.transpose,
        key.number,
        key.step,
        n,
        status,
        vanishes,
        "0" if own.zero else None if degree is None else str(degree),
        reason,
    )


def _vector(read: Reading, source: Program, label: str, node: MatMul) -> str:
    """The name of the vector of a product, of blocks by the limit of the product."""
    if not source.has_blocks:
        return read.vector(node.vector)
    home, nodes = read.names.home(label), read.context.nodes
    while home is not None and (term := lincomb_of(nodes[home[0]])) is not None:
        home = read.sets.part(term.vectors[0], *home) if len(term.vectors) == 1 else None
    if home is None or home[0] not in read.sets.dots:
        return "of a sum"
    return read.names.vector(*read.sets.argument(read.sets.hats(home[0])[home[1]]))


def _relative(read: Reading, own: Order, whole: Order) -> tuple[Exponent | None, str, bool | None]:
    """The size of a term over that of the vector, with its status, and whether it vanishes."""
    if own.zero:
        return ZERO, "exact", True
    if own.n is None or whole.n is None or whole.status != "exact":
        return None, "upper", None
    power = own.n - whole.n
    negative = read.context.ranking.chamber.at(power) < 0
    decided = negative or own.status == "exact"
    return Exponent(power), own.status, negative if decided else None
