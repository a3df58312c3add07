"""What decides a verdict, in words, and what training does to each layer."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.analyses.regime import Judge, Regime
from tpcalc.analyses.watched import Run
from tpcalc.results import LayerFacts

__all__ = ["is_stationary", "layer_facts", "reasons"]

Named = list[tuple[int, str]]  # steps or layers, with the names of outputs


def layer_facts(judge: Judge, run: Run, layer: int) -> LayerFacts:
    """What training does to a layer; of the output, f counts as its features.

    Args:
        judge: Of the outputs of the run.
        run: The names of these outputs.
        layer: From 1 to L + 1.

    Source: Hajjar, Chizat, Giraud, Definitions B.1 and B.2.
    """
    updates = [(t, name) for t in run.steps for name in run.updates(layer, t)]
    if layer > run.probe.depth:
        features = [(t, name) for t in run.steps for name in run.probe.changes(t)]
        kernels: Named = []
    else:
        features = [(t, run.probe.features(layer, t)) for t in run.steps]
        kernels = [(t, run.kernel(layer, t)) for t in run.steps]
    moves, moved_at, why = _answer(judge, updates)
    learns, learned_at, _ = _answer(judge, features)
    evolves, evolved_at, _ = _answer(judge, kernels) if kernels else (None, None, "")
    first = [t for t in (moved_at, learned_at, evolved_at) if t is not None]
    return LayerFacts(layer, moves, learns, evolves, min(first, default=None), why)


def _answer(judge: Judge, named: Named) -> tuple[bool | None, int | None, str]:
    """Whether one of the quantities is of order one or larger; None: not known."""
    for step, name in named:
        if judge.sign(name) >= 0 and judge.order(name).status == "exact":
            return True, step, f"{name} is of size {judge.words(name)}"
    open_ones = [name for _, name in named if not judge.vanishes(name)]
    if open_ones:
        name = open_ones[0]
        return None, None, f"{name} is {judge.words(name)}: {judge.order(name).reason}"
    largest = judge.largest(name for _, name in named)
    if largest is None:
        return False, None, "it is never updated"
    return False, None, f"{largest} is {judge.words(largest)}"


def is_stationary(judge: Judge, run: Run) -> bool:
    """Whether the start is a stationary point: every first update vanishes, and no output moves.

    Args:
        judge: Of the outputs of the run.
        run: The names of these outputs.

    Source: Hajjar, Chizat, Giraud, Proposition 3.1.
    """
    names = [name for _, name in _first_updates(run)]
    return all(judge.vanishes(name) for name in (*names, *run.probe.changes(1)))


def reasons(decided: Regime, judge: Judge, run: Run) -> tuple[str, ...]:
    """The facts that decide, the first fact first.

    Args:
        decided: The verdict.
        judge: Of the outputs of the run.
        run: The names of these outputs.

    Source: Hajjar, Chizat, Giraud, section 3.1 (why the start of an integrable parameterization is
        stationary).
    """
    stationary = is_stationary(judge, run)
    facts = list(decided.facts)
    if decided.verdict == "trivial":
        facts = (_no_update(judge, run) if stationary else _stuck(judge, run)) + facts
    elif decided.initial == "vanishes":
        facts += _vanishing(judge, run, stationary)
    if decided.verdict in ("trivial", "kernel"):
        facts += _moving_all_the_same(judge, run)
    return tuple(facts)


def _first_updates(run: Run) -> Named:
    return [(layer, name) for layer in run.layers for name in run.updates(layer, 1)]


def _place(run: Run, layer: int) -> tuple[str, str]:
    """A layer, and what its updates contribute to."""
    if layer > run.probe.depth:
        return "the output layer", "the output"
    return f"layer {layer}", "its preactivations"


def _no_update(judge: Judge, run: Run) -> list[str]:
    updates = _first_updates(run)
    largest = judge.largest(name for _, name in updates)
    fact = "the start is a stationary point: every first update vanishes"
    if largest is not None:
        layer = next(layer for layer, name in updates if name == largest)
        which, where = _place(run, layer)
        at = " at the sample point" if judge.sizes.chamber.point else ""
        fact += f"; the largest{at}, that of {which}, contributes {judge.words(largest)} to {where}"
    return [fact, *_vanishing(judge, run, True)]


def _vanishing(judge: Judge, run: Run, stationary: bool) -> list[str]:
    """Where the first pass vanishes, and whether that alone makes the first updates vanish."""
    names = {layer: f"h[{layer},0,{run.probe.query}]" for layer in range(1, run.probe.depth + 1)}
    small = [layer for layer, name in names.items() if judge.vanishes(name)]
    if not small:
        return []
    first, last = small[0], small[-1]
    fact = f"layer {first}: its preactivations vanish at the start, h_0 is "
    fact += judge.words(names[first])
    if last != first:
        fact += f", down to {judge.words(names[last])} in layer {last}"
    if stationary and _caused(judge, run):
        fact += "; without this the first updates would not vanish"
    return [fact]


def _caused(judge: Judge, run: Run) -> bool:
    """Whether the first updates lose no more than the sizes of the vectors that they are made of.

    That of layer l contributes chi_0 <x_0^(l-1), x_1^(l-1)> dh_0^l times powers of n that the
    parameterization writes; x, and dh against the gradient at the last features, would be of order
    one if no layer made them smaller.
    """
    depth, query = run.probe.depth, run.probe.query

    def exponent(name: str) -> Fraction | None:
        order = judge.order(name)
        return None if order.n is None else order.n.constant

    for layer, name in _first_updates(run):
        if name.startswith("dB"):
            continue
        gained, lost = [name], [f"x[{layer - 1},0,0]", f"x[{layer - 1},1,{query}]"]
        if layer == 1:
            lost = []
        if layer <= depth:
            lost.append(f"dh[{layer},0,0]")
            gained.append(f"dx[{depth},0,0]")
        more, less = [exponent(n) for n in gained], [exponent(n) for n in lost]
        if None in more or None in less:
            return False
        if sum(e for e in more if e is not None) < sum(e for e in less if e is not None):
            return False
    return True


def _stuck(judge: Judge, run: Run) -> list[str]:
    """The first layer whose updates never reach order one, where the start is not stationary."""
    for layer in run.layers:
        names = [name for t in run.steps for name in run.updates(layer, t)]
        largest = judge.largest(names)
        if largest is not None and all(judge.vanishes(name) for name in names):
            which, where = _place(run, layer)
            return [
                f"{which}: its updates contribute {judge.words(largest)} to {where}: they vanish"
            ]
    return []


def _moving_all_the_same(judge: Judge, run: Run) -> list[str]:
    """Layers whose features move although the verdict does not say so."""
    moving = [
        str(layer)
        for layer in range(1, run.probe.depth + 1)
        if any(judge.is_exactly(run.probe.features(layer, t), 0) for t in run.steps)
    ]
    if not moving:
        return []
    word = "layer" if len(moving) == 1 else "layers"
    return [f"features move all the same in {word} {', '.join(moving)}"]
