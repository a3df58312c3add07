"""What decides a verdict, in words, and what training does to each layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import chain

from tpcalc.names import layered, what_of
from tpcalc.questions.verdict.judge import Judgement
from tpcalc.questions.verdict.ledger import Answer
from tpcalc.questions.verdict.probe import Probe
from tpcalc.questions.verdict.sizes import Sizes
from tpcalc.results import Explosion, LayerFacts

Named = list[tuple[str, str]]  # labels, with the names of outputs
Moves = Callable[[int, tuple[str, ...]], Answer]  # whether one of the outputs of a step stays


def initial(judgement: Judgement, sizes: Sizes, run: Probe) -> str:
    """The network at the start: "explodes", "vanishes" where a layer does, or "ok"."""
    if judgement.levels[0].holds:
        return "explodes"
    levels = run.preactivations(0).values()
    small = any(sizes.vanishes(name) for names in levels for name in names)
    return "vanishes" if small else "ok"


def explosion(decided: Judgement, run: Probe) -> Explosion | None:
    """Where something first grows with the width; None where nothing does, or it is open."""
    if decided.verdict != "unstable":
        return None
    (level,) = decided.deciding
    what, grow = _what(run, level)
    return Explosion(level.step, f"{what} {grow} like {level.order.words}")


def layer_facts(
    moves: Moves, sizes: Sizes, run: Probe, label: str, words: tuple[str, str]
) -> LayerFacts:
    """What training does to a layer; of a readout, f counts as its features.

    Source: Hajjar, Chizat, Giraud, Definitions B.1 and B.2.
    """
    layer = 1 + list(run.maps).index(label)
    name = "" if label == str(layer) else label
    if not run.followed:
        return LayerFacts(layer, None, None, None, None, "no update is followed", name)
    updates = {t: run.updates(label, t) for t in run.followed}
    kernels: dict[int, tuple[str, ...]] = {}
    if run.maps[label] == "readout":
        features = {t: run.changes(t) for t in run.followed}
    else:
        features = {t: run.moved(label, t) for t in run.followed}
        if label in run.features:
            kernels = {t: run.kernel(label, t) for t in run.followed}
    updated, learns = _first(moves, updates), _first(moves, features)
    evolves = _first(moves, kernels) if kernels else None
    first = [each.step for each in (updated, learns, evolves) if each and each.holds]
    return LayerFacts(
        layer,
        updated.holds,
        learns.holds,
        evolves.holds if evolves else None,
        min(first, default=None),
        _why(updated, sizes, chain.from_iterable(updates.values())),
        name,
        *words,
    )


def _first(moves: Moves, names: Mapping[int, tuple[str, ...]]) -> Answer:
    """The first step at which one of the quantities is of order one or larger."""
    waiting: Answer | None = None
    for step, asked in names.items():
        answer = moves(step, asked)
        if answer.holds:
            return answer
        if answer.holds is None and waiting is None:
            waiting = answer
    return waiting or answer


def _why(updated: Answer, sizes: Sizes, names: Iterable[str]) -> str:
    if updated.holds:
        size = f"{updated.name} is of size {updated.order.words}"
        return size + (", if its coefficient is not 0" if updated.assumed else "")
    if updated.holds is None:
        return f"{updated.name} is {updated.order.words}: {updated.order.reason}"
    largest = sizes.largest(names)
    return "it is never updated" if largest is None else f"{largest} is {sizes[largest].words}"


def is_stationary(sizes: Sizes, run: Probe) -> bool:
    """Whether the start is a stationary point: every first update vanishes, and no output moves.

    Source: Hajjar, Chizat, Giraud, Proposition 3.1.
    """
    names = [name for _, name in _first_updates(run)]
    return all(sizes.vanishes(name) for name in (*names, *run.changes(run.first)))


def reasons(decided: Judgement, moves: Moves, sizes: Sizes, run: Probe) -> tuple[str, ...]:
    """The facts that decide, the first fact first.

    Source: Hajjar, Chizat, Giraud, section 3.1 (why the start of an integrable parameterization is
        stationary).
    """
    stationary = is_stationary(sizes, run)
    facts = _deciding(decided, sizes, run)
    if decided.verdict == "trivial":
        facts = (_no_update(sizes, run) if stationary else _stuck(sizes, run)) + facts
    elif initial(decided, sizes, run) == "vanishes":
        facts += _vanishing(sizes, run, stationary)
    if decided.verdict in ("trivial", "kernel"):
        facts += _moving_all_the_same(moves, run)
    return tuple(facts)


def _deciding(decided: Judgement, sizes: Sizes, run: Probe) -> list[str]:
    """The verdict in words."""
    if not decided.changes:
        (level,) = decided.deciding
        when = f"at step {level.step}" if level.step else "at the start"
        if found := explosion(decided, run):
            return [f"{found.fact} {when}"]
        what, _ = _what(run, level)
        size = f"{level.name} is {level.order.words}; {level.order.reason}"
        return [f"{what}: whether this explodes {when} is open ({size})"]
    until = "at step 1" if run.steps == 1 else f"at steps 1 to {run.steps}"
    moved = decided.deciding[-1]
    if not moved.holds:
        if moved.holds is None:
            return [f"whether the output moves is open: {_open(moved)}"]
        names = [name for step in run.followed for name in run.changes(step)]
        size = sizes.largest_words(names)
        return [f"the output does not move: f_t - f_0 is {size} {until}"]
    output = f"the output moves: f_{moved.step} - f_0 is of order one"
    learned = decided.deciding[0]
    if learned.holds:
        last = _features(run, "moves", "move")
        return [f"{last} by order one at step {learned.step}", output]
    if learned.holds is None:
        return [f"whether the last features move is open: {_open(learned)}", output]
    names = [name for step in run.followed for name in run.last_moved(step)]
    size = sizes.largest_words(names)
    last = _features(run, "does not move", "do not move")
    return [f"{last}, x_t - x_0 is {size} {until}", output]


def _open(answer: Answer) -> str:
    return f"{answer.name} is {answer.order.words}; {answer.order.reason}"


def _what(run: Probe, level: Answer) -> tuple[str, str]:
    """What a level is, and its verb."""
    labels = run.preactivations(level.step).items()
    label = next((label for label, names in labels if level.name in names), None)
    if label is None:
        return "the output", "grows"
    normalised = "normalised " if run.read(label) == "hhat" else ""
    return f"{_layer(run, label)}: its {normalised}preactivations", "grow"


def _layer(run: Probe, label: str) -> str:
    return f"{run.places} {label}" if label.isdigit() else label


def _features(run: Probe, one: str, many: str) -> str:
    """The last features, and what they do."""
    label = run.features[-1]
    if run.maps.get(label) == "readout":
        return f"what {label} reads {one}"
    return f"{_layer(run, label)}: its features {many}"


def _first_updates(run: Probe) -> Named:
    return [(label, name) for label in run.maps for name in run.updates(label, run.first)]


def _place(run: Probe, label: str) -> tuple[str, str]:
    """A layer, and what its updates contribute to."""
    if run.maps[label] == "readout":
        return ("the output layer" if label.isdigit() else label), "the output"
    return _layer(run, label), "its preactivations"


def _no_update(sizes: Sizes, run: Probe) -> list[str]:
    updates = _first_updates(run)
    largest = sizes.largest(name for _, name in updates)
    fact = "the start is a stationary point: every first update vanishes"
    if largest is not None:
        layer = next(layer for layer, name in updates if name == largest)
        which, where = _place(run, layer)
        at = " at the sample point" if sizes.chamber.point else ""
        fact += f"; the largest{at}, that of {which}, contributes {sizes[largest].words} to {where}"
    return [fact, *_vanishing(sizes, run, True)]


def _vanishing(sizes: Sizes, run: Probe, stationary: bool) -> list[str]:
    """Where the first pass vanishes, and whether that alone makes the first updates vanish."""
    levels = run.preactivations(0).items()
    small = [(label, name) for label, names in levels for name in names if sizes.vanishes(name)]
    if not small:
        return []
    (first, largest), (last, smallest) = small[0], small[-1]
    fact = f"{_layer(run, first)}: its preactivations vanish at the start, h_0 is "
    fact += sizes[largest].words
    if last != first:
        fact += f", down to {sizes[smallest].words} in {_layer(run, last)}"
    if stationary and _caused(sizes, run):
        fact += "; without this the first updates would not vanish"
    return [fact]


def _caused(sizes: Sizes, run: Probe) -> bool:
    """Whether the first updates lose no more than the sizes of the vectors that they are made of.

    That of layer l contributes chi_0 <x_0^(l-1), x_1^(l-1)> dh_0^l times powers of n that the
    parameterization writes; x, and dh against the gradient at the last features, would be of order
    one if no layer made them smaller.
    """
    if not all(label.isdigit() for label in run.maps) or run.first > 1:
        return False  # which vectors an update is made of is known of chains of layers
    depth, query = len(run.features), run.query

    def exponent(name: str) -> Fraction | None:
        order = sizes[name]
        return None if order.n is None else order.n.constant

    for label, name in _first_updates(run):
        if what_of(name) == "dB":
            continue
        layer = int(label)
        gained, lost = [name], [layered("x", layer - 1, *at) for at in ((0, 0), (1, query))]
        if layer == 1:
            lost = []
        if layer <= depth:
            lost.append(layered("dh", layer, 0, 0))
            gained.append(layered("dx", depth, 0, 0))
        more, less = [exponent(n) for n in gained], [exponent(n) for n in lost]
        if None in more or None in less:
            return False
        if sum(e for e in more if e is not None) < sum(e for e in less if e is not None):
            return False
    return True


def _stuck(sizes: Sizes, run: Probe) -> list[str]:
    """The first layer whose updates never reach order one, where the start is not stationary."""
    for label in run.maps:
        names = [name for t in run.followed for name in run.updates(label, t)]
        largest = sizes.largest(names)
        if largest is not None and all(sizes.vanishes(name) for name in names):
            which, where = _place(run, label)
            return [
                f"{which}: its updates contribute {sizes[largest].words} to {where}: they vanish"
            ]
    return []


def _moving_all_the_same(moves: Moves, run: Probe) -> list[str]:
    """Layers whose features move although the verdict does not say so."""
    moving = [
        label
        for label in run.features
        if _first(moves, {t: run.moved(label, t) for t in run.followed}).holds
    ]
    if not moving:
        return []
    word = "layer" if len(moving) == 1 else "layers"
    return [f"features move all the same in {word} {', '.join(moving)}"]
