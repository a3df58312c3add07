"""What would be read as something else is refused."""

from __future__ import annotations

import pytest
from modules.bad import BAD, Bad

import tpcalc as tp
from tpcalc.errors import TpcalcError

pytestmark = pytest.mark.torch
SILENT = ("autograd function", "parameter changed in forward", "buffer that training moves")
SLOW = ("write through a view",)
EACH = (
    pytest.param(bad, id=bad.name, marks=[pytest.mark.slow] if bad.name in SLOW else [])
    for bad in BAD
    if bad.name in SILENT + SLOW
)


@pytest.mark.parametrize("bad", EACH)
def test_refused(bad: Bad, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TpcalcError) as error:
        tp.torch.network(bad.make, bad.inputs)
    told = str(error.value)
    assert [words for words in bad.says if words not in told] == [], told
    assert error.value.hint and error.value.where
    assert capfd.readouterr() == ("", "")
