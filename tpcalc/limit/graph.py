"""The limit graph: the random variables Z and the deterministic scalars of an infinite network.

A second small straight-line language. A vector node stands for one random variable Z (the law of a
coordinate); its scalars are limits of moments. Powers of n are gone: ``derive`` took them out.
Functions, sums and random numbers are the nodes of programs: they mean the same here.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import ClassVar

from tpcalc.functions import Fn
from tpcalc.functions.fn import INNER, SQUARE
from tpcalc.program.base import Table, cone, only, renumbered, view
from tpcalc.program.nodes import Data, Dim, Family, Input, LinComb, Nonlin, Ref, Rename, Stack
from tpcalc.program.types import Axes

LRef = Ref


@dataclass(frozen=True, slots=True)
class Start:
    """Z of member ``index`` of a Gaussian group."""

    group: str
    index: int

    grammar: ClassVar[str] = "start <group> <index>"


@dataclass(frozen=True, slots=True)
class Starts:
    """The Z's of all members of a Gaussian group, along its axes."""

    group: str

    grammar: ClassVar[str] = "starts <group>"


@dataclass(frozen=True, slots=True)
class Product:
    """Z of What x = n^(-1/2) W x: a Gaussian hat plus the correction dot.

    Of a Haar matrix: the part that earlier products determine plus a fresh Gaussian.
    """

    matrix: str
    transpose: bool
    vector: LRef

    grammar: ClassVar[str] = "product <matrix><transpose? transposed> <vector>"


@dataclass(frozen=True, slots=True)
class OuterExpect:
    """E over an independent copy of the column variables of psi(rows; cols) x.

    With ``forms`` psi is a function of sums of products of a row and a column each, in blocks also
    over those of the axes ``over`` that they have.
    """

    fn: Fn
    rows: tuple[LRef, ...]
    cols: tuple[LRef, ...]
    scalars: tuple[LRef, ...]
    vector: LRef
    forms: tuple[int, ...] = ()
    over: tuple[str, ...] = ()

    grammar: ClassVar[str] = (
        "outer <fn> (<rows>; <cols><scalars?; >)<forms? forms |><over? over |> <vector>"
    )


@dataclass(frozen=True, slots=True)
class Expect:
    """The expectation of a coordinatewise function: the limit of a moment."""

    fn: Fn
    vectors: tuple[LRef, ...]
    scalars: tuple[LRef, ...] = ()

    grammar: ClassVar[str] = "expect <fn> (<vectors><scalars?; >)"


@dataclass(frozen=True, slots=True)
class Rows:
    """The coordinates of a dimension class, where no product makes one depend on another."""

    dim: str

    grammar: ClassVar[str] = "rows <dim>"


@dataclass(frozen=True, slots=True)
class Twice:
    """A matrix or its transpose, of which two hats are multiplied."""

    matrix: str
    transpose: bool

    grammar: ClassVar[str] = "twice <matrix><transpose? transposed>"


Root = Start | Rows | Twice | str


@dataclass(frozen=True, slots=True)
class Fluctuation:
    """The Gaussian limit of n^(1/2) (1/d) sum u x, or of n^(1/2) (1/d) g^T What x, d the rows.

    Of members u, u' of a group that the vectors do not depend on: linear in x, with covariance
    Cov(u, u') E[Z^x Z^x'] / ratio (Hajjar et al., Lemma C.3). Of a matrix: linear in g and in x,
    with covariance E[Z^g Z^g'] E[Z^x Z^x'] cols / rows; g depends on no product W y, and x on no
    product W^T z. Of rows: the average of a function x of start vectors, E Z^x = 0, with
    covariance E[Z^x Z^x'] / ratio. Of a matrix twice: linear in x and y, with covariance
    E[Z^x Z^x'] E[Z^y Z^y'] cols^2 / (2 rows); where E Z^x Z^y = 0, G(x, y) + G(y, x) is what the
    average of the hats of W x and W y fluctuates by, given x and y.
    """

    root: Root  # a centred start vector, or the name of a matrix, ...
    vectors: tuple[LRef, ...]  # (x,), or (g, x), or (x, y)

    grammar: ClassVar[str] = "fluctuation <root> (<vectors>)"


@dataclass(frozen=True, slots=True)
class Noise:
    """n^(1/2) times the average of a function whose expectation is 0: of order one, not computed.

    What ``Fluctuation`` is not: the order of such an average is known (as a bound), its law is not.
    """

    fn: Fn
    vectors: tuple[LRef, ...]
    scalars: tuple[LRef, ...] = ()

    grammar: ClassVar[str] = "noise <fn> (<vectors><scalars?; >)"


@dataclass(frozen=True, slots=True)
class Number:
    """A given number: without a name, so that equal ones are one node."""

    value: Fraction | float

    grammar: ClassVar[str] = "number <value>"


@dataclass(frozen=True, slots=True)
class Total:
    """A linear combination of blocks in which terms are summed over finite axes."""

    numbers: tuple[Fraction | float, ...]
    scalars: tuple[LRef | None, ...]
    vectors: tuple[LRef, ...]
    over: tuple[tuple[str, ...], ...]

    grammar: ClassVar[str] = "total <numbers><scalars>*<vectors><over> + ..."

    @property
    def terms(self) -> Iterable[tuple[Fraction | float, LRef | None, LRef, tuple[str, ...]]]:
        """Of each term its number, scalar and vector, and the axes that it is summed over."""
        return zip(self.numbers, self.scalars, self.vectors, self.over, strict=True)


# An input is a random number, with a variance that is not 0; start vectors name their group.
LNode = (
    Start
    | Starts
    | Product
    | Nonlin
    | LinComb
    | Total
    | OuterExpect
    | Expect
    | Fluctuation
    | Noise
    | Number
    | Input
    | Data
    | Rename
    | Stack
)


@dataclass(frozen=True, slots=True)
class Target:
    """What an output of the program became: n**power times a node.

    ``node`` is None where the output is 0 in the limit: identically, or by its power. ``moments``
    are the nodes of E Z and E Z^2 of a vector where they were asked for; None in place of one is 0.
    """

    power: Fraction
    node: LRef | None
    moments: tuple[LRef | None, LRef | None] | None = None

    @property
    def refs(self) -> tuple[LRef, ...]:
        """The nodes that it names."""
        return tuple(ref for ref in (self.node, *(self.moments or ())) if ref is not None)

    def renamed(self, new: Mapping[LRef, LRef]) -> Target:
        """The target with its nodes renumbered."""
        moved = [None if r is None else new[r] for r in (self.node, *(self.moments or ()))]
        return Target(self.power, moved[0], (moved[1], moved[2]) if self.moments else None)


@dataclass(frozen=True)
class LimitGraph:
    """A limit graph."""

    nodes: tuple[LNode, ...]  # in order of computation
    # for each output of the program its name and what it became
    targets: tuple[tuple[str, Target], ...]
    # for each node the dimension class it lives on; None for a scalar
    vector_dim: tuple[str | None, ...]
    # of the program
    dims: tuple[Dim, ...]
    groups: tuple[Family, ...]
    # name, row and column dimension class of each random matrix
    matrices: tuple[tuple[str, str, str], ...]
    # names of the matrices with a Haar law; the others are Gaussian
    orthogonal: frozenset[str] = frozenset()
    # fluctuations that may be correlated and are drawn independently, in pairs
    apart: frozenset[tuple[LRef, LRef]] = frozenset()
    axes: tuple[Axes, ...] = ()  # the finite axes of each node; () where no node has any
    matrix_axes: tuple[tuple[str, Axes], ...] = ()  # those of the matrices that are blocks, by name

    @property
    def has_blocks(self) -> bool:
        """Whether some node is a block."""
        return any(self.axes)

    @property
    def drawn(self) -> tuple[tuple[str, str, str, str], ...]:
        """Name, rows, columns and law of each matrix; of blocks of all that they hold."""
        axes, found = dict(self.matrix_axes), list[tuple[str, str, str, str]]()
        for name, rows, cols in self.matrices:
            law = "orthogonal" if name in self.orthogonal else "gaussian"
            count = prod(size for _, size in axes.get(name, ()))
            names = [f"{name}[{k}]" for k in range(count)] if name in axes else [name]
            found += [(own, rows, cols, law) for own in names]
        return tuple(found)


def product_mean(left: LRef, right: LRef) -> Expect:
    """The node of E Z^x Z^y, one for both orders.

    Example:
        >>> product_mean(3, 2).vectors, product_mean(2, 2).vectors
        ((2, 3), (2,))
    """
    if left == right:
        return Expect(SQUARE, (left,))
    return Expect(INNER, (min(left, right), max(left, right)))


def family_of(root: Root, groups: Mapping[str, Family]) -> str:
    """The name of what all fluctuations share that are drawn together.

    Example:
        >>> groups = {"u": Family.group("u", "n", (Fraction(0), Fraction(0)))}
        >>> family_of(Start("u", 1), groups), family_of("W", groups)
        ('start u[1]', 'matrix W')
    """
    return _FAMILIES(root, groups)


def _start_family(root: Start, groups: Mapping[str, Family]) -> str:
    alone = groups[root.group].cov is None
    return f"start {root.group}[{root.index}]" if alone else f"start {root.group}"


_FAMILIES: Table[str] = Table(
    {
        str: lambda root, groups: f"matrix {root}",
        Rows: lambda root, groups: f"rows {root.dim}",
        Twice: lambda root, groups: f"twice {root.matrix} {root.transpose}",
        Start: _start_family,
    }
)


def restricted(graph: LimitGraph, names: Container[str]) -> LimitGraph:
    """The part of a graph that some of its targets need.

    Example:
        >>> target = Target(Fraction(0), 1)
        >>> nodes = (Number(Fraction(1)), Number(Fraction(2)))
        >>> graph = LimitGraph(nodes, (("a", target),), (None, None), (), (), ())
        >>> restricted(graph, ["a"]).nodes
        (Number(value=Fraction(2, 1)),)
    """
    targets = [(name, target) for name, target in graph.targets if name in names]
    needed = cone(graph.nodes, (ref for _, target in targets for ref in target.refs))
    kept = [ref for ref, wanted in enumerate(needed) if wanted]
    new = {ref: index for index, ref in enumerate(kept)}
    return replace(
        graph,
        nodes=tuple(renumbered(graph.nodes[ref], new.__getitem__) for ref in kept),
        targets=tuple((name, target.renamed(new)) for name, target in targets),
        vector_dim=tuple(graph.vector_dim[ref] for ref in kept),
        axes=tuple(graph.axes[ref] for ref in kept) if graph.axes else (),
        apart=frozenset((new[a], new[b]) for a, b in graph.apart if a in new and b in new),
    )


def with_targets(graph: LimitGraph, asked: Mapping[str, LNode | LRef]) -> LimitGraph:
    """A graph with further scalar targets, some of them nodes that are added to it.

    Example:
        >>> graph = LimitGraph((Number(Fraction(1)),), (), (None,), (), (), ())
        >>> made = with_targets(graph, {"a": 0, "b": Number(Fraction(2))})
        >>> [target.node for _, target in made.targets]
        [0, 1]
    """
    fresh = [item for item in asked.values() if not isinstance(item, int)]
    places = iter(range(len(graph.nodes), len(graph.nodes) + len(fresh)))
    refs = {name: one if isinstance(one, int) else next(places) for name, one in asked.items()}
    return replace(
        graph,
        nodes=(*graph.nodes, *fresh),
        vector_dim=graph.vector_dim + (None,) * len(fresh),
        axes=graph.axes + ((),) * len(fresh) if graph.axes else (),
        targets=(*graph.targets, *((name, Target(Fraction(0), r)) for name, r in refs.items())),
    )


def joined(graphs: Sequence[LimitGraph]) -> LimitGraph:
    """One graph with the targets of several of one program; what they share is there once.

    Example:
        >>> one, two = Number(Fraction(1)), Number(Fraction(2))
        >>> target = Target(Fraction(0), 0)
        >>> left = LimitGraph((one,), (("a", target),), (None,), (), (), ())
        >>> right = LimitGraph((two, one), (("b", target),), (None, None), (), (), ())
        >>> joined([left, right]).nodes
        (Number(value=Fraction(1, 1)), Number(value=Fraction(2, 1)))
    """
    if len(graphs) == 1:
        return graphs[0]
    known: dict[LNode, LRef] = {}
    dims: list[str | None] = []
    axes: list[Axes] = []
    targets: list[tuple[str, Target]] = []
    for graph in graphs:
        new: dict[LRef, LRef] = {}
        for ref, node in enumerate(graph.nodes):
            moved = renumbered(node, new.__getitem__)
            new[ref] = known.setdefault(moved, len(known))
            if new[ref] == len(dims):
                dims.append(graph.vector_dim[ref])
                axes += graph.axes[ref : ref + 1]
        targets += [(name, target.renamed(new)) for name, target in graph.targets]
    return replace(
        graphs[0],
        nodes=tuple(known),
        targets=tuple(targets),
        vector_dim=tuple(dims),
        axes=tuple(axes),
    )


average_of: Table[Expect | None] = view(Expect)
data_of: Table[Data | None] = view(Data)
fluctuation_of: Table[Fluctuation | None] = view(Fluctuation)
function_of: Table[Nonlin | None] = view(Nonlin)
noise_of: Table[Noise | None] = view(Noise)
number_of: Table[Number | None] = view(Number)
outer_of: Table[OuterExpect | None] = view(OuterExpect)
product_of: Table[Product | None] = view(Product)
rename_of: Table[Rename | None] = view(Rename)
stack_of: Table[Stack | None] = view(Stack)
start_of: Table[Start | None] = view(Start)
starts_of: Table[Starts | None] = view(Starts)
twice_of: Table[Twice | None] = view(Twice)
the_fluctuation: Table[Fluctuation] = only(Fluctuation)
the_product: Table[Product] = only(Product)
the_start: Table[Start] = only(Start)
is_drawn: Table[bool] = Table(
    {Input: lambda node: True, Fluctuation: lambda node: True}, lambda node: False
)
"""Whether a node is a Gaussian scalar."""
