"""``dependencies``: which Gaussians the limit of each output of a program is a function of."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Unpack

import numpy as np

from tpcalc.dsl import filled
from tpcalc.errors import LimitError
from tpcalc.limit.graph import (
    Fluctuation,
    LNode,
    LRef,
    Product,
    fluctuation_of,
    noise_of,
    product_of,
    start_of,
)
from tpcalc.names import Name, cell_name
from tpcalc.passes.as_blocks import SOME, is_read_as_blocks
from tpcalc.passes.split import check_size
from tpcalc.program.base import Table, matmul_of, matrix_of, the_matmul
from tpcalc.program.nodes import Kind, MatMul, Ref
from tpcalc.program.program import Builder, Program
from tpcalc.program.types import ReadAs
from tpcalc.questions.dependence.coefficients import LARGEST, is_large
from tpcalc.questions.dependence.names import side
from tpcalc.questions.dependence.reading import Dots, Reading
from tpcalc.questions.dependence.sets import Sets, Weights, united_bits
from tpcalc.questions.orders import Sizing, width_orders
from tpcalc.results.dependencies import (
    CorrectionRow,
    CorrectionTable,
    CorrectionTerm,
    DependencyRow,
    DependencyTable,
    Independence,
)
from tpcalc.results.tables import provenance
from tpcalc.shown import Shown

UNKNOWN = "not decided: no leading term is known within the budget"
HIDDEN = "not decided: gates that smaller terms decide are not followed"
SUM = "that of a combination of earlier products"
DOUBTFUL = "(?): only through a coefficient that is 0 within its error, or was not tested"


@dataclass(frozen=True)
class Dependencies(Shown, Mapping[str, DependencyRow]):
    """What the limits of all outputs of a program depend on.

    The limit Z of a vector is that of the vector over its own power of n, as in ``tp.limit``: a
    vector that vanishes has the set of its normalised limit.

    Source: Hajjar, Chizat, Giraud, Appendix L.
    """

    program: Program
    table: DependencyTable  # the sets as a record; print shows it
    reading: Reading = field(repr=False, compare=False)  # what they were read off

    def __getitem__(self, name: str) -> DependencyRow:
        self.program.ref(name)  # an unknown name lists the nearest
        return next(row for row in self.table.rows if row.name == name)

    def __iter__(self) -> Iterator[str]:
        return (row.name for row in self.table.rows)

    def __len__(self) -> int:
        return len(self.table.rows)

    def independent(self, first: str, second: str) -> Independence:
        """Whether two limits are independent: functions of Gaussians that are uncorrelated."""
        rows = self[first], self[second]
        unknown = [row.name for row in rows if not row.known]
        if unknown:
            note = f"what {unknown[0]} depends on is not known"
            return Independence(first, second, False, (), note)
        read = self.reading
        bits = [_bits(read, name) for name in (first, second)]
        shared = tuple(
            (read.names.gaussian(a).name, read.names.gaussian(b).name)
            for a in read.sets.names(bits[0])
            for b in read.sets.names(bits[1])
            if may_correlate(read.sets, a, b)
        )
        return Independence(first, second, not shared, shared)


def dependencies(program: object, **asked: Unpack[Sizing]) -> Dependencies:
    """The Gaussians that the limit of each output of a program is a function of.

    The sets are complete: Z is a function of what is listed, and of deterministic numbers. What
    enters with a coefficient that is exactly 0 (by symmetry, or where a gate is shut) is left out;
    what enters only through a coefficient that numbers do not tell from 0 is marked.

    Args:
        program: A program, or a function decorated with ``tp.program``.
        asked: As ``tp.orders`` takes it: values, at, budget, verify (True; without it coefficients
            whose form does not exclude 0 count as doubtful), seed, reading.

    Returns:
        A mapping from names to sets, with ``independent(a, b)``; ``print`` shows a table.

    Raises:
        ScaleError: A symbol without a value, or a function without a known order where it is asked.
        ProgramError: Blocks have too many cells to look at one by one.
        UsageError: Arguments that make no sense.

    Source: Hajjar, Chizat, Giraud, Appendix L (Definition L.1 and Theorem L.9).

    Example:
        >>> import tpcalc as tp
        >>> @tp.program
        ... def layers(t):
        ...     W, g = t.matrix("W"), t.gaussian("g")
        ...     h = tp.n**-0.5 * (W @ tp.relu(g))
        ...     t.output("x", tp.relu(g))
        ...     t.output("h", h)
        ...     t.output("back", tp.n**-0.5 * (W.T @ tp.relu(h)))
        >>> found = dependencies(layers)
        >>> found["h"].on, found["back"].on
        (('hat W x',), ('g', 'hat W^T relu(h)'))
        >>> print(found.independent("x", "h"))
        x and h: independent
        >>> print(found.independent("x", "back"))
        x and back: not provably independent
        - both depend on g
    """
    started = time.perf_counter()
    read = _read(program, asked)
    source = read.orders.program
    rows = tuple(_row(read, name) for name in read.orders)
    used = 0
    for name in read.orders:
        used |= _bits(read, name)
    gaussians = tuple(row for row, _ in read.names.listed(used))
    settings = {"verify": str(read.verify), "depth": str(read.context.ranking.depth)}
    made = provenance(source.digest, read.seed, settings, time.perf_counter() - started)
    notes = [DOUBTFUL] if any(row.doubtful for row in rows) else []
    if read.verify and is_large(read.sets, [ref for ref in read.cone if ref in read.sets.dots]):
        notes.append(f"coefficients of more than {LARGEST} products are not estimated")
    return Dependencies(source, DependencyTable(rows, gaussians, made, tuple(notes)), read)


def corrections(program: object, **asked: Unpack[Sizing]) -> CorrectionTable:
    """The corrections of all products of a program with random matrices.

    The limit of What x is a Gaussian and a sum of terms c Z^y, one for each earlier product
    What^T y that x depends on. In the first forward and backward pass of a network all c are 0.

    Args:
        program: A program, or a function decorated with ``tp.program``.
        asked: As ``tp.orders`` takes it: values, at, budget, verify (True; without it coefficients
            that are not 0 by symmetry are not estimated), seed, reading.

    Returns:
        A row for each product, with its corrections.

    Raises:
        ScaleError: A symbol without a value, or a function without a known order where it is asked.
        ProgramError: Blocks have too many cells to look at one by one.
        UsageError: Arguments that make no sense.

    Source: Hajjar, Chizat, Giraud, section B.2 (ZDot) and Lemma C.2.

    Example:
        >>> import tpcalc as tp
        >>> @tp.program
        ... def layers(t):
        ...     W, g = t.matrix("W"), t.gaussian("g")
        ...     h = tp.n**-0.5 * (W @ tp.relu(g))
        ...     t.output("x", tp.relu(g))
        ...     t.output("y", tp.tanh(h) ** 2)
        ...     t.output("back", tp.n**-0.5 * (W.T @ (tp.tanh(h) ** 2)))
        >>> [str(row) for row in corrections(layers).rows]
        ['W x: none', 'W^T y: none']
    """
    started = time.perf_counter()
    reading: ReadAs = asked.get("reading", "auto")
    source = filled(program, reading)
    labels = dict[str, MatMul]()
    if is_read_as_blocks(source, reading, SOME):
        source, labels = _with_products(source)
    read = _read(source, asked)
    if labels:
        return _of_blocks(read, source, labels, started)
    source = read.orders.program
    products = {
        ref: _product(read, ref)
        for ref, node in enumerate(source.nodes)
        if matmul_of(node) is not None
    }
    found = read.estimated(ref for ref in products.values() if ref is not None)
    rows = tuple(_correction(read, ref, product, found) for ref, product in products.items())
    made = provenance(
        source.digest, read.seed, {"verify": str(read.verify)}, time.perf_counter() - started
    )
    return CorrectionTable(rows, made)


def _with_products(source: Program) -> tuple[Program, dict[str, MatMul]]:
    """The program with its products as outputs, and of the cells of these the product."""
    out, labels = Builder.copy(source), dict[str, MatMul]()
    for ref, node in enumerate(source.nodes):
        if (product := matmul_of(node)) is not None:
            label = f"product {ref}"
            out.output(label, ref)
            cells = np.ndindex(*(size for _, size in source.types[ref].axes))
            labels |= {cell_name(label, cell): product for cell in cells}
    return out.finish(), labels


def _of_blocks(
    read: Reading, source: Program, labels: Mapping[str, MatMul], started: float
) -> CorrectionTable:
    """The corrections of all cells of products."""
    homes = {label: read.names.home(label) for label in labels}
    nodes = {home[0] for home in homes.values() if home is not None}
    products = sorted(ref for ref in nodes if ref in read.sets.dots)
    if read.verify and is_large(read.sets, products):
        count = sum(len(read.sets.hats(ref)) for ref in products)
        raise LimitError(
            f"the coefficients of the corrections of {count} products solve linear systems of "
            f"all of them, and {LARGEST} are the most.",
            where=f"a program of {len(read.orders.program.nodes)} nodes",
            hint="Take fewer samples or steps, or verify=False, which gives no numbers.",
        )
    found = read.estimated(products)
    rows = list[CorrectionRow]()
    for label, product in labels.items():
        home = homes[label]
        if read.orders[label].zero:
            continue  # cell by cell it is no product
        name, vector = matrix_of(source.nodes, product).name, "?"
        terms, note = list[CorrectionTerm](), UNKNOWN if home is None else SUM
        hat = read.sets.hats(home[0]).get(home[1]) if home and home[0] in products else None
        if hat is not None:
            name, vector, note = read.names.matrix(hat), _argument(read, hat), ""
            terms = _correction_terms(read, hat, found)
        text, step = f"{side(name, product.transpose)} {vector}", Name.tabled(vector).step
        row = CorrectionRow(text, name, product.transpose, vector, step, tuple(terms), note)
        rows.append(row)
    settings = {"verify": str(read.verify)}
    digest = read.orders.program.digest
    made = provenance(digest, read.seed, settings, time.perf_counter() - started)
    return CorrectionTable(tuple(rows), made)


def _correction(read: Reading, ref: Ref, product: LRef | None, dots: Dots) -> CorrectionRow:
    program = read.orders.program
    node = the_matmul(program.nodes[ref])
    matrix = matrix_of(program.nodes, node)
    vector = read.vector(node.vector)
    name = f"{side(matrix.name, node.transpose)} {vector}"
    terms, note = list[CorrectionTerm](), SUM
    if product is not None:
        (hat,), note = read.sets.hats(product).values(), ""
        terms = _correction_terms(read, hat, dots)
    elif not read.run.values[ref].terms:
        note = UNKNOWN
    step = Name.tabled(vector).step
    return CorrectionRow(name, matrix.name, node.transpose, vector, step, tuple(terms), note)


def _correction_terms(read: Reading, hat: int, dots: Dots) -> list[CorrectionTerm]:
    """The terms of a product: those that are 0 by symmetry, and the others."""
    open_, zero = read.sets.below(hat)
    terms = [CorrectionTerm(_argument(read, q), True) for q in zero]
    for q in open_:
        number = dots.get((hat, q))
        value, sure = (None, False) if number is None else (number.estimate, number.nonzero)
        terms.append(CorrectionTerm(_argument(read, q), False, value, not sure))
    return terms


def _product(read: Reading, ref: Ref) -> LRef | None:
    """The product in the limit graph that a product of the program becomes."""
    terms = read.run.values[ref].terms
    if not terms or product_of(read.context.nodes[terms[0][1]]) is None:
        return None
    node: LRef = terms[0][1]
    return node


def _argument(read: Reading, hat: int) -> str:
    """The name of the vector that a product multiplies."""
    return read.names.vector(*read.sets.argument(hat))


def _read(program: object, asked: Sizing) -> Reading:
    source = filled(program, asked.get("reading", "auto"))
    check_size(source)
    found = width_orders(source, **asked)
    return Reading(found, asked.get("verify", True), asked.get("seed", 0))


def _bits(read: Reading, name: str) -> int:
    lead = read.leads[name]
    return 0 if lead is None else read.sets.whole(lead)


def _row(read: Reading, name: str) -> DependencyRow:
    order = read.orders[name]
    lead = read.leads[name]
    program = read.orders.program
    vector = program.types[program.ref(name)].kind is Kind.VECTOR
    if lead is None:
        note = "" if order.zero else UNKNOWN
        return DependencyRow(name, order.exponent, order.status, vector, (), (), None, note)
    if read.context.missing[lead] == "hidden":
        return DependencyRow(name, order.exponent, order.status, vector, (), (), None, HIDDEN)
    bits = read.sets.whole(lead)
    listed = read.names.listed(bits, bits & ~united_bits(read.sure[lead]))
    on = tuple(row.name for row, _ in listed)
    doubtful = tuple(row.name for row, weak in listed if weak)
    degree = read.growth.of[lead]
    shown = str(degree) if isinstance(degree, Fraction) else None
    return DependencyRow(name, order.exponent, order.status, vector, on, doubtful, shown)


def may_correlate(sets: Sets, a: int, b: int) -> bool:
    """Whether two Gaussians may be correlated; if not, they are independent.

    Source: Hajjar, Chizat, Giraud, section B.2 (ZHat).
    """
    if a in sets.weights and b in sets.weights:
        return a == b or _covariance(sets, sets.weights[a], sets.weights[b]) != 0
    (one, _), (two, _) = sets.homes[a], sets.homes[b]
    first, second = sets.context.nodes[one], sets.context.nodes[two]
    if a == b or noise_of(first) or noise_of(second):
        return True
    both = product_of(first) is not None and product_of(second) is not None
    if both and not sets.alike(a) >> b & 1:  # cells of one block of matrices
        return False
    return _MAY_CORRELATE(first, second, sets, one, two)


def _products(first: Product, other: LNode, sets: Sets, a: LRef, b: LRef) -> bool:
    second = product_of(other)
    if second is None or (first.matrix, first.transpose) != (second.matrix, second.transpose):
        return False
    return sets.correlated(a, b)


def _fluctuations(first: Fluctuation, other: LNode, sets: Sets, a: LRef, b: LRef) -> bool:
    second = fluctuation_of(other)
    if second is None:
        return False
    one, two = start_of(first.root), start_of(second.root)
    if one is None or two is None:
        return first.root == second.root and sets.correlated(a, b)
    shared = _covariance(sets, *((((s.group, s.index), Fraction(1)),) for s in (one, two)))
    return shared != 0 and sets.correlated(a, b)


_MAY_CORRELATE: Table[bool] = Table(
    {Product: _products, Fluctuation: _fluctuations}, lambda first, second, sets, a, b: False
)


def _covariance(sets: Sets, first: Weights, second: Weights) -> Fraction:
    """The covariance of two sums of start vectors, in exact arithmetic of the given numbers."""
    total = Fraction(0)
    for (group, i), left in first:
        cov = sets.context.program.group[group].cov
        for (other, j), right in second:
            if group == other:
                entry = Fraction(i == j) if cov is None else Fraction(cov[i][j])
                total += left * right * entry
    return total
