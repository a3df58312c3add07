"""Networks over positions whose kernels follow from planes of positions, as of convolutions."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

import numpy as np

from tpcalc.engine.chains_series import NotSettled, Smooth
from tpcalc.engine.planes_stages import Stage
from tpcalc.exponents import Ex
from tpcalc.integrals.average import averages
from tpcalc.networks.network import Architecture
from tpcalc.networks.stage_values import NoStages
from tpcalc.networks.stages import stages_of
from tpcalc.program.family import Mark
from tpcalc.progress import Progress
from tpcalc.questions.kernel.entries import Found
from tpcalc.questions.kernel.network import SIMPLE, Network, family_of, smooth_of
from tpcalc.results import Method
from tpcalc.training.parameterizations import Parameterization

Stages = tuple[Stage, ...]


def stages(task: Network) -> Stages:
    """The stages of a network.

    Raises:
        NoStages: It has none; the message names what is not covered.
    """
    if task.architecture.along_depth:
        raise NoStages("weights along the depth")
    known = isinstance(task.architecture, Hashable)
    return (_known if known else _stages)(task.architecture, task.exponents, task.layers)


def _stages(
    architecture: Architecture, exponents: Parameterization, layers: frozenset[int] | None
) -> Stages:
    table = exponents.exponents(architecture.hidden, 0)
    if any(table.mean):
        raise NoStages("weights with a mean")

    def rate(mark: Mark) -> float:
        keeps = exponents.power(mark, table) == mark.keeping
        if not keeps or exponents.rate(mark, table) != Ex() or mark.init is not None:
            raise NoStages(f"the powers of n of {mark.label!r}")
        return float(mark.rate) if layers is None or mark.layer in layers else 0.0

    found = stages_of(
        architecture,
        rate,
        family_of,
        smooth_of,
        lambda expr: averages([expr], [[1]]).value.item(),
    )
    if not _positive(found):
        raise NoStages("sums of the positions of a layer with factors of both signs")
    return found


def _positive(found: Stages) -> bool:
    """Whether errors of sums add up: no tap has factors of both signs."""
    taps = (row for one in found for source in one.sources for row in source.factors.T)
    return not any((row < 0).any() and (row > 0).any() for row in taps)


_known = lru_cache(maxsize=16)(_stages)


def run_stages(
    found: Stages, task: Network, threads: int | None, progress: Progress | None
) -> Found:
    """The kernels of a network over positions.

    Raises:
        NoStages: A function has no tables.

    Source: Novak et al., Bayesian deep convolutional networks with many channels are Gaussian
        processes (2019); Arora et al., On exact computation with an infinitely wide neural net
        (2019).
    """
    from tpcalc.engine.planes import plane_kernels

    root = np.sqrt(task.left.scale)
    others = None if task.right is None else root * task.right.rows
    try:
        kernels = plane_kernels(
            root * task.left.rows, others, found, threads=threads, progress=progress
        )
    except NotSettled as why:
        raise NoStages(str(why)) from None
    each = found[-1].size  # outputs of an input
    shape = (len(task.left.rows), each, -1, each) if each > 1 else (len(task.left.rows), -1)
    matrices = {kind: getattr(kernels, kind).reshape(shape) for kind in task.kinds}
    asked = "ntk" in task.kinds
    return Found(
        matrices,
        Method.QUADRATURE if any(map(is_tabled, found)) else Method.EXACT,
        max(getattr(kernels, f"{kind}_error") for kind in task.kinds),
        None,
        True if asked else None,
        (SIMPLE,) if asked else (),
        {"route": "planes of positions" if task.architecture.tokens > 1 else "planes of layers"},
    )


def is_tabled(stage: Stage) -> bool:
    """Whether a stage has a function without a closed dual."""
    return isinstance(stage.bend, Smooth) or stage.lifted is not None
