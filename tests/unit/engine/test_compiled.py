"""Compiled code on disk: it is run as it was written, or compiled anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numba
import pytest

from tpcalc.engine import kernels_compile

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "other bytes": lambda data: bytes(255 - byte for byte in data),
    "a changed byte": lambda data: bytes([*data[:-600], 255 - data[-600], *data[-599:]]),
}


def half(x: float) -> float:
    return 0.5 * x


@pytest.mark.parametrize("kind", ["nbc", "nbi"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_on_disk_is_compiled_anew(
    kind: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def hits() -> int:
        compiled = kernels_compile.exact(half)
        assert compiled(3.0) == 1.5
        return sum(compiled.stats.cache_hits.values())

    assert (hits(), hits()) == (0, 1)
    (file,) = tmp_path.rglob(f"*.{kind}")
    file.write_bytes(DAMAGE[damage](file.read_bytes()))
    assert (hits(), hits()) == (0, 1)
