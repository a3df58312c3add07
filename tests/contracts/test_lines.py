"""The size of the package: no room holds more code than its budget."""

from __future__ import annotations

from tests.lines import GATES, budget, rooms


def test_no_room_is_over_its_budget() -> None:
    found = {room: row["code"] for room, row in rooms().items()}
    allowed = budget()
    assert found.keys() == allowed.keys()
    assert {room: code for room, code in found.items() if code > allowed[room]} == {}


def test_names_and_exponents_are_spelled_in_one_file_each() -> None:
    assert GATES['files that write or read "-oo"']() == 1
    assert GATES["files that take names of outputs apart"]() == 0
