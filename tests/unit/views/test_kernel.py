"""Kernels as tables, pages, Markdown, notebooks and pictures."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from golden.exponents import ORDERS
from golden.kernels import BETWEEN, KERNEL, LABELS, SAMPLED, SEVERAL
from unit.views.rendering import drawn, files, printed, same_as_golden, shown

from tpcalc.errors import StudyError
from tpcalc.results import Kernel
from tpcalc.views import ReportInput, render_html, render_markdown
from tpcalc.views.answers.kernel import (
    SPECTRUM_ROWS,
    blocks,
    has_spectrum,
    judge_kernel,
    kernel_figure,
    kernel_lines,
    kernel_summary,
    kernel_tables,
    sorted_rows,
)
from tpcalc.views.faces import html
from tpcalc.views.page import report

ALL = (KERNEL, SAMPLED, BETWEEN, SEVERAL)


def statistics(kernel: Kernel, kind: str = "nngp") -> dict[str, str]:
    table = kernel_tables(kernel)[0]
    column = [cell.text for cell in table.head].index(kind.upper())
    return {row[0].text: row[column].text for row in table.rows}


def with_nngp(matrix: Any, **changes: Any) -> Kernel:
    return replace(KERNEL, nngp=np.asarray(matrix), ntk=None, labels=(), **changes)


def test_terminal_is_as_before() -> None:
    same_as_golden("\n".join(printed(shown(one)) for one in ALL), "kernels.txt")


def test_markdown_is_as_before() -> None:
    parts = [render_markdown(ReportInput("A kernel", kernel=one)) for one in ALL]
    same_as_golden("\n".join(parts), "kernels.md")


def test_levels() -> None:
    levels = [judge_kernel(one).level for one in ALL]
    assert levels == ["good", "info", "good", "good"]


def test_what_is_not_told_from_zero_is_a_bound() -> None:
    found = statistics(with_nngp(np.ones((4, 4)), error=1e-9, coincident_error=None))
    assert re.fullmatch(r"<= \d(\.\d)?e-9", found["Smallest eigenvalue"])
    off = with_nngp(np.ones((4, 4)), error=1e-9, coincident_error=None).resolution("nngp")
    assert float(found["Smallest eigenvalue"][3:]) >= off
    least = float(found["Condition number"].removeprefix(">= "))
    assert 0.8 * 4 / off < least < 4 / off
    nothing = statistics(with_nngp(np.zeros((2, 2))))
    assert nothing["Smallest eigenvalue"] == "<= 0"
    assert "Condition number" not in nothing and "Effective rank" not in nothing


def test_large_kernels_go_without_a_spectrum() -> None:
    rows = SPECTRUM_ROWS + 1  # entries that are one number in memory
    large = with_nngp(np.broadcast_to(np.float64(1), (rows, rows)))
    assert not has_spectrum(large)
    table = kernel_tables(large)[0]
    assert f"of more than {SPECTRUM_ROWS} rows are left out" in table.note
    assert "Largest eigenvalue" not in {row[0].text for row in table.rows}
    figure = kernel_figure(large)
    assert [panel.title for panel in figure.panels] == ["NNGP, entries"]
    assert "left out" in figure.note and len(drawn(figure, "k")) == 1


def test_entries_that_may_be_zero_are_bounds() -> None:
    matrix = np.array([[1.0, 1e-9, 2e-3], [1e-9, 4.0, 0.0], [2e-3, 0.0, 1.0]])
    found = kernel_tables(with_nngp(matrix, error=1e-9, coincident_error=None))[1].rows
    assert [cell.text for cell in found[0]] == ["0", "1", "|K| <= 3.1e-9", "0.002"]
    assert found[1][3].text == "|K| <= 2e-9"
    exact = with_nngp(matrix, error=0.0, coincident_error=0.0)
    assert [cell.text for cell in kernel_tables(exact)[1].rows[1]] == ["1", "1e-9", "4", "0"]
    assert kernel_lines(exact)[0] == "Every entry is exact."


def test_rows_are_sorted_by_label() -> None:
    order, labels = sorted_rows(KERNEL)
    assert [LABELS[row] for row in order] == ["0"] * 3 + ["1"] * 3 + ["10"] * 2
    assert labels == [("0", 3), ("1", 3), ("10", 2)]
    assert sorted_rows(BETWEEN) == ([0, 1, 2], [])
    mixed = replace(KERNEL, labels=("b", "2", "a", "b", "2", "a", "10", "a"))
    assert [label for label, _ in sorted_rows(mixed)[1]] == ["2", "10", "a", "b"]


def test_blocks_are_means() -> None:
    matrix = np.arange(30.0).reshape(5, 6)
    found = blocks(matrix, most=3)
    assert found.shape == (3, 3)
    assert found[0, 0] == matrix[:1, :2].mean() and found[2, 1] == matrix[3:, 2:4].mean()
    assert np.array_equal(blocks(matrix), matrix)
    assert np.array_equal(blocks(matrix, rows=np.array([1, 0, 2, 3, 4]))[0], matrix[1])


def pixels(svg: str) -> np.ndarray[Any, Any]:
    """The colours of the first image of a drawing."""
    from PIL import Image

    data = re.search(r'href="data:image/png;base64,\s*([^"]+)"', svg)
    assert data is not None
    return np.array(Image.open(io.BytesIO(base64.b64decode(data[1]))))


def test_a_map_shows_the_matrix() -> None:
    shades = pixels(drawn(kernel_figure(BETWEEN), "k")[0])[:, :, 1].astype(float)
    assert BETWEEN.nngp is not None
    assert shades.shape == BETWEEN.nngp.shape
    order = np.argsort(BETWEEN.nngp.ravel(), kind="stable")
    assert (np.diff(shades.ravel()[order]) >= 0).all()  # green rises with the entry
    assert shades.min() < 50 and shades.max() > 200


def test_a_map_is_sorted_and_of_limited_size() -> None:
    size = 600
    labels = tuple("ab"[row % 2] for row in range(size))
    same = np.array([[float(a == b) for b in labels] for a in labels])
    kernel = with_nngp(same + np.eye(size))
    svg = drawn(kernel_figure(replace(kernel, labels=labels)), "k")[1]
    shades = pixels(svg)[:, :, 1].astype(float)
    assert shades.shape == (256, 256)
    half = 127
    assert shades[:half, :half].min() > shades[:half, 130:].max()  # the two classes, as squares
    note = kernel_figure(replace(kernel, labels=labels)).note
    assert "mean of a block of the 600 x 600 inputs" in note and "sorted by label" in note
    assert "in the order given" in kernel_figure(kernel).note


def test_the_spectrum_as_a_panel() -> None:
    panel = kernel_figure(KERNEL).panels[0]
    assert [(line.label, line.shape) for line in panel.series] == [
        ("NNGP", "line"),
        ("NTK", "line"),
    ]
    assert panel.series[0].x == tuple(map(float, range(1, 9)))
    assert panel.series[0].y == tuple(KERNEL.spectrum("nngp"))
    noisy = with_nngp(np.ones((4, 4)) + 1e-7 * np.eye(4), error=1e-6)
    figure = kernel_figure(noisy)
    dashed = figure.panels[0].series[1]
    assert (dashed.shape, dashed.y[0]) == ("dash", noisy.resolution("nngp"))
    assert "below a dashed line" in figure.note and "dashed" not in kernel_figure(KERNEL).note


@pytest.mark.parametrize(
    "matrix",
    [[[2.0]], np.zeros((3, 3)), np.ones((5, 5)), 1e-200 * np.eye(3), 1e200 * np.eye(3)],
    ids=["one", "zero", "constant", "tiny", "huge"],
)
def test_odd_kernels_are_drawn(matrix: Any) -> None:
    kernel = with_nngp(matrix)
    for svg, text in files(kernel_figure(kernel)):
        assert ElementTree.fromstring(svg).get("aria-label") == text
    assert "<table" in html(kernel)


def test_same_bytes() -> None:
    import matplotlib

    first = files(kernel_figure(KERNEL))
    with matplotlib.rc_context({"image.cmap": "jet", "font.size": 30}):
        assert files(kernel_figure(KERNEL)) == first
    assert render_html(ReportInput("k", kernel=KERNEL)) == render_html(
        ReportInput("k", kernel=KERNEL)
    )


@pytest.mark.parametrize("kernel", ALL)
def test_pages(kernel: Kernel) -> None:
    page = render_html(ReportInput("A <kernel>", kernel=kernel))
    assert "<title>A &lt;kernel&gt;</title>" in page and "<script" not in page
    outside = [word for word in re.findall(r'(?:href|src)="([^"]*)"', page) if word[0] != "#"]
    assert all(word.startswith("data:") for word in outside)
    assert page.count('role="img"') == len(kernel_figure(kernel).panels)
    identifiers = re.findall(r' id="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))


@pytest.mark.parametrize("kernel", ALL)
def test_notebooks(kernel: Kernel) -> None:
    text = html(kernel)
    assert text.count("<table>") == text.count("</table>") == 1 + len(kernel.kinds)
    assert text.count("data:image/svg+xml;base64,") == 1  # all panels in one picture


def test_labels_cannot_break_a_page() -> None:
    kernel = replace(KERNEL, labels=("<b>", "$x$", "&", "<b>", "a" * 50, "é", "1", "0"))
    for svg, _ in files(kernel_figure(kernel)):
        ElementTree.fromstring(svg)
    page = render_html(ReportInput("k", kernel=replace(kernel, model="<i>", notes=("<u>",))))
    assert "<b>" not in page and "<i>" not in page and "<u>" not in page


def test_reports(tmp_path: Path) -> None:
    assert report(KERNEL, tmp_path / "kernel.html").stat().st_size > 10_000
    text = report([KERNEL, ORDERS], tmp_path / "k.md").read_text(encoding="utf-8")
    assert "## Kernels" in text and "## Orders" in text
    assert "> **Some orders are upper bounds**" in text  # what is doubtful comes first
    assert text.count("Entries are within 3.3e-15") == 1
    with pytest.raises(StudyError, match=r"two results of the same kind \(kernel\)"):
        report([KERNEL, KERNEL], tmp_path / "b.md")


def test_errors_of_some_pairs_are_not_said_of_all() -> None:
    note = "errors were followed through the layers for 16 pairs of inputs"
    first = kernel_lines(replace(KERNEL, notes=(note,)))[0]
    assert "in units of sqrt(K_ii K_jj), for the pairs whose errors were followed;" in first
    assert "were followed" not in kernel_lines(KERNEL)[0]
    same = kernel_lines(replace(KERNEL, coincident_error=KERNEL.error))[0]
    assert "coincide" not in same


def test_one_input_is_one() -> None:
    one = with_nngp(np.eye(1))
    assert "on 1 input." in kernel_summary(one)


def test_each_kernel_keeps_its_statistics() -> None:
    found = replace(KERNEL, nngp=np.zeros((8, 8)))
    assert "Condition number" in statistics(found, "ntk")
    assert statistics(found)["Condition number"] == ""
    assert statistics(found, "ntk") == statistics(KERNEL, "ntk")


def test_the_power_of_small_entries_stands_once_above_the_bar() -> None:
    (_, picture, _) = drawn(kernel_figure(replace(KERNEL, nngp=(KERNEL.nngp - 0.6) * 5e-4)), "k")
    assert picture.count("×10⁻⁴") == 1 and "·10" not in picture
    assert "×10" not in drawn(kernel_figure(KERNEL), "k")[1]
