"""Families of fluctuations: those of one family are drawn together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpcalc.engine.starts import members_factor
from tpcalc.limit.graph import Root, Rows, Twice, family_of
from tpcalc.program.nodes import Dim, Family

__all__ = ["family"]


def family(
    root: Root,
    groups: Iterable[Family],
    dims: Iterable[Dim],
    matrices: Mapping[str, tuple[str, str]],
) -> tuple[str, tuple[float, ...]]:
    """The name of the family of a fluctuation, and its weights there.

    The covariance of two of a family is the inner product of their weights, times E Z^x Z^y for
    each pair of their vectors.

    Args:
        root: The root of the fluctuation.
        groups: Of the program.
        dims: Its dimension classes.
        matrices: The dimension classes of rows and columns of each matrix.
    """
    ratio = {dim.name: float(dim.ratio) for dim in dims}
    named = {group.name: group for group in groups}
    name = family_of(root, named)
    if isinstance(root, Rows):
        return name, (ratio[root.dim] ** -0.5,)
    if isinstance(root, str):
        rows, cols = matrices[root]
        return name, ((ratio[cols] / ratio[rows]) ** 0.5,)
    if isinstance(root, Twice):
        out, read = matrices[root.matrix][:: -1 if root.transpose else 1]
        return name, (ratio[read] / (2 * ratio[out]) ** 0.5,)
    group = named[root.group]
    scale = ratio[group.dim] ** -0.5
    factor = members_factor(group.cov, range(group.size), group.name)
    own = (1.0,) if factor is None else factor[root.index]
    return name, tuple(float(weight) * scale for weight in own)
