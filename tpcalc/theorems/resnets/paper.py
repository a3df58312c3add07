"""The paper that this package is about."""

from __future__ import annotations

from tpcalc.sources import Source


def paper(item: str) -> Source:
    """A place in the paper.

    Example:
        >>> print(paper("Proposition 3"))
        Marion, Fermanian, Biau, Vert, Scaling ResNets in the large-depth regime, Proposition 3 \
(arXiv:2206.06929)
    """
    work = "Marion, Fermanian, Biau, Vert, Scaling ResNets in the large-depth regime"
    return Source(work, item, "2206.06929")
