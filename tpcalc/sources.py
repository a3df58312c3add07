"""Where a formula, an entry or a number comes from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version


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

LIBRARIES = ("numpy", "scipy", "numba", "torch", "sympy")


@lru_cache(maxsize=1)  # reading the metadata of a package takes milliseconds
def library_versions(names: tuple[str, ...] = LIBRARIES) -> tuple[tuple[str, str], ...]:
    """Installed versions, without importing anything; absent libraries are left out."""
    found = []
    for name in names:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return tuple(found)


@lru_cache(maxsize=1)
def own_version() -> str:
    """The version of this package."""
    try:
        return version("tpcalc")
    except PackageNotFoundError:
        return "0.1.0"
