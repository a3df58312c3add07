"""What is said of all steps holds at steps 1 to 4 of the derived orders, for every optimizer."""

from __future__ import annotations

from itertools import product

import pytest

import tpcalc as tp
from tpcalc.questions.orders import orders
from tpcalc.questions.verdict.probe import Probe, probe
from tpcalc.training.generic import far_query, generic
from tpcalc.training.training import Training

NETWORKS = (tp.MLP(2, "relu"), tp.MLP(2, "tanh", bias="all"), tp.ResNet(1, "relu"))
OPTIMIZERS = (
    "momentum",
    "momentum(decay=0.1 n^-1)",
    "nesterov",
    "signsgd(decay=0.1)",
    "lion(decay=0.1 n^-1)",
    "lion",
    "adam",
    "adam(eps=0.1 n^-1)",
    "adam(eps=3)",
    "adamw(decay=0.1)",
    "rmsprop",
    "adagrad(eps=0.1 n^-1)",
)
RATES = ({}, {"hidden": {"power": "-1/2"}}, {"readout": {"power": "-1/2"}, "1": {"power": -1}})
CASES = list(product(NETWORKS, ("mup", "ntk"), OPTIMIZERS, RATES))
CLAIMED = {"mup": "feature-learning", "ntk": "kernel"}


def largest(found: Probe) -> dict[str, float]:
    """The largest exponents of what is read, of what the outputs and the last features moved."""
    powers = {name: order.n for name, order in orders(found.program, verify=False).items()}
    kinds = {
        "levels": [name for t in range(1, 5) for name in found.levels(t)],
        "output": [name for t in range(1, 5) for name in found.changes(t)],
        "features": [name for t in range(1, 5) for name in found.moved(found.features[-1], t)],
    }
    return {
        kind: max(
            (float(n.constant) for name in names if (n := powers[name]) is not None and n.constant),
            default=0.0,
        )
        for kind, names in kinds.items()
    }


def check_cell(net: object, param: str, optimizer: str, groups: object) -> bool:
    """Whether something is said of all steps; if so, that it holds at the next ones."""
    run = Training(net, param, optimizer=optimizer, groups=groups, lr=0.1)  # type: ignore[arg-type]
    said = tp.check(run.replace(steps=2), verify=False)
    if said.valid_for != "all t" or said.verdict == "unstable":
        return False
    data = generic("mse", 5)
    longer = run.replace(steps=4, data=data)
    sizes = largest(probe(longer, query=far_query(data), watch=("h", "x")))
    assert sizes["levels"] <= 0
    assert said.verdict != "trivial" or sizes["output"] < 0
    assert said.verdict != "kernel" or sizes["features"] < 0
    return True


@pytest.mark.parametrize("case", CASES[::38], ids=str)
def test_all_steps(case: tuple[object, str, str, object]) -> None:
    check_cell(*case)


# Each network, parameterization and optimizer with one of the rates, by turns.
TURNS = [CASES[3 * k + (k + k // 12) % 3] for k in range(len(CASES) // 3)]


@pytest.mark.slow
@pytest.mark.parametrize("case", TURNS, ids=str)
def test_all_steps_of_more_cases(case: tuple[object, str, str, object]) -> None:
    check_cell(*case)


# But where decay or eps change the regime.
DECIDED = [
    (param, optimizer)
    for param in CLAIMED
    for optimizer in OPTIMIZERS
    if optimizer != "adam(eps=3)" and (param == "mup" or "decay=0.1)" not in optimizer)
]


@pytest.mark.parametrize(("param", "optimizer"), DECIDED)
def test_rates_of_the_catalogue_are_decided_for_all_steps(param: str, optimizer: str) -> None:
    """As surely as for gradient descent."""
    found = tp.check(tp.MLP(2, "relu"), param, optimizer=optimizer, lr=0.1, verify=False)
    assert found.valid_for == "all t"
    assert found.verdict == CLAIMED[param] or "eps" in optimizer


@pytest.mark.parametrize(
    ("text", "claimed"),
    [
        ("m = b m + g\nw = w - lr m", True),
        ("w = w - lr sign(g + d)\nd = c\nc = g", True),
        ("v = b v + g^2\nm = b m + g\nw = w - lr m / sqrt(v)", True),
        ("w = w - lr sign(g) abs(g)", False),  # of no kind that is followed
        ("w = w - lr sign(g) - lr decay w abs(t - 3)", True),
    ],
)
def test_texts_of_ones_own(text: str, claimed: bool) -> None:
    own = f"optimizer own(b=1/2, decay=0)\n{text}"
    run = Training(tp.MLP(1, "tanh"), "mup", optimizer=own, lr=0.1)
    assert (tp.check(run.replace(steps=2), verify=False).valid_for == "all t") == claimed
