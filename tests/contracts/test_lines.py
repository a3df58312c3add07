"""The size of the package: no room holds more code than its budget."""

from __future__ import annotations

import pytest

from tests.lines import GATES, budget, questions, rooms, touched, walk


def test_no_room_is_over_its_budget() -> None:
    found = {room: row["code"] for room, row in rooms().items()}
    allowed = budget()
    assert found.keys() == allowed.keys()
    assert {room: code for room, code in found.items() if code > allowed[room]} == {}


@pytest.mark.parametrize("gate", GATES)
def test_no_gate_is_passed(gate: str) -> None:
    assert GATES[gate]() <= budget("gates")[gate]


@pytest.mark.slow
@pytest.mark.parametrize("question", questions())
def test_no_question_runs_through_more_of_the_house(question: str) -> None:
    assert 0 < touched(questions()[question])[0] <= budget("walks")[question]


@pytest.mark.slow
def test_a_learning_rate_goes_straight_to_its_update() -> None:
    assert 0 < len(walk("limit mlp --depth 1 --samples 1 --steps 1 --lr 0.7321", "7321")) <= 8
