"""``transfer``: the best learning rate against the width and the number of blocks."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from tpcalc import checks
from tpcalc.engine.device.devices import known_device, load_torch
from tpcalc.errors import UsageError
from tpcalc.experiments.rates import OO, Asked, best_of, search, searched
from tpcalc.experiments.records import SOME, digest_of, records
from tpcalc.progress import Progress, part
from tpcalc.questions.depth.limit import depth_text
from tpcalc.results import LossRow, Optimum, Transfer
from tpcalc.results.tables import provenance
from tpcalc.tasks.kept import Kept
from tpcalc.training.loss import no_samples
from tpcalc.training.training import Training

RATES = tuple(2.0**k for k in range(-10, 3))
DEPTHS = ("8", "16", "32", "64")
CAUTION = (
    "That a limit exists, or that features are learned, does not imply that the best learning "
    "rate stays where it is as the width or the number of blocks grows: this table says where it "
    "is for this run, and no more."
)


def transfer(
    training: Training,
    depths: Sequence[int | str] = (),
    rates: Sequence[float] = RATES,
    *,
    recipes: Iterable[str] = (),
    multipliers: Sequence[float] = (1.0,),
    widths: Sequence[float | str] = (OO,),
    seeds: int = 4,
    average: int = 1,
    seed: int = 0,
    device: str = "cpu",
    work: str | Path | None = None,
    progress: Progress | None = None,
) -> Transfer:
    """The loss over learning rates, widths and numbers of blocks, and where it is least.

    At infinite width losses are those of ``tp.limit``, of networks of L blocks those of
    ``tp.depth_limit``; where they are exact, the least is found between the rates. At a finite
    width networks are trained with their matrices formed, all rates and widths from the same seeds.

    Args:
        training: A run with data; its learning rate and multiplier are factors of those that are
            tried.
        depths: Of a network of L blocks numbers of them (8, 16, 32, 64 by default), ``"oo"`` at
            infinite width alone.
        rates: Learning rates, at the base depth of a recipe.
        recipes: Parameterizations that are compared, ``"mup"``, ``"depth-mup"``; without any that
            of the run.
        multipliers: Numbers in front of a block, at the base depth.
        widths: Widths of networks, and ``"oo"``: infinite width.
        seeds: Networks behind each loss, of a finite width.
        average: The losses of how many last steps are averaged.
        seed: Of the first network, and of samples.
        device: Where torch trains networks.
        work: A folder where losses are kept; the same call goes on from them.
        progress: Called with the fraction done and what is being done.

    Returns:
        All losses, and for each recipe, depth and width the best rate, with the slopes of its
        logarithm. A loss that infinite width does not have says why.

    Raises:
        UsageError: No data; widths, depths, rates or multipliers that are none; depths of a network
            that has no blocks, multipliers of one that has none; a limit in the depth at a finite
            width.
        StudyError: A folder that cannot be used.
        MissingBackend: A finite width, and torch is not installed.

    Source: Yang, Hu and others, Tensor Programs V, Figure 1; Yang, Yu, Zhu, Hayou, Tensor Programs
        VI, sections 5 and 10.2.

    Example:
        >>> import tpcalc as tp
        >>> data = tp.Samples(((1.0,),), ((1.0,),))
        >>> still = {"input": {"lr": 0}, "readout": {"lr": 0}}
        >>> net = tp.ResNet("L", "identity", nonlin="post")
        >>> run = tp.Training(net, "depth-mup", data, steps=1, groups=still)
        >>> found = transfer(run, (8, 64), recipes=("depth-mup", "depth-only-multiplier"))
        >>> for one in found.optima:
        ...     print(one.recipe, one.depth, round(one.rate, 6))
        depth-mup 8 0.438462
        depth-mup 64 0.376528
        depth-only-multiplier 8 0.15502
        depth-only-multiplier 64 0.047066
        >>> linear = tp.Training(tp.MLP(1, "identity"), "mup", data)
        >>> best = transfer(linear, rates=(0.25, 0.5, 1)).best("mup")
        >>> best.width, round(best.rate, 6), best.loss.method.value
        ('oo', 0.5, 'exact')
    """
    started = time.perf_counter()
    checks.called(progress, "progress", 0.0, "")
    known_device(device)
    checks.of_type(training, Training, "training", hint="Give tp.Training(network, 'mup', data).")
    if training.data is None:
        raise no_samples(None)
    asked = Asked(
        training,
        checks.names(recipes, "recipes") or (training.parameterization.text,),
        _depths(training, depths),
        tuple(sorted(_positive(rates, "rates", "a learning rate"))),
        _positive(multipliers, "multipliers", "a multiplier"),
        _widths(widths),
        checks.whole(seeds, "seeds", least=1, each=checks.PART),
        checks.whole(average, "average", least=1, most=training.steps + 1),
        checks.seed(seed),
        device,
        bool(recipes),
    )
    if asked.widths != (OO,):
        if OO in asked.depths:
            raise UsageError(
                "networks of a finite width have a number of blocks.",
                hint="Leave 'oo' out of the depths, or the widths.",
            )
        load_torch()
    cells = list(product(asked.recipes, asked.widths, asked.depths))
    tries = list(product(asked.multipliers, asked.rates))
    for recipe, multiplier in product(asked.recipes, asked.multipliers):
        asked.run(recipe, multiplier, asked.rates[0])  # what cannot be asked is said at once
    tasks = [asked.task(*cell, *one) for cell, one in product(cells, tries)]
    first, whole = len(tasks), len(tasks) + len(cells)
    told = part(progress, 0, first, whole), part(progress, first, whole, whole)
    digest = digest_of(training, average, seeds, seed, device, asked.named)
    with Kept(work, f"transfer-{digest}", digest) as kept:
        made = records(tasks, kept, LossRow, shared=asked, progress=told[0], count=SOME)
        rows = tuple(row for (row,) in made)
        groups = [rows[k : k + len(tries)] for k in range(0, first, len(tries))]
        grids = [best for group in groups if (best := best_of(group)) is not None]
        between = list(filter(searched, grids))
        tasks = [search(best) for best in between]
        made = records(tasks, kept, Optimum, shared=asked, progress=told[1])
    least = {grid: best for grid, (best,) in zip(between, made, strict=True)}
    optima: list[Optimum] = []
    for best in grids:
        optima.append(_sloped(least.get(best, best), optima))
    told[1](1.0, "best rates")
    last = training.steps
    steps = f"step {last}" if average == 1 else f"steps {last + 1 - average}..{last}"
    asked_for = {"depths": asked.depths, "widths": asked.widths, "recipes": asked.recipes}
    settings = {
        name: ", ".join(filter(None, words)) for name, words in asked_for.items() if any(words)
    }
    source = provenance(digest, seed, settings, time.perf_counter() - started)
    measured = f"the mean {training.loss.name} loss of the batch, {steps}"
    return Transfer(rows, tuple(optima), measured, source, (CAUTION,))


def _sloped(best: Optimum, before: Iterable[Optimum]) -> Optimum:
    """The optimum with the slopes since the depth and the width before."""
    for one in before:
        if one.recipe == best.recipe and one.width == best.width:
            best = replace(best, slope=_slope(one, best, one.depth, best.depth))
        if one.recipe == best.recipe and one.depth == best.depth:
            best = replace(best, width_slope=_slope(one, best, one.width, best.width))
    return best


def _slope(one: Optimum, two: Optimum, start: str, end: str) -> float | None:
    if not (start.isdigit() and end.isdigit()) or start == end:
        return None
    return math.log(two.rate / one.rate) / math.log(int(end) / int(start))


def _depths(training: Training, depths: Sequence[int | str]) -> tuple[str, ...]:
    given = checks.sequence(depths, "depths")
    if training.network.smallest.repeats:
        return tuple(dict.fromkeys(map(depth_text, given))) or DEPTHS
    if given:
        raise UsageError(
            f"the depth of {training.network.words} is a number; depths are compared of L blocks.",
            hint="Give widths, or a network such as tp.ResNet('L', ...).",
        )
    return ("",)


def _widths(widths: Sequence[float | str]) -> tuple[str, ...]:
    given = checks.sequence(widths, "widths") or (OO,)
    plain = [int(n) if isinstance(n, float) and n.is_integer() else n for n in given]
    found = [OO if n == OO else str(checks.whole(n, "a width", least=1)) for n in plain]
    if len(set(found)) < len(found):
        raise UsageError(f"widths are {', '.join(found)}; each is given once.")
    return tuple(found)


def _positive(values: Sequence[float], name: str, what: str) -> tuple[float, ...]:
    given = checks.sequence(values, name)
    found = tuple(float(checks.real(value, what, above=0)) for value in given)
    if not found:
        raise UsageError(f"no {what.removeprefix('a ')} is given.", hint="Give a list of them.")
    return found
