"""What a user types on one machine and on some, as the page says it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "many-machines.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.S | re.M)


@pytest.mark.slow
def test_lines_of_the_page_give_the_same_bytes_here_and_there(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs the dask extra")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("tpcalc", "dask"):
        script = tools / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -m {name} "$@"\n')
        script.chmod(0o755)
    (study,) = blocks("toml")
    (tmp_path / "study.toml").write_text(study)
    lines = "".join(blocks("sh")).replace("8786", port)
    script = f"set -e\ntrap 'kill $(jobs -p)' EXIT\n{lines}"
    setting = {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
    }
    ran = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=setting,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "there.csv").read_text().count("\n") > 6


def test_python_of_clusters_compiles() -> None:
    programs = blocks("py")
    assert len(programs) == 2
    for program in programs:
        compile(program, "many-machines.md", "exec")
