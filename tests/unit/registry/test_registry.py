"""Discovery of entries, names, and entries of other packages."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from tpcalc.activations.entries import REGISTRY as ACTIVATIONS
from tpcalc.errors import StudyError, UnknownName
from tpcalc.registry import registry as module
from tpcalc.registry.registry import Registry, discover
from tpcalc.sources import Source
from tpcalc.training.losses import REGISTRY as LOSSES
from tpcalc.training.optimizers import REGISTRY as OPTIMIZERS
from tpcalc.training.parameterizations import REGISTRY as PARAMETERIZATIONS

KINDS = {
    "activations": ACTIVATIONS,
    "losses": LOSSES,
    "optimizers": OPTIMIZERS,
    "parameterizations": PARAMETERIZATIONS,
}
FOLDERS = {"activations": "tpcalc.activations.entries"}  # others: tpcalc.training and their kind


BOOK = Source("A book")


@dataclass(frozen=True)
class Thing:
    name: str
    aliases: tuple[str, ...] = ()
    text: str = "a thing"
    source: Source = BOOK


def things(*names: str, group: str = "") -> Registry[Thing]:
    return Registry("thing", Thing, [Thing(name) for name in names], group=group)


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_is_described_and_cites(kind: str) -> None:
    assert KINDS[kind]
    assert KINDS[kind].group == f"tpcalc.{kind}"  # what other packages add entries to
    for name, entry in KINDS[kind].items():
        assert entry.name == name
        assert entry.text and "\n" not in entry.text
        assert entry.source.work
        assert KINDS[kind].origin(name) == "tpcalc"


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_of_the_folder_is_in_the_registry(kind: str) -> None:
    package = sys.modules[FOLDERS.get(kind, f"tpcalc.training.{kind}")]
    files = list(Path(package.__path__[0]).glob("[!_]*.py"))
    assert len(files) > 3
    for path in files:
        found = sys.modules[f"{package.__name__}.{path.stem}"]
        entries = found.ENTRIES if hasattr(found, "ENTRIES") else (found.ENTRY,)
        assert entries
        for entry in entries:
            assert KINDS[kind][entry.name] is entry


def test_names_are_found_in_any_spelling() -> None:
    assert PARAMETERIZATIONS["Naive_IP"] is PARAMETERIZATIONS["naive-ip"]
    assert ACTIVATIONS["linear"] is ACTIVATIONS["identity"]
    assert ACTIVATIONS["SiLU"] is ACTIVATIONS["swish"]
    assert " RELU " in ACTIVATIONS and 3 not in ACTIVATIONS
    assert list(ACTIVATIONS) == sorted(ACTIVATIONS)


def test_an_unknown_name_lists_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"no activation called 'rellu'.*'relu'"):
        ACTIVATIONS["rellu"]
    assert ACTIVATIONS.get("rellu") is None
    assert "rellu" not in ACTIVATIONS


def test_the_registry_cannot_be_written() -> None:
    with pytest.raises(TypeError):
        ACTIVATIONS["mine"] = ACTIVATIONS["relu"]  # type: ignore[index]


def test_two_entries_of_one_name_are_refused() -> None:
    with pytest.raises(ImportError, match=r"'A-b' claims the name 'a_b', which 'a_b'"):
        Registry("thing", Thing, [Thing("a_b"), Thing("A-b")])


def test_an_entry_of_another_class_is_refused() -> None:
    with pytest.raises(ImportError, match="must be a Thing, not str"):
        Registry("thing", Thing, ["text"])  # type: ignore[list-item]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "shelf"
    for name in [name for name in sys.modules if name.partition(".")[0] == "shelf"]:
        del sys.modules[name]


def test_files_are_found_by_their_presence(folder: Path) -> None:
    (folder / "b.py").write_text("ENTRY = 'b'")
    (folder / "a.py").write_text("ENTRIES = ('a1', 'a2')")
    __import__("shelf")

    class Named(str):
        name = property(str)
        aliases = ()

    # The entries above are plain texts, so what is found shows in what is refused.
    with pytest.raises(ImportError, match="must be a Named"):
        discover("shelf", "thing", Named)
    assert {"shelf.a", "shelf.b"} <= set(sys.modules)


def test_a_file_without_entry_stops_the_import(folder: Path) -> None:
    (folder / "empty.py").write_text("")
    __import__("shelf")
    with pytest.raises(ImportError, match=r"shelf\.empty has neither ENTRY nor ENTRIES"):
        discover("shelf", "thing", Thing)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Another package that adds the thing 'far'; yields the groups that were asked for."""
    package = ModuleType("elsewhere")
    package.FAR = Thing("far")  # type: ignore[attr-defined]
    package.NEAR = Thing("near")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "elsewhere", package)
    asked: list[str] = []

    def points(group: str) -> list[EntryPoint]:
        asked.append(group)
        values = {"tpcalc.things": "FAR", "tpcalc.clash": "NEAR", "tpcalc.broken": "LOST"}
        return [EntryPoint("plug", f"elsewhere:{values[group]}", group)]

    monkeypatch.setattr(module, "entry_points", points)
    return asked


def test_other_packages_are_loaded_when_they_are_needed(elsewhere: list[str]) -> None:
    found = things("near", group="tpcalc.things")
    assert found["near"].name == "near" and not elsewhere
    assert found["far"].name == "far" and elsewhere == ["tpcalc.things"]
    assert list(found) == ["far", "near"] and len(elsewhere) == 1
    assert found.origin("far") == "elsewhere:FAR"


@pytest.mark.parametrize("group", ["tpcalc.clash", "tpcalc.broken"])
def test_a_broken_package_is_named_and_leaves_the_rest_usable(
    elsewhere: list[str], group: str
) -> None:
    found = things("near", group=group)
    for _ in range(2):
        with pytest.raises(StudyError, match=r"'plug' does not load.*Mend or uninstall"):
            list(found)
    assert found["near"].name == "near"
