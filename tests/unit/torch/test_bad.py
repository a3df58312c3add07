"""What cannot be read is refused with what, where, why and what to do; or read with a note."""

from __future__ import annotations

import pytest
from modules.bad import BAD, Bad

import tpcalc as tp
from tpcalc.errors import TpcalcError

pytestmark = pytest.mark.torch
QUICK = ("autograd function", "parameter changed in forward", "buffer that training moves",
         "two builds, two networks")  # fmt: skip


def cases(refused: bool) -> list[object]:
    """Most of them in the long suite."""
    return [
        pytest.param(bad, id=bad.name, marks=[] if bad.name in QUICK else [pytest.mark.slow])
        for bad in BAD
        if bad.refused == refused
    ]


def first_order(bad: Bad) -> tuple[str, ...]:
    """Notes of a first-order verdict."""
    run = tp.torch.training(bad.make, bad.inputs, optimizer=bad.optimizer)
    tp.first_order(run, verify=False)
    notes: tuple[str, ...] = run.network.notes
    return notes


@pytest.mark.parametrize("bad", cases(refused=True))
def test_refused(bad: Bad, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TpcalcError) as error:
        first_order(bad)
    told = str(error.value)
    assert [words for words in bad.says if words not in told] == [], told
    assert error.value.hint or error.value.where, told
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("bad", cases(refused=False))
def test_read_with_a_note(bad: Bad, capfd: pytest.CaptureFixture[str]) -> None:
    notes = first_order(bad)
    assert any(all(words in note for words in bad.says) for note in notes), notes
    assert capfd.readouterr() == ("", "")
