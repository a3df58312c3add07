"""Families of fluctuations: those of one family are drawn together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpcalc.engine.starts import members_factor
from tpcalc.limit.graph import Rows, Start
from tpcalc.program.nodes import Dim, Group

__all__ = ["family"]


def family(
    root: Start | Rows | str,
    groups: Iterable[Group],
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
    if isinstance(root, Rows):
        return f"rows {root.dim}", (ratio[root.dim] ** -0.5,)
    if isinstance(root, str):
        rows, cols = matrices[root]
        return f"matrix {root}", ((ratio[cols] / ratio[rows]) ** 0.5,)
    group = next(group for group in groups if group.name == root.group)
    scale = ratio[group.dim] ** -0.5
    factor = members_factor(group.cov, range(len(group.mean)), group.name)
    if factor is None:
        return f"start {group.name}[{root.index}]", (scale,)
    return f"start {group.name}", tuple(weight * scale for weight in factor[root.index])
