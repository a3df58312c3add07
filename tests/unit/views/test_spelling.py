"""Names of outputs are spelled in one file: spelled anew there, every page comes out the same."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tpcalc.cli.app import app

ROOT = Path(__file__).parents[3]
SIGNS = '"[", "]", ",", ":", "@", "-"'
OTHERS = '"{", "}", ";", "!", "$", "~"'
WRITTEN = str.maketrans("[],:@-", "{};!$~")
NETWORK = ["mlp", "--depth", "1", "--steps", "1"]
WATCHED = [*NETWORK, "--bias", "all", "--samples", "1", "--watch", "h,dW_x,dB"]
REPORTED = [*NETWORK, "--bias", "first", "--samples", "1"]
LIMIT = ["--particles", "256", "--replicates", "2"]
FINITE = ["--widths", "16,32", "--seeds", "2"]
ASKED = (
    ["orders", *WATCHED],
    ["limit", *WATCHED, *LIMIT],
    ["check", *NETWORK, "--bias", "all"],
    ["compare", *WATCHED, *LIMIT, *FINITE],
)


def write_pages(folder: Path) -> None:
    """What commands print and write, as files of a new folder."""
    folder.mkdir()
    pages = [[*words, *more] for words in ASKED for more in ([], ["--json"])]
    files = (str(folder / f"page.{ending}") for ending in ("md", "html"))
    pages += [["report", *REPORTED, *LIMIT, *FINITE, "-o", file] for file in files]
    for number, words in enumerate(pages):
        ran = CliRunner().invoke(app, words)
        assert ran.exit_code == 0, (words, ran.output, ran.exception)
        (folder / f"{number}.txt").write_text(ran.stdout, encoding="utf-8")


@pytest.mark.slow
def test_every_page_comes_out_whatever_names_look_like(tmp_path: Path) -> None:
    write_pages(tmp_path / "own")
    _run_this_file(_respelled(tmp_path), tmp_path / "other")
    own, other = (_texts(tmp_path / name) for name in ("own", "other"))
    assert own.keys() == other.keys() and len(own) == 12
    assert sum(text.count("{1;1;0}") for text in other.values()) > 5
    for name in own:
        assert _told(own[name]) == _told(other[name]), name


def _respelled(folder: Path) -> Path:
    """The package with another spelling of names."""
    shutil.copytree(ROOT / "tpcalc", folder / "tpcalc", ignore=shutil.ignore_patterns("*.pyc"))
    names = folder / "tpcalc" / "names.py"
    text = names.read_text(encoding="utf-8")
    assert text.count(SIGNS) == 1
    names.write_text(text.replace(SIGNS, OTHERS), encoding="utf-8")
    return folder


def _run_this_file(root: Path, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, __file__, str(folder)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _texts(folder: Path) -> dict[str, str]:
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())}
    return {name: text.replace(str(folder), "") for name, text in texts.items()}


def _told(text: str) -> str:
    """A page in one spelling, without what is of the moment, and quotes that it needs."""
    text = text.replace("&#34;", '"').replace("\\", "")
    text = re.sub(r'output "([^"]+)"', r"output \1", text)
    text = re.sub(r"\b[0-9a-f]{12,64}\b|(?<=seconds\": )[0-9.]+|[0-9.]+ s\b", "", text)
    return text.translate(WRITTEN)


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
