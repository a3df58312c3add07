"""Names of outputs are spelled in one file: spelled anew there, every page comes out the same."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[3]
SIGNS = '"[", "]", ",", ":", "@", "-"'
OTHERS = '"{", "}", ";", "!", "$", "~"'
WRITTEN = str.maketrans("[],:@-", "{};!$~")
PAGES = """
import sys
from typer.testing import CliRunner
from tpcalc.cli.app import app

net = "mlp --depth 1 --bias all --steps 1 --samples 1".split()
watched = [*net, "--watch", "h,dW_x,dB"]
few = "--widths 16,32 --seeds 2".split()
asked = [(word, watched) for word in ("orders", "limit")]
asked += [("check", net[:-2]), ("compare", [*watched, *few])]
pages = [[word, *words, *more] for word, words in asked for more in ([], ["--json"])]
pages += [["report", *net, *few, "-o", f"{sys.argv[1]}/page.{end}"] for end in ("md", "html")]
for number, words in enumerate(pages):
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, (words, ran.output, ran.exception)
    with open(f"{sys.argv[1]}/{number}.txt", "w", encoding="utf-8") as file:
        file.write(ran.stdout)
"""


def test_every_page_comes_out_whatever_names_look_like(tmp_path: Path) -> None:
    roots = (ROOT, _respelled(tmp_path))
    with ThreadPoolExecutor() as pool:
        own, other = pool.map(_pages, roots, (tmp_path / "own", tmp_path / "other"))
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


def _pages(root: Path, folder: Path) -> dict[str, str]:
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PAGES, str(folder)],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())}
    return {name: text.replace(str(folder), "") for name, text in texts.items()}


def _told(text: str) -> str:
    """A page in one spelling, without what is of the moment, and quotes that it needs."""
    text = text.replace("&#34;", '"').replace("\\", "")
    text = re.sub(r'output "([^"]+)"', r"output \1", text)
    text = re.sub(r"\b[0-9a-f]{12,64}\b|(?<=seconds\": )[0-9.]+|[0-9.]+ s\b", "", text)
    return text.translate(WRITTEN)
