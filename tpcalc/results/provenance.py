"""Making provenance records: versions of what a number depends on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

from tpcalc.results.tables import Provenance

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


def provenance(
    digest: str, seed: int | None, settings: Mapping[str, str], seconds: float
) -> Provenance:
    """The provenance of a result computed now."""
    return Provenance(
        _own_version(), digest, seed, tuple(settings.items()), library_versions(), seconds
    )


@lru_cache(maxsize=1)
def _own_version() -> str:
    try:
        return version("tpcalc")
    except PackageNotFoundError:
        return "0.1.0"
