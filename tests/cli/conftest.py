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


def run(*words: str, code: int = 0) -> str:
    """What a command that ends with this code prints."""
    found = CliRunner().invoke(app, [*words])
    assert found.exit_code == code, found.output
    return found.output


def result(*words: str, code: int = 0) -> dict[str, Any]:
    """The answer in the JSON object that a command prints."""
    found = CliRunner().invoke(app, [*words, "--json"])
    assert found.exit_code == code, found.output
    read: dict[str, Any] = json.loads(found.stdout)
    assert read["command"] == words[0]
    answer: dict[str, Any] = read["result"]
    return answer


@pytest.fixture
def tpcalc() -> Callable[..., Ran]:
    """Run ``tpcalc WORDS``; a fault of tpcalc is the test's own."""

    def run(*words: object) -> Ran:
        result = CliRunner().invoke(app, [str(word) for word in words])
        if result.exit_code == Fault.exit_code and result.exception is not None:
            raise result.exception.__cause__ or result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run
