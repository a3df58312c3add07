"""Names of results."""

from __future__ import annotations

import pytest

from tpcalc.results import Name

PARTS = [
    ("h[2,1,0]", ("h", 2, 1, 0, None)),
    ("dW_x[2,1,0]", ("dW_x", 2, 1, 0, None)),
    ("dW_x[3,1,0,4]", ("dW_x", 3, 1, 0, 4)),
    ("dW_x[4,2]", ("dW_x", 4, 2, None, None)),
    ("dB[2,1]", ("dB", 2, 1, None, None)),
    ("dB[3,1,4]", ("dB", 3, 1, None, 4)),
    ("f[3,1]", ("f", None, 3, 1, None)),
    ("f[1,0,2]", ("f", None, 1, 0, 2)),
    ("loss[3]", ("loss", None, 3, None, None)),
    ("loss[3,1]", ("loss", None, 3, 1, None)),
    ("f[1,0]-f[0,0]", ("f[1,0]-f[0,0]", None, 1, 0, None)),
    ("x[3,2,1]-x[3,0,1]", ("x[3,2,1]-x[3,0,1]", 3, 2, 1, None)),
]
WORDS = [
    *("loss", "size", "a-b", "h[2]", "h[2,1,0,4]", "h[up,1,0]", "hhat[2,1,0]", "dB[2]"),
    *("dB[2,1,0,0]", "f[2]", "f[2]-f[0]", "f[2,:]", "size[1]-size[0]", "q[h[1]]", "h[2][0,1]"),
]
OTHERS = [
    ("W_x[blk.up@1]", Name("W_x", "blk.up@1")),
    ("dW_x[blk.up@1,0,3]", Name("dW_x", "blk.up@1", 0, (3,))),
    ("h[2][0,1]", Name("h", "2", cell=(0, 1))),
    ("f[2,16:]", Name("f", step=2, first=16)),
    ("h[2,1,:]", Name("h", "2", 1, first=0)),
    ("q[h[1]]", Name("q", "h[1]")),
    ("f[1,0]-f[0,0]", Name("f", step=1, cell=(0,), since=(0, 0))),
    ("h[2,1", Name("h[2,1")),
]


@pytest.mark.parametrize(("text", "parts"), PARTS)
def test_tables_sort_by_layers_and_steps(text: str, parts: tuple[object, ...]) -> None:
    own = Name.tabled(text)
    assert (own.word, own.number, own.step, own.input, own.output) == parts
    assert str(own) == text


@pytest.mark.parametrize("text", WORDS)
def test_other_names_are_words_to_tables(text: str) -> None:
    assert Name.tabled(text) == Name(text)


@pytest.mark.parametrize(("text", "name"), OTHERS)
def test_a_name_is_read_as_it_is_written(text: str, name: Name) -> None:
    assert Name.of(text) == name
    assert str(name) == text


def test_blanks_do_not_count() -> None:
    assert Name.of("h[4, 2]") == Name("h", "4", 2)
    assert Name.of("f[2,0] - f[0,0]") == Name.of("f[2,0]-f[0,0]")


def test_cells_of_blocks_are_told_from_the_first_one() -> None:
    assert str(Name.of("f[2,16:]").at((3,))) == "f[2,19]"
    assert Name.of("dW_x[up@1,2,0]").label == "up"
