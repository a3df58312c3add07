"""``Registry``: the entries of one kind, found in the files of its folder.

A folder of the catalogue holds a complete file for each entry, or for a family of entries.
``discover`` imports every file of a folder and takes its ``ENTRY`` (or ``ENTRIES``), so there is no
second list to keep in step: a file without one stops the import at once. Other packages add entries
through the entry point group ``tpcalc.<folder>``; those are loaded when a name is asked that the
folder does not hold, or when the registry is listed.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any, Generic, Protocol, TypeVar

from tpcalc.errors import StudyError, UnknownName, raised
from tpcalc.sources import Source

OWN = "tpcalc"


class Entry(Protocol):
    """What every entry of the catalogue carries."""

    @property
    def name(self) -> str:
        """The name it is listed under."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names it is found by."""

    @property
    def text(self) -> str:
        """What it is, in one line."""

    @property
    def source(self) -> Source:
        """Where it is defined."""


T = TypeVar("T", bound=Entry)


class Registry(Mapping[str, T], Generic[T]):
    """A read-only mapping from names to entries, sorted by name.

    Names are found in any case, with ``-`` and ``_`` alike, and by their aliases.

    Example:
        >>> from tpcalc.activations.entries import REGISTRY
        >>> REGISTRY["Leaky-ReLU"].name, "silu" in REGISTRY
        ('leaky_relu', True)
    """

    def __init__(
        self, kind: str, entry_type: type[T], entries: Iterable[T], *, group: str = ""
    ) -> None:
        self.kind = kind
        self._entry_type = entry_type
        self.group = group
        self._complete = not group
        self._entries: dict[str, T] = {}
        self._keys: dict[str, str] = {}
        self._origins: dict[str, str] = {}
        for entry in entries:
            self._add(entry, OWN)

    def _add(self, entry: Any, origin: str) -> None:
        if not isinstance(entry, self._entry_type):
            raise ImportError(
                f"{origin}: an entry of kind {self.kind} must be a {self._entry_type.__name__}, "
                f"not {type(entry).__name__}."
            )
        keys = [_key(name) for name in (entry.name, *entry.aliases)]
        for key in keys:
            if key in self._keys:
                taken = self._keys[key]
                raise ImportError(
                    f"{origin}: the {self.kind} {entry.name!r} claims the name {key!r}, "
                    f"which {taken!r} of {self._origins[taken]} has."
                )
        self._keys.update(dict.fromkeys(keys, entry.name))
        self._entries[entry.name] = entry
        self._origins[entry.name] = origin

    def _load_others(self) -> None:
        """Load what other packages add; once."""
        if self._complete:
            return
        self._complete = True
        before = dict(self._entries), dict(self._keys), dict(self._origins)
        for point in sorted(entry_points(group=self.group), key=lambda point: point.name):
            origin = point.dist.name if point.dist is not None else point.value
            try:
                found = point.load()
                for entry in found if isinstance(found, tuple) else (found,):
                    self._add(entry, origin)
            except Exception as error:  # whatever a foreign file does when it is imported
                self._entries, self._keys, self._origins = before
                self._complete = False
                raise StudyError(
                    f"the {self.kind} entry {point.name!r} does not load: {raised(error)}.",
                    where=f"package {origin}",
                    hint="Mend or uninstall that package.",
                ) from error

    def _name_of(self, name: object) -> str | None:
        """The listed name that a spelling stands for."""
        if not isinstance(name, str):
            return None
        key = _key(name)
        if key not in self._keys:
            self._load_others()
        return self._keys.get(key)

    def __getitem__(self, name: str) -> T:
        """The entry of a name."""
        found = self._name_of(name)
        if found is None:
            raise UnknownName(self.kind, str(name), self.names)
        return self._entries[found]

    def __contains__(self, name: object) -> bool:
        return self._name_of(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        found = self._name_of(name)
        return default if found is None else self._entries[found]

    def __iter__(self) -> Iterator[str]:
        self._load_others()
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        self._load_others()
        return len(self._entries)

    @property
    def names(self) -> tuple[str, ...]:
        """Every spelling that is found: names and aliases."""
        self._load_others()
        aliases = {alias for entry in self._entries.values() for alias in entry.aliases}
        return tuple(sorted({*self._entries, *aliases}))

    def origin(self, name: str) -> str:
        """The package that an entry comes from."""
        return self._origins[self[name].name]


def _key(name: str) -> str:
    return name.strip().lower().replace("-", "_")


def discover(package: str, kind: str, entry_type: type[T], folder: str = "") -> Registry[T]:
    """Import every file of a folder of the catalogue and register its entries."""
    found: list[T] = []
    paths = sys.modules[package].__path__
    for name in sorted(info.name for info in pkgutil.iter_modules(paths)):
        module = importlib.import_module(f"{package}.{name}")
        if hasattr(module, "ENTRIES"):
            found.extend(module.ENTRIES)
        elif hasattr(module, "ENTRY"):
            found.append(module.ENTRY)
        else:
            raise ImportError(
                f"{module.__name__} has neither ENTRY nor ENTRIES: every file of a catalogue "
                f"folder defines a {kind} or several."
            )
    group = folder or package.rpartition(".")[2]
    return Registry(kind, entry_type, found, group=f"tpcalc.{group}")
