"""The size of the package: no room holds more code than its budget."""

from __future__ import annotations

from tests.lines import budget, rooms


def test_no_room_is_over_its_budget() -> None:
    found = {room: row["code"] for room, row in rooms().items()}
    allowed = budget()
    assert found.keys() == allowed.keys()
    assert {room: code for room, code in found.items() if code > allowed[room]} == {}
