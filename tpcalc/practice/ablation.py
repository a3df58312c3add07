"""What ways to design networks do to the guidelines: with them, and without."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from tpcalc import checks
from tpcalc.errors import UsageError
from tpcalc.meanfield.noise import FORMATS
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.practice.advice import JUDGED, MOVED, case_of, excess
from tpcalc.practice.guidelines import DOUBLED, Case, Noise, guideline
from tpcalc.results import Estimate
from tpcalc.results.practice import Guideline, Thresholds
from tpcalc.shown import Rows, Shown

Change = Literal["improves", "harms", "both", "none"]


@dataclass(frozen=True, slots=True)
class AblationRow(Shown):
    """What a way to design networks does to one guideline.

    Args:
        strategy: The way.
        guideline: The number of the guideline.
        title: What it asks for.
        effect: ``"improves"``, ``"harms"``: some networks, and none the other way; ``"both"``;
            ``"none"``.
        improved: The networks whose number comes closer to what passes.
        harmed: Those whose number goes away from it, or is not to be had any more.
        before: For each network the number without it; None where there is none.
        after: The number with it.
    """

    strategy: str
    guideline: str
    title: str
    effect: Change
    improved: tuple[str, ...]
    harmed: tuple[str, ...]
    before: tuple[Estimate | None, ...]
    after: tuple[Estimate | None, ...]


def ablation(
    networks: Mapping[str, Layers],
    strategies: Mapping[str, Callable[[Layers], Layers]],
    thresholds: Thresholds | None = None,
) -> tuple[AblationRow, ...]:
    """Networks with and without ways to design them, judged by every guideline.

    Args:
        networks: The networks without them, by name.
        strategies: For each way a function from a network to one that has it, as of ``rewritten``.
        thresholds: Where guidelines pass and fail; None: the usual ones.

    Returns:
        A row for each way and guideline: the cells of a table of ways by guidelines.

    Raises:
        UsageError: No networks.
        StudyError: A network that the recursion does not follow.

    Source: Schoenherr, The nonlinearity coefficient, chapter 8 (table 8.1).

    Example:
        >>> from tpcalc.meanfield.notation.architectures import Design, mlp
        >>> from tpcalc.practice.rewrites import rewritten, unit_weights
        >>> ways = {"unit": lambda net: rewritten(net, unit_weights)}
        >>> found = ablation({"tanh": mlp(9, Design("tanh", 1 / 9))}, ways)
        >>> [(row.guideline, row.effect) for row in found if row.effect == "improves"]
        [('G1', 'improves'), ('G3', 'improves'), ('G8', 'improves')]
    """
    bar = (
        Thresholds() if thresholds is None else checks.of_type(thresholds, Thresholds, "thresholds")
    )
    if not networks:
        raise UsageError("there are no networks.", where="ablation", hint="Give one or more.")
    like = Case((), bar, (Noise("rounding of float32", FORMATS["float32"].epsilon),))
    plain = {name: _judged(network, like) for name, network in networks.items()}
    rows = []
    for strategy, made in strategies.items():
        changed = {name: _judged(made(network), like) for name, network in networks.items()}
        rows += [_row(strategy, key, like, plain, changed) for key in JUDGED]
    return Rows(rows)


Judged = dict[str, Guideline]


def _judged(network: Layers, like: Case) -> Judged:
    case = replace(case_of(layers(network), like), scales=(DOUBLED,))
    return {key: guideline(key, case) for key in JUDGED}


def _row(
    strategy: str, key: str, like: Case, plain: dict[str, Judged], changed: dict[str, Judged]
) -> AblationRow:
    pairs = {name: (own[key], changed[name][key]) for name, own in plain.items()}
    moved = {name: excess(like, old) - excess(like, new) for name, (old, new) in pairs.items()}
    lost = [name for name, (old, new) in pairs.items() if old.value and not new.value]
    better = tuple(name for name, size in moved.items() if size > MOVED and name not in lost)
    worse = tuple(name for name, size in moved.items() if size < -MOVED or name in lost)
    effects: dict[tuple[bool, bool], Change] = {
        (True, True): "both", (True, False): "improves", (False, True): "harms",
    }  # fmt: skip
    effect = effects.get((bool(better), bool(worse)), "none")
    before, after = (tuple(pair[k].value for pair in pairs.values()) for k in (0, 1))
    title = next(iter(pairs.values()))[0].title
    return AblationRow(strategy, key, title, effect, better, worse, before, after)
