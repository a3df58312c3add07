"""Networks trained beside predictions: what is kept where there is no prediction, or no slope."""

from __future__ import annotations

import pytest

from tpcalc.data import images
from tpcalc.experiments.trained import trained
from tpcalc.results import Setting

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

DATA = images("mixture", train=64, test=20)


def setting(act: str, width: int = 16, steps: int = 1) -> Setting:
    return Setting(act, "ip-llr", 3, width, calibrated=True, steps=steps, batch=16)


def test_runs_are_kept_where_the_calculus_does_not_decide_a_network() -> None:
    found = trained([setting("even_tanh", steps=2)], DATA, trials=1)
    assert len(found.runs[0].accuracies) == 1
    ((text, sentence),) = found.predicted
    assert text == "ip-llr, even_tanh" and sentence.startswith(
        "undecided: the output: whether this explodes at step 1 is open"
    )
    ((_, powers),) = found.growth  # bounds from sizes alone
    assert powers == ("open", "open", "open", ">= n^(-1)")
    assert (found.vanishing, found.theorems) == ((), ())


@pytest.mark.parametrize(
    ("widths", "trials", "reason"),
    [
        ((16, 24), 2, "2 of the 3 widths that a slope needs"),
        ((16, 24, 32), 1, "one trial at width 16, and a slope needs at least 2"),
    ],
)
def test_why_there_is_no_power_of_the_width(
    widths: tuple[int, ...], trials: int, reason: str
) -> None:
    compared = [setting("relu", width) for width in widths]
    found = trained([setting("relu")], DATA, by_width=compared, trials=trials, ranks=1000)
    ((_, rows),) = found.slopes
    assert [(row.name, row.slope, row.note) for row in rows] == [
        (f"eta[{layer}]", None, reason) for layer in (1, 2, 3, 4)
    ]
    assert found.ranked == 64
