"""Where a formula, an entry or a number comes from."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Source:
    """A place in the literature.

    Args:
        work: Authors and title, short.
        item: Equation, table or section.
        arxiv: The arXiv identifier, if there is one.

    Example:
        >>> print(Source("Cho, Saul, Kernel methods for deep learning", "eq. 1"))
        Cho, Saul, Kernel methods for deep learning, eq. 1
    """

    work: str
    item: str = ""
    arxiv: str = ""

    def at(self, item: str) -> Source:
        """Another place in the same work."""
        return replace(self, item=item)

    def __str__(self) -> str:
        tail = f" (arXiv:{self.arxiv})" if self.arxiv else ""
        return ", ".join(part for part in (self.work, self.item) if part) + tail


INTEGRABLE = Source(
    "Hajjar, Chizat, Giraud, Training integrable parameterizations", arxiv="2110.15596"
)
