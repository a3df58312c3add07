"""Parts of one fused parameter that want different learning rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tpcalc.names import Name, what_of
from tpcalc.networks.network import Architecture
from tpcalc.questions.rates.unknowns import Rates
from tpcalc.questions.verdict.probe import Probe
from tpcalc.questions.verdict.sizes import Sizes
from tpcalc.training.training import Training

BOTH = "no rate of this parameter is right for both parts: split it, or change the init of one"
ALL = "no rate of this parameter is right for all parts: split it, or change the init of some"
APART = "groups give its parts settings of their own, which one parameter cannot have: split it"
WHAT = {"dW_x": "", "dB": "the bias of "}


def parts_of_run(network: Architecture, run: Probe, sizes: Sizes) -> Iterator[str]:
    """Where the updates of the parts have different orders, which a common rate moves alike."""
    for whole, labels in _wholes(network).items():
        for kind, of in WHAT.items():
            parts = [
                [n for t in run.followed for n in run.updates(label, t) if what_of(n) == kind]
                for label in labels
            ]
            exact = [[n for n in names if sizes[n].status == "exact"] for names in parts]
            most = sizes.largest(n for names in exact for n in names)
            less = [
                largest
                for names, sure in zip(parts, exact, strict=True)
                # A first update may vanish by symmetry alone: later ones tell.
                if (largest := sizes.largest(names if len(run.followed) > 1 else sure)) is not None
                and most is not None
                and sizes.largest((most, largest)) == most
                and sizes[largest].n != sizes[most].n
            ]
            if most is not None and less:
                said = " and ".join(
                    f"{sizes[n].words} to {_part(whole, Name.of(n).label)}" for n in (*less, most)
                )
                yield f"{of}{whole}: its update adds {said}, and one rate moves them alike: " + (
                    BOTH if len(labels) == 2 else ALL
                )


def parts_of_rates(network: Architecture, rates: Rates) -> Iterator[str]:
    """Where the rates of the last step that parts ask for differ."""
    step = rates.run.steps - 1
    rows = {"dW_x": rates.weights(step), "dB": rates.biases(step)}
    for whole, labels in _wholes(network).items():
        for kind, of in WHAT.items():
            own = {_part(whole, label): rows[kind].get(label) for label in labels}
            found = {part: power for part, power in own.items() if power is not None}
            if len(set(found.values())) > 1:
                said = " and ".join(f"c = {power} for {part}" for part, power in found.items())
                yield f"{of}{whole}: step {step} asks for {said}: " + (
                    BOTH if len(found) == 2 else ALL
                )


def parts_of_groups(training: Training) -> Iterator[str]:
    """Where groups set what parts of one parameter share."""
    for whole, labels in _wholes(training.network).items():
        marks = (mark for mark in training.network.marks if mark.label in labels)
        owns = [(mark.bias, training.own(mark)) for mark in marks]
        for bias, of in ((False, WHAT["dW_x"]), (True, WHAT["dB"])):
            if len({own for kind, own in owns if kind == bias}) > 1:
                yield f"{of}{whole}: {APART}"


def _wholes(network: Architecture) -> Mapping[str, Sequence[str]]:
    """The labels of the parts of each fused parameter."""
    found: dict[str, list[str]] = {}
    for mark in network.marks:
        if mark.whole and not mark.bias:
            found.setdefault(mark.whole, []).append(mark.label)
    return found


def _part(whole: str, label: str) -> str:
    return f"{whole}[{label.removeprefix(f'{whole}.')}]"
