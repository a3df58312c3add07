"""The documentation's programs run and print what the pages show."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from typer.main import get_command

import tpcalc as tp
from tpcalc.cli.app import app
from tpcalc.cli.commands.check import AT_FIRST
from tpcalc.views.answers.first_order import FITS, MEANS

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)\n```\n(?:\n```text\n(.*?)\n```\n)?", re.S | re.M)
PAGES = {
    page.relative_to(DOCS).as_posix(): blocks
    for page in sorted(DOCS.rglob("*.md"))
    if (blocks := BLOCK.findall(page.read_text(encoding="utf-8")))
}


def test_pages_with_programs_are_found() -> None:
    assert {"start/first-program.md", "how-to/add-an-activation.md"} <= set(PAGES)


NEW = "tpcalc/activations/entries/softsign.py"  # what the page on activations lets a reader write


def test_modules_that_pages_name_are_there() -> None:
    package = DOCS.parent / "tpcalc"
    rooms = "|".join(room.name for room in package.iterdir() if room.is_dir())
    named = re.compile(rf"`((?:tpcalc/)?(?:{rooms})/[a-z_/]+(?:\.py)?)`")
    pages = [DOCS.parent / "README.md", *DOCS.rglob("*.md")]
    found = {name for page in pages for name in named.findall(page.read_text(encoding="utf-8"))}
    places = {name: package / name.removeprefix("tpcalc/") for name in found - {NEW}}
    lost = {
        name
        for name, at in places.items()
        if not at.exists() and not at.with_suffix(".py").exists()
    }
    assert len(places) > 50 and not lost, lost


SLOW = (
    "how-to/a-network-of-your-own.md",
    "how-to/add-an-optimizer.md",
    "how-to/asked-often.md",
    "how-to/my-module.md",
    "how-to/my-network-is-a-transformer.md",
    "theory/depth.md",
    "theory/first-steps.md",
    "theory/integrable.md",
    "theory/modules.md",
)


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=pytest.mark.slow if p in SLOW else ()) for p in PAGES]
)
def test_programs_print_what_the_page_shows(
    page: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("documentation")
    monkeypatch.setitem(sys.modules, "documentation", module)
    for source, shown in PAGES[page]:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, page, "exec"), vars(module))
        assert printed.getvalue().split() == shown.split(), printed.getvalue()


def test_every_page_is_in_a_table_of_contents() -> None:
    listed: set[str] = set()
    for page in DOCS.rglob("*.md"):
        for body in re.findall(
            r"^```\{toctree\}\n(.*?)\n```$", page.read_text("utf-8"), re.S | re.M
        ):
            for line in body.splitlines():
                if line and not line.startswith(":"):
                    listed.update(
                        found.relative_to(DOCS).as_posix()
                        for found in page.parent.glob(line + ".md")
                    )
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert pages - listed == {"index.md"}


def test_the_reference_has_every_public_name() -> None:
    page = (DOCS / "reference" / "public.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\.\. auto(?:function|class|data):: (\w+)$", page, re.M)
    names = {n for n in tp.__all__ if n[0] != "_" and not isinstance(getattr(tp, n), ModuleType)}
    assert sorted(listed) == sorted(names)


@pytest.mark.parametrize(
    "page", ["../README.md", "start/first-report.md", "reference/command-line.md"]
)
def test_flags_that_a_page_names_exist(page: str) -> None:
    group = get_command(app)
    known = {
        word
        for command in group.commands.values()
        for parameter in command.params
        for word in parameter.opts
    } | {"--help"}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", (DOCS / page).read_text(encoding="utf-8")))
    assert named
    assert named <= known


def test_every_flag_is_explained() -> None:
    group = get_command(app)
    text = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    for name, command in group.commands.items():
        assert f"| `{name}` |" in text
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert parameter.opts[0] in text


# ---------------------------------------------------------------------------- words of first steps


def words_of(heading: str) -> dict[str, list[str]]:
    """The rows of a table of the reference of words, by word."""
    text = (DOCS / "reference" / "first-steps.md").read_text(encoding="utf-8")
    table = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [re.split(r" *\| *", line.strip("| ")) for line in re.findall(r"^\|.*$", table, re.M)]
    return {word: rest for word, *rest in rows[2:]}


def test_words_of_first_steps_are_those_of_the_reference() -> None:
    """What a parameter's word means stands below the table of an answer as it stands there."""
    networks, parameters = words_of("Of a network"), words_of("Of a parameter")
    assert {word: int(row[-1]) for word, row in networks.items()} == AT_FIRST
    assert {word: row[0] for word, row in parameters.items()} == {
        word: means for word, (_, means) in MEANS.items()
    }
    assert all(row[1] for row in (*networks.values(), *parameters.values()))
    assert set(words_of("Of a slope")) == set(FITS)
