"""Formulas of limits of blocks: those of their cells are the ones of a program of cells."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping
from xml.etree import ElementTree

import numpy as np
import pytest
import sympy

import tpcalc as tp
from tests.agreements.test_blocks import RUNS, cases, run_of
from tpcalc.errors import TpcalcError, UnknownName
from tpcalc.limit.derive import derive
from tpcalc.limit.express import express

FUNCTIONS = {
    "relu": lambda z: sympy.Max(0, z),
    "step": sympy.Heaviside,
    "normal_cdf": lambda z: (1 + sympy.erf(z / sympy.sqrt(2))) / 2,
    "normal_pdf": lambda z: sympy.exp(-(z**2) / 2) / sympy.sqrt(2 * sympy.pi),
}
ATOM = re.compile(r"(?:hat\(|E\[|G\[|[A-Za-z]\w*\[)")


def pieces(text: str) -> tuple[str, dict[str, str]]:
    """A formula with a letter for each random variable and number in it."""
    found: dict[str, str] = {}
    out, at = "", 0
    while start := ATOM.search(text, at):
        end, depth = start.end(), 1
        while depth:
            depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(text[end], 0)
            end += 1
        name = text[start.start() : end]
        out += text[at : start.start()] + found.setdefault(name, f"v{len(found)}")
        at = end
    return out + text[at:], found


def value(name: str, formulas: Mapping[str, str], known: dict[str, float]) -> float:
    """A formula with those of other outputs in it, and a number for each hat and average.

    It is nan where some of them have no formula, or a vector has no name.
    """
    if name not in known and name not in formulas:
        return math.nan
    if name not in known:
        text, found = pieces(formulas[name])
        numbers = {
            letter: value(atom[2:-1], formulas, known)
            if atom.startswith("Z[")
            else math.nan
            if re.search(r"\bv\d+\b", atom)
            else number(atom)
            for atom, letter in found.items()
        }
        # Factors stand side by side.
        text = re.sub(r"(?<=[\w)]) (?=[\w(])", "*", text).replace("^", "**")
        expr = sympy.sympify(text, locals=FUNCTIONS)
        plain = {str(symbol): number(str(symbol)) for symbol in expr.free_symbols}
        gone = any(map(math.isnan, numbers.values()))
        known[name] = math.nan if gone else float(expr.evalf(subs=plain | numbers))
    return known[name]


def number(atom: str) -> float:
    """The same number for the same random variable, and for the average of the same product."""
    if atom.startswith("E[") and not atom.startswith("E[d "):
        inside, found = pieces(atom[2:-1])
        whole = {letter: name for name, letter in found.items()}
        words = [whole.get(word, word) for word in re.split(r"\s(?![^()]*\))", inside)]
        if not {"+", "-"} & set(words):
            sign = "-" * (sum(word.startswith("-") for word in words) % 2)
            atom = sign + " ".join(sorted(word.removeprefix("-") for word in words))
    return 0.5 + zlib.crc32(atom.encode()) / 2**32


FEW = ("biases, mup", "resnet, mup", "momentum")


@pytest.mark.parametrize("name", cases(RUNS, FEW))
def test_formulas_of_cells_are_those_of_single_vectors(name: str) -> None:
    run = run_of(*RUNS[name])
    settings = {"samples": 64, "replicates": 2}
    cells = tp.limit(run.unrolled.cells, **settings)
    assert run.unrolled.blocks is not None
    blocks = tp.limit(run.unrolled.blocks, **settings, reading="blocks")
    assert blocks.graph.has_blocks
    one, two = written(cells), written(blocks)
    both = one.keys() & two.keys()
    assert len(both) >= 0.6 * len(one)  # the others are too large in one of them
    left, right = ({name: own[name] for name in both} for own in (one, two))
    first: dict[str, float] = {}
    second: dict[str, float] = {}
    found = [(value(key, left, first), value(key, right, second)) for key in sorted(both)]
    known = [pair for pair in found if not any(map(math.isnan, pair))]
    assert len(known) >= 6
    for pair in known:
        assert pair[0] == pytest.approx(pair[1], rel=1e-4, abs=1e-5)


def written(found: tp.Limit) -> dict[str, str]:
    """The formulas that there are of vectors."""
    out = {}
    for name in found:
        try:
            formula = found.formula(name)
        except TpcalcError:
            continue
        if formula is not None and name[0] != "f":
            out[name] = formula.text.rpartition(" = ")[2]
    for name, text in list(out.items()):  # one vector may have two names
        if text.isidentifier():
            for other, old in out.items():
                out[other] = old.replace(f"Z[{name}]", text).replace(name, text)
    return out


def test_formulas_of_blocks_are_of_matrices() -> None:
    program = run_of(*RUNS["tanh, mup"]).unrolled.blocks
    assert program is not None
    graph = derive(program)
    found = {name: formula.text for name, formula in express(graph).items()}
    rows = "[[2.04092, -2.55567, 0.418099], [-0.56777, -0.452649, -0.215597]]"
    assert found["h[1,0,:]"] == f"H[1,0](sample:2) = sum_(in:3) x[0,0] W1; x[0,0] = {rows}"
    assert found["h[2,0,:]"] == "H[2,0](sample:2) = hat(W2 tanh(H[1,0]))"
    assert found["h[2,1,:]"] == (  # as that of h[2,1,0], whose 0.23944 is 0.25 * 0.957759
        "H[2,1](sample:2) = hat(W2 tanh(H[1,1])) + "
        "sum_(sample':2) E[d tanh(H[1,1])/d hat(W2^T dH[2,0](sample'))] dH[2,0](sample') + "
        "sum_(sample':2) 0.25 dH[2,0](sample') E[tanh(H[1,0](sample')) tanh(H[1,1])] "
        "y[0,0](sample'); y[0,0] = [0.957759, -0.199802]"
    )
    shown = express(graph, ["h[2,1,:]"])["h[2,1,:]"]
    assert r"H_{2,1}" in shown.latex and r"\sum_" in shown.latex
    assert r"\begin{pmatrix}0.957759 & -0.199802\end{pmatrix}" in shown.latex
    ElementTree.fromstring(shown.mathml.replace("&InvisibleTimes;", ""))
    assert "<mtable>" in shown.mathml


def test_large_arrays_are_given_by_their_range_and_formulas_do_not_grow() -> None:
    data = tp.Samples(np.linspace(-1, 1, 48).reshape(16, 3), np.linspace(0, 1, 16))
    run = tp.Training(tp.MLP(2, "tanh"), "mup", data, steps=2, batch=16)
    assert run.unrolled.blocks is not None
    text = express(derive(run.unrolled.blocks))["h[2,1,:]"].text
    assert text.endswith("y[0,0] in [0, 1]") and "sum_(sample':16)" in text


def test_the_table_has_formulas_of_blocks_and_cells_have_their_own() -> None:
    program = run_of(*RUNS["tanh, mup"]).unrolled.blocks
    asked = ["h[2,0,*"]
    found = tp.limit(program, samples=64, replicates=2, formulas=asked, reading="blocks")
    rows = {row.name: row.formula for row in found.table.vectors}
    assert rows["h[2,0,0]"] == rows["h[2,0,1]"] == found.formula("h[2,0,:]")
    assert rows["h[1,0,0]"] is None
    assert found["h[2,0,1]"].formula.text == "Z[h[2,0,1]] = hat(W2 tanh(h[1,0,1]))"
    with pytest.raises(UnknownName):
        found.formula("h[9,0,0]")
