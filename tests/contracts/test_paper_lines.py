"""Every line that a page about a paper offers for one of its results runs."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
THEORY = DOCS / "theory"
PAGES = ("integrable", "low_rank", "nlc", "practice", "depth", "resnets")
CLAIM = re.compile(r"^\|.* \| `(?P<line>.*)` \| (?P<given>.*) \|$", re.MULTILINE)
CELL = re.compile(r"^\|(?P<cells>.*)\|\s*$", re.MULTILINE)


def lines_of(page: str) -> tuple[str, list[str]]:
    """The code that comes before the lines, and the lines: the last cells of a table."""
    text = (THEORY / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text.split("| result |")[0], re.DOTALL)
    found = []
    for row in CELL.finditer(text):
        last = row["cells"].split(" | ")[-1].strip()
        if last.startswith(("`s.", "`p.", "`tp.check", "`ordered.", "`chaotic.")) or (
            last.startswith("`") and last.endswith((")`", "]`"))
        ):
            found.append(last.strip("`"))
    return "".join(blocks), found


LONG = (
    "p.table('A.1')",
    'tp.integrable.equiv_hp(net(3, "relu"), "ip-llr", data)',
    'tp.integrable.nontrivial_stable(net(3, "relu^2"), "ip-llr:2")',
    '[str(tp.depth.first_update("adam", k))',
)
CASES = [(page, line) for page in PAGES for line in lines_of(page)[1]]


@cache
def space_of(page: str) -> dict[str, Any]:
    """The names of a page; only of pages whose lines are run."""
    space: dict[str, Any] = {}
    exec(lines_of(page)[0], space)
    return space


def test_there_are_lines() -> None:
    assert len(CASES) >= 100


@pytest.mark.parametrize(
    ("page", "line"),
    [
        pytest.param(*case, marks=pytest.mark.slow if case[1].startswith(LONG) else (), id=case[1])
        for case in CASES
    ],
)
def test_line_runs(page: str, line: str) -> None:
    found = eval(line, space_of(page))
    assert found is not None
    assert str(found)


CLAIMS = CLAIM.findall((DOCS / "claims.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    made: dict[str, Any] = {}
    text = (DOCS / "claims.md").read_text(encoding="utf-8")
    exec("".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), made)
    return made


@pytest.mark.parametrize(("line", "given"), CLAIMS, ids=[line for line, _ in CLAIMS])
def test_line_about_a_claim_gives_what_the_page_says(
    names: dict[str, Any], line: str, given: str
) -> None:
    assert str(eval(line, names)) == given


def test_every_claim_has_a_line() -> None:
    text = (DOCS / "claims.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\| (?!where|---)", text, re.MULTILINE)) == len(CLAIMS) > 10
