"""Names of orders taken apart."""

from __future__ import annotations

import pytest

from tpcalc.results import Key
from tpcalc.results.orders import order_key


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("h[2,1,0]", Key("h", 2, 1, 0)),
        ("f[3,1]", Key("f", None, 3, 1)),
        ("f[3,1,2]", Key("f", None, 3, 1, 2)),
        ("dW_x[4,2]", Key("dW_x", 4, 2)),
        ("h[4, 2]", Key("h", 4, 2)),
        ("f[2]", Key("f", None, 2)),
        ("h[2]", Key("h[2]")),
        ("size", Key("size")),
        ("f[1,0]-f[0,0]", Key("f[1,0]-f[0,0]", None, 1, 0)),
        ("f[2] - f[0]", Key("f[2] - f[0]", None, 2)),
        ("x[3,2,1]-x[3,0,1]", Key("x[3,2,1]-x[3,0,1]", 3, 2, 1)),
        ("size[1]-size[0]", Key("size[1]-size[0]")),
        ("a-b", Key("a-b")),
    ],
)
def test_names_are_taken_apart(name: str, key: Key) -> None:
    assert order_key(name) == key
