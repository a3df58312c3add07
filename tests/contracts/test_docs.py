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

from tpcalc.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)\n```\n(?:\n```text\n(.*?)\n```\n)?", re.S | re.M)
PAGES = {
    page.relative_to(DOCS).as_posix(): blocks
    for page in sorted(DOCS.rglob("*.md"))
    if (blocks := BLOCK.findall(page.read_text(encoding="utf-8")))
}


def test_pages_with_programs_are_found() -> None:
    assert {"start/first-program.md", "how-to/add-an-activation.md"} <= set(PAGES)


SLOW = (
    "how-to/a-network-of-your-own.md",
    "how-to/add-an-optimizer.md",
    "how-to/my-network-is-a-transformer.md",
    "theory/first-steps.md",
    "theory/integrable.md",
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
