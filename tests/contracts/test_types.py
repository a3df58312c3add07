"""What checkers of types are told: programs of the README are typed, and every public name is."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tpcalc as tp
from tests.contracts.test_readme import ROOT, block
from tpcalc.activations import rows
from tpcalc.activations.entries import REGISTRY

STUB = ROOT / "tpcalc" / "__init__.pyi"
ROOMS = {"errors", "testing", "torch"}  # modules that are used as tp.errors, not as one name of it

# What is asked about the programs of the README, with the type that must be found.
ASKED = {
    "there_and_back": "tpcalc.dsl.trace.Traced",
    "tp.limit(there_and_back)": "tpcalc.evaluate.answers.Limit",
    'tp.limit(there_and_back)["overlap"].value': "float",
    'tp.limit(there_and_back)["h"].moment(lambda z: z**4)': "tpcalc.results.estimate.Estimate",
    "tp.simulate(there_and_back.build(), [8], 2).rows[0].name": "str",
    'tp.limit(there_and_back, values={"a": "1/2"}, given={"f": 1}).seed': "int",
    "tp.Samples([[0.6]], [1]).inputs": "tuple[tuple[float, ...], ...]",
    "tp.relu": "tpcalc.dsl.elementwise.Elementwise",
    "tp.relu(0.5)": "float",
    "tp.leaky_relu(0.2)": "tpcalc.dsl.elementwise.Elementwise",
    "net": "tpcalc.networks.own.Own",
    'tp.check(net, "mup").verdict': "str",
}
WITHIN = {
    "tp.gelu(tp.layers.layer_norm(h))": "tpcalc.dsl.vectors.Vector",
    "t.linear(t.outputs, t.n)(h)": "tpcalc.dsl.handles.Scalar",
}


def test_the_stub_has_every_public_name() -> None:
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    imported = {
        name.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    written = {
        ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
    }
    families = [REGISTRY[name] for name in REGISTRY]
    known = {name for family in families for name in (family.name, *family.aliases)}
    assert (imported | written) - {None} - ROOMS == {*tp.__all__, *known, *rows.REGISTRY}


@pytest.mark.slow
def test_programs_of_the_readme_are_typed(tmp_path: Path) -> None:
    asked = "\n".join(f"reveal_type({text})" for text in ASKED)
    inside = "".join(f"    reveal_type({text})\n" for text in WITHIN)
    source = "\n".join([block("example", "python"), block("network", "python")])
    before, last = source.rsplit("    return", 1)
    path = tmp_path / "readme.py"
    path.write_text(f"{before}{inside}    return{last}\n{asked}\n", encoding="utf-8")
    # Where the package is installed, errors inside it are not told: silent says so for this source.
    flags = ["--strict", "--follow-imports=silent", "--config-file=", "--cache-dir", tmp_path]
    words = [sys.executable, "-m", "mypy", *flags]
    ran = subprocess.run([*words, path], cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line for line in ran.stdout.splitlines() if ": error:" in line]
    assert (ran.returncode, lines) == (0, []), ran.stdout + ran.stderr
    found = [line.split('"')[1] for line in ran.stdout.splitlines() if "Revealed type" in line]
    assert found == [*WITHIN.values(), *ASKED.values()]
