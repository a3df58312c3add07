"""Names of results."""

from __future__ import annotations

import pytest

from tpcalc.results import Key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("h[2,1,0]", Key("h", 2, 1, 0)),
        ("dW_x[2,1,0]", Key("dW_x", 2, 1, 0)),
        ("dW_x[3,1,0,4]", Key("dW_x", 3, 1, 0, 4)),
        ("dB[2,1]", Key("dB", 2, 1)),
        ("dB[3,1,4]", Key("dB", 3, 1, None, 4)),
        ("f[1,0,2]", Key("f", None, 1, 0, 2)),
        ("h[2,1,0,4]", Key("h[2,1,0,4]")),
        ("dB[2]", Key("dB[2]")),
        ("dB[2,1,0,0]", Key("dB[2,1,0,0]")),
        ("dW_x[2,1]", Key("dW_x[2,1]")),
        ("loss", Key("loss")),
    ],
)
def test_names_are_taken_apart(text: str, key: Key) -> None:
    assert Key.of(text) == key
