"""What ways to design networks do to the guidelines: with them, and without."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from tpcalc import checks
from tpcalc.errors import UsageError
from tpcalc.meanfield.noise import FORMATS
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.practice.advice import JUDGED, Judged, case_of, judged, moved
from tpcalc.practice.guidelines import DOUBLED, GUIDELINES, Case, Noise
from tpcalc.results import Estimate
from tpcalc.results.practice import Thresholds
from tpcalc.shown import Rows, Shown

Change = Literal["improves", "harms", "both", "none"]
EFFECTS: dict[tuple[bool, bool], Change] = {
    (True, True): "both",
    (True, False): "improves",
    (False, True): "harms",
    (False, False): "none",
}


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
        harmed: Those whose number goes away from it.
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
    bar = Thresholds() if thresholds is None else thresholds
    checks.of_type(bar, Thresholds, "thresholds")
    if not networks:
        raise UsageError("there are no networks.", where="ablation", hint="Give one or more.")
    noise = Noise("rounding of float32", FORMATS["float32"].epsilon)
    like = Case((), bar, (noise,), scales=(DOUBLED,))

    def all_judged(made: Callable[[Layers], Layers]) -> dict[str, Judged]:
        graphs = {name: layers(made(network)) for name, network in networks.items()}
        return {name: judged(case_of(graph, like)) for name, graph in graphs.items()}

    plain, rows = all_judged(lambda network: network), []
    for strategy, made in strategies.items():
        changed = all_judged(made)
        signs = {name: moved(bar, own, changed[name]) for name, own in plain.items()}
        for key in JUDGED:
            better, worse = (
                tuple(name for name, own in signs.items() if own[key] == sign) for sign in (1, -1)
            )
            effect = EFFECTS[bool(better), bool(worse)]
            before, after = (
                tuple(own[key].value for own in each.values()) for each in (plain, changed)
            )
            title = GUIDELINES[key].title
            rows.append(AblationRow(strategy, key, title, effect, better, worse, before, after))
    return Rows(rows)
