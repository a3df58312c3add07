"""A network as a program of several inputs and one change of an input."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from operator import attrgetter

from numpy.typing import ArrayLike

from tpcalc.errors import StudyError
from tpcalc.functions import Fn, Par, Var
from tpcalc.functions.fn import INNER, SQUARE
from tpcalc.meanfield.maps.gram import checked_gram
from tpcalc.meanfield.operations import Input as Inputs
from tpcalc.meanfield.operations import Number
from tpcalc.meanfield.reading import start_of
from tpcalc.names import cell_name, layered
from tpcalc.networks.network import Architecture, slots, traced
from tpcalc.networks.own import as_network
from tpcalc.passes.change import changes
from tpcalc.passes.parameterize import parameterized
from tpcalc.passes.split import split
from tpcalc.passes.tangent import Entered, entered_groups
from tpcalc.passes.template import WRITTEN, Template
from tpcalc.program.base import Table, input_of, renumbered
from tpcalc.program.nodes import Family, Input, Moment, Nonlin, Ref, members
from tpcalc.program.program import Builder, Program

DIFFERENCE, FIRST = Fn(Par(0) - Par(1), 0, 2), Fn(Var(0), 1)
Gram = tuple[tuple[Number, ...], ...]


def program_of(network: object, inputs: Inputs | ArrayLike | None = None) -> Program:
    """The network written out: what the recursion says, the limit of this program says as well.

    Args:
        network: A network; of two alike inputs its input is one vector.
        inputs: Second moments of two inputs that are alike, by default those that a text says, else
            1 and 0; or of N inputs, shape (N, N), of S vectors each (locations of an image, inputs
            of a batch) N S by N S, the vectors of an input one after the other.

    Returns:
        A program. For two alike inputs it has outputs ``q[name]``, ``c[name]``, ``v[name]`` and
        ``g[name]`` for each vector that the network reports (``h[2]``), and for a wide layer at its
        end (``f``): averages over coordinates of x^2, x x', x^2 - x x' and of the square of the
        derivative along a standard Gaussian change of the input. For N inputs these are
        ``m[name][a]``, ``c[name][a,b]`` and ``g[name][a]`` of copies that share their weights:
        averages of x_a, x_a x_b and of that square, where all vectors of an input change.

    Raises:
        StudyError: An input is several vectors, and second moments are two numbers; or they are
            no second moments of so many.
        ProgramError: An input enters other than as a coefficient of Gaussian weights.
        NotDifferentiable: A function on the way has no derivative.

    Source: Schoenherr, The nonlinearity coefficient, section 5.1 (table 5.1; N-duplex, readin
        layers as input layers); of locations section 5.7.

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> program = program_of(lookup("mlp").make(1, "tanh"), Inputs(1.0, 0.5))
        >>> [name for name, _ in program.outputs]
        ['q[h[1]]', 'c[h[1]]', 'v[h[1]]', 'g[h[1]]', 'q[x[1]]', 'c[x[1]]', 'v[x[1]]', 'g[x[1]]']
    """
    net, start = as_network(network), start_of(network) if inputs is None else inputs
    alike = _alike(start)
    if net.infinite or (net.tokens > 1 and alike):
        count = "infinitely many" if net.infinite else net.tokens
        raise StudyError(
            f"an input of {net.words} is {count} vectors, and its second moments are more than "
            "two numbers.",
            where=net.name,
            hint="Give the second moments of all vectors of all inputs, or take tp.kernel with the "
            "inputs themselves.",
        )
    gram = _moments(start, net.tokens)
    template, found = entered(net)
    builder, data = found.builder, list(found.data.values())
    changed = {ref: Family(_changed(*_cell(builder, ref)), builder.type(ref).width) for ref in data}
    steps = {ref: builder.add(Input(family)) for ref, family in changed.items()}
    watched = {
        name: found.new[ref] for name, ref in _told(template) if builder.type(found.new[ref]).width
    }
    moved = changes(builder, steps, watched.values())
    source, out = builder.finish(), Builder(template.program.dims)
    groups = {_cell(builder, ref)[0] for ref in data}
    count = len(gram) // net.tokens
    copies = [copied(source, out, index, groups, gram, net.tokens) for index in range(count)]
    (_of_two if alike else _averages)(out, copies, watched, moved)
    return out.finish(keep_unused=False)


def _of_two(
    out: Builder, copies: list[list[Ref]], watched: dict[str, Ref], moved: dict[Ref, Ref]
) -> None:
    """The averages over coordinates at two inputs that are alike."""
    one, other = copies
    for name, ref in watched.items():
        q = out.add(Moment(SQUARE, (one[ref],)))
        c = out.add(Moment(INNER, (one[ref], other[ref])))
        out.output(layered("q", name), q)
        out.output(layered("c", name), c)
        out.output(layered("v", name), out.add(Nonlin(DIFFERENCE, (), (q, c))))
        if ref in moved:
            out.output(layered("g", name), out.add(Moment(SQUARE, (one[moved[ref]],))))


def _averages(
    out: Builder, copies: list[list[Ref]], watched: dict[str, Ref], moved: dict[Ref, Ref]
) -> None:
    """The averages over coordinates of all copies and of their pairs."""
    for name, ref in watched.items():
        for a, one in enumerate(copies):
            out.output(cell_name(layered("m", name), (a,)), out.add(Moment(FIRST, (one[ref],))))
            for b, other in enumerate(copies[: a + 1]):
                pair = out.add(Moment(INNER, (other[ref], one[ref])))
                out.output(cell_name(layered("c", name), (b, a)), pair)
            if ref in moved:
                change = out.add(Moment(SQUARE, (one[moved[ref]],)))
                out.output(cell_name(layered("g", name), (a,)), change)


def _of_several(start: ArrayLike, cells: int) -> Gram:
    """The second moments of all vectors of all inputs."""
    gram = checked_gram(start, "program_of")
    if not len(gram) or len(gram) % cells:
        raise StudyError(
            f"second moments of {len(gram)} vectors are given, and an input is {cells} of them.",
            where="program_of",
            hint="Give all of them, the vectors of an input one after the other.",
        )
    return tuple(tuple(map(float, row)) for row in gram)


_alike: Table[bool] = Table({Inputs: lambda start: True}, lambda start: False)
_moments: Table[Gram] = Table(
    {
        Inputs: lambda start, cells: (
            (start.square, start.comean),
            (start.comean, start.square),
        )
    },
    _of_several,
)


def entered(net: Architecture) -> tuple[Template, Entered]:
    """A network at its start, with Gaussian vectors for the products of its input with weights."""
    template = Template(
        split(parameterized(traced(net, net.tokens, 1), attrgetter("keeping"))),
        slots(net, net.tokens),
    )
    return template, entered_groups(template)


def _told(template: Template) -> Iterator[tuple[str, Ref]]:
    """What the network reports, and its end where that is not reported already."""
    told = [watch for watch in template.watch if watch.own.what != WRITTEN]
    yield from ((str(watch.own), watch.ref) for watch in told)
    known = {watch.ref for watch in told}
    yield from (
        (cell_name("f", (k,)), ref) for k, ref in enumerate(template.outputs) if ref not in known
    )


def _cell(builder: Builder, ref: Ref) -> tuple[str, int]:
    node = input_of(builder.node(ref))
    assert node is not None
    return node.family.name, node.index


def _changed(name: str, cell: int) -> str:
    return f"{name}'{cell or ''}"


def copied(
    source: Program, out: Builder, index: int, groups: set[str], gram: Gram, cells: int = 1
) -> list[Ref]:
    """The program for one of several inputs; their products with weights are Gaussian vectors."""
    size, places = len(gram), [(name, cell) for name in groups for cell in range(cells)]
    cov = tuple((*row, *(0,) * cells) for row in gram)
    cov += tuple((*(0,) * size, *(int(k == own) for k in range(cells))) for own in range(cells))
    found = {(name, cell): (name, index * cells + cell) for name, cell in places}
    found |= {(_changed(name, cell), 0): (name, size + cell) for name, cell in places}
    new: list[Ref] = []
    for ref, node in enumerate(source.nodes):
        drawn = input_of(node)
        if drawn is not None and (drawn.family.name, drawn.index) in found:
            name, cell = found[drawn.family.name, drawn.index]
            group = Family.group(name, drawn.family.width[0], (Fraction(0),) * len(cov), cov)
            node = members(group)[cell]
        new.append(out.add(renumbered(node, new.__getitem__), source.line_of(ref)))
    return new
