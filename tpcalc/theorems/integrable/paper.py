"""The paper that this package is about."""

from __future__ import annotations

from tpcalc.sources import Source


def paper(item: str) -> Source:
    """A place in the paper.

    Example:
        >>> print(paper("Theorem 4.1"))
        Hajjar, Chizat, Giraud, Training integrable parameterizations, Theorem 4.1 \
(arXiv:2110.15596)
    """
    work = "Hajjar, Chizat, Giraud, Training integrable parameterizations"
    return Source(work, item, "2110.15596")
