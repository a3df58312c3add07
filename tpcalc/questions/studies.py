"""Questions of studies: settings of a study as arguments of the functions that compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpcalc.errors import UsageError
from tpcalc.evaluate.limit import GROWING, limit
from tpcalc.finite.simulate import simulate
from tpcalc.progress import Progress
from tpcalc.questions.depth.limit import OO, depth_limit
from tpcalc.questions.depth.shape import block_at_start
from tpcalc.results import DepthTable, FiniteTable, Kernel, LimitTable, Samples
from tpcalc.study import Model, Network, Study, network_of
from tpcalc.study.build import data_of
from tpcalc.study.modules import own_data

STARTED = ("10", "32", "100", "316", "1000")  # a recursion takes L^2 steps of a few nanoseconds
_KERNEL = {"samples": 100, "classes": tuple(range(10))}


def limit_of(
    model: Model,
    formulas: Sequence[str] = (),
    given: Mapping[str, float] | None = None,
    progress: Progress | None = None,
) -> LimitTable:
    """The limits of a model, with formulas of the outputs whose names fit a pattern.

    Scalars that explode are given after their power of n is taken out.
    """
    chosen = model.study.limit.model_dump(exclude_none=True)
    chosen |= {"formulas": formulas, "given": given, "rescale": GROWING}
    return limit(model.program, **chosen, progress=progress).table


def networks_of(model: Model, progress: Progress | None = None) -> FiniteTable:
    """The same program at finite widths."""
    chosen = model.study.simulate.model_dump(exclude_none=True)
    return simulate(model.program, **chosen, progress=progress)


def check_seeds(model: Model) -> None:
    """Refuse a comparison without error bars before the long run, not after it."""
    seeds = model.study.simulate.seeds
    if seeds is not None and seeds < 2:
        raise UsageError(
            "--seeds: one network of each width shows no error bar to compare by.",
            hint="Take two or more; ten or more are better.",
        )


def start_alone(network: Network) -> bool:
    """Whether a network of L blocks is asked about its start alone.

    So it is of no steps, and of matrices that are correlated along the depth where neither steps
    nor powers of L of their updates are asked for.
    """
    run, asked = network.training, network.study.training.model_fields_set
    trained = "steps" in asked or run.gammas is not None
    return not run.steps or (not trained and bool(block_at_start(run.network).correlated))


def depths_of(
    network: Network,
    depths: Sequence[str] = (),
    places: Sequence[float] = (),
    progress: Progress | None = None,
) -> DepthTable:
    """A run of L blocks at some depths, by default its limit; without data on the digits."""
    run, part, alone = network.training, network.study.limit, start_alone(network)
    if run.data is None and not alone:
        run = run.replace(data=data_of(network.study))
    return depth_limit(
        run.network if alone else run,
        depths or (STARTED if alone else (OO,)),
        places=places,
        seed=part.seed,
        samples=part.samples,
        replicates=part.replicates,
        threads=part.threads,
        progress=progress,
    )


def kernel_of(
    study: Study, progress: Progress | None = None, **asked: Any
) -> tuple[Kernel, Network, Samples]:
    """The kernel of the network of a study on many inputs."""
    from tpcalc.questions.kernel.kernel import kernel

    opened, part = network_of(_kernel_study(study)), study.limit
    data = opened.training.data or own_data(study.module, opened.training)
    if study.module.make is not None and asked.get("scale") is None:
        asked["scale"] = 1.0  # its first layer is as it is written
    asked |= {"seed": part.seed, "threads": part.threads, "progress": progress}
    way = opened.parameterization
    return kernel(opened.architecture, data.inputs, parameterization=way, **asked), opened, data


def _kernel_study(study: Study) -> Study:
    """A study with what a kernel takes where it does not say it: NTK powers, many inputs."""
    model, training = study.model, study.training
    given, own = training.model_fields_set, dict[str, Any]()
    if study.module.make is not None:  # it has powers and inputs; a kernel is that of SGD
        own["optimizer"] = "sgd"
    else:
        if "param" not in model.model_fields_set:
            model = model.model_copy(update={"param": "ntk"})
        if training.data in (None, "digits") and training.inputs is None:
            own = {key: value for key, value in _KERNEL.items() if key not in given}
            if "loss" in given:  # targets have no part in a kernel: any loss takes them
                own["loss"] = "mse"
    training = training.model_copy(update=own)
    return study.model_copy(update={"model": model, "training": training})
