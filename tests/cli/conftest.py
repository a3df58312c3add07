"""Running the command line inside the test process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from typer.testing import CliRunner

from tpcalc.cli.app import app
from tpcalc.errors import Fault


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


@pytest.fixture
def tpcalc() -> Callable[..., Ran]:
    """Run ``tpcalc WORDS``; a fault of tpcalc is the test's own."""

    def run(*words: object) -> Ran:
        result = CliRunner().invoke(app, [str(word) for word in words])
        if result.exit_code == Fault.exit_code and result.exception is not None:
            raise result.exception.__cause__ or result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run
