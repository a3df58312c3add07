"""``first_order``: what the first steps of training do, from sizes alone."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal, Unpack

from tpcalc import checks
from tpcalc.errors import ScaleError
from tpcalc.evaluate.settle import Witness
from tpcalc.finite.widths import check_width, check_widths
from tpcalc.networks.network import Architecture
from tpcalc.passes.change import Direction, inner_products
from tpcalc.passes.sums import Term, total
from tpcalc.program.nodes import Ref
from tpcalc.questions.depth.at_depth import at_depth
from tpcalc.questions.start.attained import (
    BOUND,
    MEASURED,
    OPEN,
    WIDTHS,
    Asked,
    Size,
    attained,
    unfelt,
)
from tpcalc.questions.start.bounds import Power
from tpcalc.questions.start.measured import SEEDS, WIDTH, measured
from tpcalc.questions.start.measured import WIDTHS as MEASURED_AT
from tpcalc.questions.start.moves import Sizes
from tpcalc.questions.start.words import (
    CHANGE,
    GRADIENT,
    START,
    Found,
    Key,
    network,
    parameter,
    point,
)
from tpcalc.results import FirstOrder, ReadPoint, Samples
from tpcalc.results.data import grouped
from tpcalc.results.first_order import kind_of
from tpcalc.results.tables import provenance
from tpcalc.torch.training import QuestionSettings, as_run
from tpcalc.training.parameterizations import Parameterization
from tpcalc.training.training import Training

FEW = 4  # equal blocks that are all tested
BLOCKS = 3  # in place of L: the first, the last, and one between
IN_WIDTH = (
    f"powers of n are those of {BLOCKS} blocks; what L blocks add up to, and powers of L, are the "
    "verdict's on the depth (tp.check)"
)
LIFTED = "small parts of a gradient may be large in a step"
PROBED = "the output stands for a fixed linear function of all outputs, the inputs are generic"


def first_order(
    architecture: Architecture | Training,
    parameterization: Parameterization | str | None = None,
    data: Samples | None = None,
    *,
    at: Mapping[str, object] | None = None,
    measure: Sequence[int] | Literal["auto"] | None = "auto",
    width: int | None = None,
    seeds: int = SEEDS,
    verify: bool = True,
    seed: int = 0,
    **settings: Unpack[QuestionSettings],
) -> FirstOrder:
    """What one step of every parameter does to the output and to what functions read.

    Sizes are bounds of the exponent calculus in one forward and one backward pass, so that every
    network has an answer in a moment; whether a bound is attained is settled by its form, by
    samples, or by networks of finite width, and every row says which. Of L blocks a few are
    written out: the powers are those of the width alone.

    Args:
        architecture: The network; or a training run, ``tp.Training``, and nothing of it besides.
        parameterization: A catalogue name or a parameterization.
        data: Training data, of which the first and the last sample are looked at; None: generic.
        at: Numbers for symbols in the exponents.
        measure: ``"auto"``: networks of widths 64 and 1024 settle what form and samples leave
            open, and nothing else. Widths, two or more: in networks of these the first step of each
            parameter is measured besides, which takes torch: what it adds to the output, and what
            it changes where functions read. None: what is open stays a bound.
        width: The width that measured values are told at (1024), and from what width on they are 1;
            given alone, widths of 64, 128, 256 are measured.
        seeds: Networks of each of these widths.
        verify: Whether it is settled at all, by samples or networks, which bounds are attained.
        seed: Of samples and networks.
        settings: As ``tp.Training`` takes them: optimizer, groups, loss, lr, ...

    Returns:
        The parameters, each with what its step adds to the output (``output``, ``later``) and the
        largest change where a function reads (``inside``); the read points; a word.

    Raises:
        MissingBackend: Widths to measure without torch.
        StudyError: Numbers that make no sense.
        UnknownName: No such parameterization, loss or optimizer.
        UsageError: L blocks whose start fades, with matrices correlated along the depth; a single
            width to measure.
        ScaleError: A symbol without a number.

    Source: Yang and Hu, Feature learning in infinite-width neural networks, appendix H, at the
        first step; Yang et al., Tensor Programs V, for entrywise optimizers.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = first_order(MLP(2, "tanh"), "mup", optimizer="adam")
        >>> found.word, found.status, [row.word for row in found.rows]
        ('feature learning', 'exact', ['learns', 'learns', 'learns'])
        >>> str(first_order(MLP(2, "tanh"), "ntk")["W2"].inside)
        '-1/2'
    """
    run = as_run(architecture, parameterization, data, settings, steps=1)
    seed = checks.seed(seed)
    values = checks.powers(at)
    tests = Witness(seed) if verify else None
    asked = MEASURED_AT if width is not None and measure in (None, "auto") else measure
    explicit = None if asked is None or isinstance(asked, str) else check_widths(asked)
    widths, told = () if measure is None else WIDTHS, WIDTH if width is None else check_width(width)
    return first_order_of(run, values, widths, seed, tests, explicit, told, seeds)


def first_order_of(
    run: Training,
    values: Mapping[str, Fraction],
    widths: Sequence[int],
    seed: int,
    tests: Witness | None,
    measure: Sequence[int] | None = None,
    width: int = WIDTH,
    seeds: int = SEEDS,
    sizes: Sizes | None = None,
) -> FirstOrder:
    """The same of a training run; without tests bounds stay bounds."""
    started = time.perf_counter()
    notes: tuple[str, ...] = (PROBED,)
    if run.network.smallest.repeats:
        run, notes = at_depth(run, BLOCKS), (PROBED, IN_WIDTH)
    sizes = Sizes.of(run, values) if sizes is None else sizes
    found = Asking(sizes, values, seed, widths, tests).settled()
    names = {ref: node.name for ref, node in sizes.steps.parameters.items()}
    roles = {
        ref: node.family.mark.role if node.family.mark else ""
        for ref, node in sizes.steps.parameters.items()
    }
    rows = tuple(parameter(found, ref, names[ref], roles[ref]) for ref in names)
    points: dict[str, ReadPoint] = {}
    places: dict[str, list[Ref]] = {}
    for ref in sizes.read:  # equal heads, rows of a softmax
        name = found.placed(ref)
        if name not in points:
            points[name] = point(found, ref, names)
        places.setdefault(name, []).append(ref)
    said, read = network(found, rows), tuple(points.values())
    if measure is not None:
        rows, read = measured(rows, read, sizes, places, measure, seed, seeds, width)
    asked = {"widths": ",".join(map(str, measure or widths))}
    seconds = time.perf_counter() - started
    return FirstOrder(
        said.word,
        said.status,
        said.facts,
        rows,
        read,
        run.optimizer.label,
        provenance(sizes.steps.network.digest, seed, asked, seconds),
        (*notes, *run.network.notes, *sizes.doubts),
        None if measure is None else width,
    )


@dataclass
class FirstLine:
    """The first steps of a run, with bounds that are taken once."""

    run: Training
    values: Mapping[str, Fraction]  # numbers for symbols
    seed: int  # of samples and networks
    verify: bool  # whether it is settled which bounds are attained

    def found(self, widths: Sequence[int] = ()) -> FirstOrder | None:
        """What they do, settled by networks of some widths; None for symbols without numbers."""
        with suppress(ScaleError):
            tests = Witness(self.seed) if self.verify else None
            sizes = None if self.run.network.smallest.repeats else self._sizes
            return first_order_of(self.run, self.values, widths, self.seed, tests, sizes=sizes)
        return None

    @cached_property
    def _sizes(self) -> Sizes:
        return Sizes.of(self.run, self.values)


@dataclass
class Asking:
    """Which bounds are attained."""

    sizes: Sizes  # the bounds
    values: Mapping[str, Fraction]  # numbers for symbols
    seed: int  # of networks
    widths: Sequence[int]  # theirs; none: they are not run
    tests: Witness | None  # of leading coefficients
    asked: dict[Key, Asked] = field(default_factory=dict)  # what is asked

    def settled(self) -> Found:
        """Gradients, read points and their changes."""
        sizes, first = self.sizes, self.sizes.passes[0]
        if self.tests is None:
            return Found(sizes, {})
        for ref in _ends({ref: node.name for ref, node in sizes.steps.parameters.items()}):
            gradient = first.gradients.of(first.new[ref])
            self._ask((GRADIENT, ref, 0), gradient, sizes.moves[0][ref].gradient)
        for ref, size in sizes.sizes(0, _ends(sizes.read)).items():
            if isinstance(size, Fraction) and size > 0:  # that nothing grows, bounds prove
                self._ask((START, ref, 0), first.new[ref], size)
        for (ref, by), node in sizes.change_nodes(self._doubtful()).items():
            self._ask((CHANGE, ref, by), node, sizes.moves[0][by].changes[ref])
        settled = {key: self._kept(key, size) for key, size in self._settle().items()}
        gradients = {ref: size for (kind, ref, _), size in settled.items() if kind == GRADIENT}
        still = [ref for ref, size in gradients.items() if size.is_zero]
        moving = [ref for ref, size in gradients.items() if not size.is_zero]
        # What is 0 is so by a symmetry, or until others have moved; beside one that is not.
        drawn = [ref for ref in still if settled[GRADIENT, ref, 0].status == MEASURED]
        if drawn and unfelt(sizes.steps, drawn, self.values, self.seed):
            settled |= {(GRADIENT, ref, 1): settled[GRADIENT, ref, 0] for ref in drawn}
            still = [ref for ref in still if ref not in drawn]
        for ref in (*still, *moving[:1]) if still else ():
            found = sizes.passes[1].gradients.of(sizes.passes[1].new[ref])
            self._ask((GRADIENT, ref, 1), found, sizes.moves[1][ref].gradient)
        return Found(sizes, settled | self._settle())

    def _doubtful(self) -> Iterator[tuple[Ref, Ref]]:
        """Changes that a word rests on: those that grow, and one of each read point."""
        names = {ref: node.name for ref, node in self.sizes.steps.parameters.items()}
        some = set(_ends(names))
        first = self.sizes.moves[0]
        for ref in _ends(self.sizes.read):
            largest = self.sizes.largest_changes(ref)
            free = (by for by in largest if by in some and ref not in first[by].capped)
            moved = {by: largest[by] for by in free}
            grows = any(power > 0 for power in moved.values())
            yield from ((ref, by) for by in (moved if grows else list(moved)[-1:]))

    def _kept(self, key: Key, size: Size) -> Size:
        """What is known of a change: of a sum of terms a slope shows no size below the bound."""
        kind, ref, by = key
        if kind != CHANGE or size.is_zero:
            return size
        bound, lifted = self.sizes.moves[0][by].changes[ref], self.sizes.is_lifted(by)
        if size.power == bound or not (lifted or size.status == MEASURED):
            return size
        return Size(bound, BOUND, LIFTED) if lifted else Size(bound, OPEN, size.why)

    def _ask(self, key: Key, node: Direction | None, power: Power) -> None:
        out, (kind, ref, step) = self.sizes.steps.builder, key
        own = self.sizes.passes[step if kind == GRADIENT else 0].new[ref]
        if node is not None and isinstance(power, Fraction):
            terms: list[Term] = [(1, None, one, ()) for one in inner_products(out, own, node, node)]
            self.asked[key] = Asked(total(out, terms), power, len(out.type(own).width))

    def _settle(self) -> dict[Key, Size]:
        asked, self.asked = self.asked, {}
        if not asked or self.tests is None:
            return {}
        named = {" ".join(map(str, key)): own for key, own in asked.items()}
        out, zeros = self.sizes.steps.builder, self.sizes.zeros
        found = attained(out, named, zeros, self.values, self.seed, self.widths, self.tests)
        return {key: found[" ".join(map(str, key))] for key in asked}


def _ends(names: Mapping[Ref, str]) -> list[Ref]:
    """All names, of many that differ by the number of a block the first and the last."""
    found = grouped(names, lambda ref: kind_of(names[ref])).values()
    some = (own if len(own) <= FEW else (own[0], own[-1]) for own in found)
    return [ref for own in some for ref in own]
