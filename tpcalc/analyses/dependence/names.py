"""Names of the nodes of a limit graph, by the outputs of its program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tpcalc.analyses.dependence.sets import Sets, image_of
from tpcalc.functions.numbers import number_text
from tpcalc.limit.graph import Fluctuation, LRef, Noise, Product, Start
from tpcalc.limit.views import start_of
from tpcalc.program.base import Table
from tpcalc.program.nodes import Input, LinComb, Nonlin
from tpcalc.results.dependencies import GaussianRow

__all__ = ["Names", "side"]

LONGEST = 40
SHOWN = 4


@dataclass
class Names:
    """Names of nodes.

    Args:
        sets: The graph, and what depends on what.
        leads: For outputs of the program the node of their leading term.
    """

    sets: Sets
    leads: Mapping[str, LRef | None]
    _of: dict[LRef, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, ref in self.leads.items():
            if ref is not None:
                self._of.setdefault(ref, name)

    def vector(self, ref: LRef) -> str:
        """A vector by its output, or by what it is made of.

        Args:
            ref: Its node.
        """
        if ref in self._of:
            return self._of[ref]
        node = self.sets.context.nodes[ref]
        if (start := start_of(node)) is not None:
            return self._start(start)
        if image_of(self.sets.context, ref):
            return self._image(ref)
        text = _FORMULAS(node, self)
        return text if text and len(text) <= LONGEST else f"v{ref}"

    def gaussian(self, ref: LRef) -> GaussianRow:
        """A Gaussian of a dependency set.

        Args:
            ref: Its node.
        """
        return _ROWS(self.sets.context.nodes[ref], ref, self)

    def _start(self, node: Start) -> str:
        alone = self.sets.context.program.group[node.group].size == 1
        return node.group if alone else f"{node.group}[{node.index}]"

    def _image(self, ref: LRef) -> str:
        """A sum of start vectors by the first output that holds it."""
        for name, lead in self.leads.items():
            if lead is not None and self.sets.of[lead] >> ref & 1:
                return f"start of {name}"
        return f"v{ref}"

    def _sum(self, node: LinComb) -> str:
        """A sum of start vectors, written out; of a long one its beginning and end."""
        terms = []
        for number, vector in zip(node.numbers, node.vectors, strict=True):
            text = f"{float(number):.4g}" if number != 1 else ""
            terms.append(f"{text}*{self.vector(vector)}" if text else self.vector(vector))
        if len(terms) > 2 * SHOWN:
            terms = [*terms[:SHOWN], "...", *terms[-1:]]
        return " + ".join(terms).replace("+ -", "- ")


def _product(node: Product, names: Names) -> str:
    return f"{side(node.matrix, node.transpose)} {names.vector(node.vector)}"


def _function(node: Nonlin, names: Names) -> str:
    if node.scalars:
        return ""
    parts = [names.vector(v) for v in node.vectors]
    return re.sub(r"\bx(\d+)\b", lambda found: parts[int(found[1])], node.fn.text)


_FORMULAS: Table[str] = Table({Product: _product, Nonlin: _function}, lambda node, names: "")


def _row(name: str) -> GaussianRow:
    return GaussianRow(name, "start", name)


def _hat_row(node: Product, ref: LRef, names: Names) -> GaussianRow:
    product = _product(node, names)
    return GaussianRow(f"hat {product}", "hat", f"Gaussian part of {product}")


def _draw_row(node: Input, ref: LRef, names: Names) -> GaussianRow:
    law = f"N({number_text(node.family.means[0])}, {number_text(node.family.std)}^2)"
    return GaussianRow(node.name, "scalar", law)


_ROOTS: Table[list[str]] = Table(
    {Start: lambda root, names: [names._start(root)], str: lambda root, names: [root]},
    lambda root, names: [],
)


def _fluctuation_row(node: Fluctuation, ref: LRef, names: Names) -> GaussianRow:
    *g, x = (names.vector(vector) for vector in node.vectors)
    root = _ROOTS(node.root, names)
    law = f"limit of sqrt(n) times the average of {' '.join((*g, *root, x))}, a Gaussian"
    return GaussianRow(f"G({', '.join((*root, *g, x))})", "scalar", law)


def _noise_row(node: Noise, ref: LRef, names: Names) -> GaussianRow:
    law = "sqrt(n) times an average of expectation 0; its law is not computed"
    return GaussianRow(f"average v{ref}", "average", law)


_ROWS: Table[GaussianRow] = Table(
    {
        Start: lambda node, ref, names: _row(names._start(node)),
        Product: _hat_row,
        Input: _draw_row,
        Fluctuation: _fluctuation_row,
        Noise: _noise_row,
        LinComb: lambda node, ref, names: GaussianRow(names.vector(ref), "start", names._sum(node)),
    }
)


def side(matrix: str, transpose: bool) -> str:
    """A matrix or its transpose.

    Args:
        matrix: Its name.
        transpose: Whether it is transposed.

    Example:
        >>> side("W2", True)
        'W2^T'
    """
    return f"{matrix}^T" if transpose else matrix
