"""Families of fluctuations: those of one family are drawn together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpcalc.engine.starts import members_factor
from tpcalc.limit.graph import Root, Rows, Start, Twice, family_of
from tpcalc.program.base import Table
from tpcalc.program.nodes import Dim, Family


def family(
    root: Root,
    groups: Iterable[Family],
    dims: Iterable[Dim],
    matrices: Mapping[str, tuple[str, str]],
) -> tuple[str, tuple[float, ...]]:
    """The name of the family of a fluctuation, and its weights there.

    The covariance of two of a family is the inner product of their weights, times E Z^x Z^y for
    each pair of their vectors.
    """
    ratio = {dim.name: float(dim.ratio) for dim in dims}
    named = {group.name: group for group in groups}
    return family_of(root, named), _WEIGHTS(root, ratio, named, matrices)


_Ratios = Mapping[str, float]
_Named = Mapping[str, Family]
_Matrices = Mapping[str, tuple[str, str]]


def _start(root: Start, ratio: _Ratios, named: _Named, matrices: _Matrices) -> tuple[float, ...]:
    group = named[root.group]
    scale = ratio[group.dim] ** -0.5
    factor = members_factor(group.cov, range(group.size), group.name)
    own = (1.0,) if factor is None else factor[root.index]
    return tuple(float(weight) * scale for weight in own)


def _rows(root: Rows, ratio: _Ratios, named: _Named, matrices: _Matrices) -> tuple[float, ...]:
    return (ratio[root.dim] ** -0.5,)


def _twice(root: Twice, ratio: _Ratios, named: _Named, matrices: _Matrices) -> tuple[float, ...]:
    out, read = matrices[root.matrix][:: -1 if root.transpose else 1]
    return (ratio[read] / (2 * ratio[out]) ** 0.5,)


def _matrix(root: str, ratio: _Ratios, named: _Named, matrices: _Matrices) -> tuple[float, ...]:
    rows, cols = matrices[root]
    return ((ratio[cols] / ratio[rows]) ** 0.5,)


_WEIGHTS: Table[tuple[float, ...]] = Table(
    {Start: _start, Rows: _rows, Twice: _twice, str: _matrix}
)
