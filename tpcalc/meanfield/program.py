"""A network as a program of two inputs and one change of an input."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from operator import attrgetter

from tpcalc.errors import StudyError
from tpcalc.functions import Fn, Par
from tpcalc.functions.fn import INNER, SQUARE
from tpcalc.meanfield.operations import Input as Inputs
from tpcalc.meanfield.reading import start_of
from tpcalc.names import cell_name, layered
from tpcalc.networks.network import Architecture, slots, traced
from tpcalc.networks.own import as_network
from tpcalc.passes.change import changes
from tpcalc.passes.parameterize import parameterized
from tpcalc.passes.split import split
from tpcalc.passes.tangent import Entered, entered_groups
from tpcalc.passes.template import WRITTEN, Template
from tpcalc.program.base import input_of, renumbered
from tpcalc.program.nodes import Family, Input, Moment, Nonlin, Ref, members
from tpcalc.program.program import Builder, Program

DIFFERENCE = Fn(Par(0) - Par(1), 0, 2)


def program_of(network: object, inputs: Inputs | None = None) -> Program:
    """The network written out: what the recursion says, the limit of this program says as well.

    Args:
        network: A network of one vector as input.
        inputs: Second moments of inputs; by default those that a text says, else 1 and 0.

    Returns:
        A program with outputs ``q[name]``, ``c[name]``, ``v[name]`` and ``g[name]`` for each vector
        that the network reports (``h[2]``), and for a wide layer at its end (``f``): averages over
        coordinates of x^2, x x', x^2 - x x' and of the square of the derivative along a standard
        Gaussian change of the input.

    Raises:
        StudyError: An input is several vectors.
        ProgramError: An input enters other than as a coefficient of Gaussian weights.
        NotDifferentiable: A function on the way has no derivative.

    Source: Schoenherr, The nonlinearity coefficient, section 5.1 (table 5.1).

    Example:
        >>> from tpcalc.networks.architectures import lookup
        >>> program = program_of(lookup("mlp").make(1, "tanh"), Inputs(1.0, 0.5))
        >>> [name for name, _ in program.outputs]
        ['q[h[1]]', 'c[h[1]]', 'v[h[1]]', 'g[h[1]]', 'q[x[1]]', 'c[x[1]]', 'v[x[1]]', 'g[x[1]]']
    """
    net, start = as_network(network), inputs or start_of(network)
    if net.tokens > 1:
        count = "infinitely many" if net.infinite else net.tokens
        raise StudyError(
            f"an input of {net.words} is {count} vectors, and its second moments are more than "
            "two numbers.",
            where=net.name,
            hint="tp.kernel takes such networks with the inputs themselves.",
        )
    template, found = entered(net)
    builder, data = found.builder, list(found.data.values())
    steps: dict[Ref, Ref] = {}
    for ref in data:
        family = Family(_changed(_name(builder, ref)), builder.type(ref).width)
        steps[ref] = builder.add(Input(family))
    watched = {
        name: found.new[ref] for name, ref in _told(template) if builder.type(found.new[ref]).width
    }
    moved = changes(builder, steps, watched.values())
    source, out = builder.finish(), Builder(template.program.dims)
    groups = {_name(builder, ref) for ref in data}
    one, other = (copied(source, out, index, groups, start) for index in range(2))
    for name, ref in watched.items():
        q = out.add(Moment(SQUARE, (one[ref],)))
        c = out.add(Moment(INNER, (one[ref], other[ref])))
        out.output(layered("q", name), q)
        out.output(layered("c", name), c)
        out.output(layered("v", name), out.add(Nonlin(DIFFERENCE, (), (q, c))))
        if ref in moved:
            out.output(layered("g", name), out.add(Moment(SQUARE, (one[moved[ref]],))))
    return out.finish(keep_unused=False)


def entered(net: Architecture) -> tuple[Template, Entered]:
    """A network at its start, with Gaussian vectors for the products of its input with weights."""
    template = Template(
        split(parameterized(traced(net, 1, 1), attrgetter("keeping"))), slots(net, 1)
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


def _name(builder: Builder, ref: Ref) -> str:
    node = input_of(builder.node(ref))
    assert node is not None
    return node.family.name


def _changed(name: str) -> str:
    return f"{name}'"


def copied(source: Program, out: Builder, index: int, groups: set[str], start: Inputs) -> list[Ref]:
    """The program for one of two inputs; their products with weights are Gaussian vectors."""
    q, c, one = start.square, start.comean, Fraction(1)
    cov = ((q, c, 0), (c, q, 0), (0, 0, one))
    own = {name: (name, index) for name in groups} | {_changed(name): (name, 2) for name in groups}
    new: list[Ref] = []
    for ref, node in enumerate(source.nodes):
        drawn = input_of(node)
        if drawn is not None and drawn.family.name in own:
            name, cell = own[drawn.family.name]
            group = Family.group(name, drawn.family.width[0], (Fraction(0),) * 3, cov)
            node = members(group)[cell]
        new.append(out.add(renumbered(node, new.__getitem__), source.line_of(ref)))
    return new
