"""``tpcalc experiment FILE``: networks trained beside each other, and what the limit says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpcalc.cli.option import many

if TYPE_CHECKING:
    from tpcalc.results import DepthExperiment, Experiment
    from tpcalc.results.scales import Study
    from tpcalc.study.load import Flag


@many
def experiment(
    file: Path,
    data: str = "digits",
    samples: int | None = None,
    data_seed: int = 0,
    width: int | None = None,
    steps: int | None = None,
    trials: int | None = None,
    batch: int | None = None,
    device: str = "cpu",
    seed: int = 0,
    work: Path | None = None,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """Networks trained on images, beside what was published and what the limit says."""
    from tpcalc.cli.show import answer, check_page, progress_bar, write_page
    from tpcalc.data import images
    from tpcalc.data.image_sets import image_set
    from tpcalc.engine.device.devices import known_device
    from tpcalc.experiments.depth import depth_experiment
    from tpcalc.experiments.plans import is_depth_file, load_depth_experiment
    from tpcalc.experiments.trained import device_for_tasks

    check_page(out)
    known_device(device)
    given: dict[str, Any] = {"width": width, "steps": steps, "trials": trials, "batch": batch}
    model = {"file": str(file)}
    run: Callable[..., Experiment | DepthExperiment | Study]
    if is_depth_file(file):
        given["width"] = None if width is None else [width]
        given |= {"samples": samples, "data": None if data == "digits" else data}
        flags = _flags(given, width="depths.widths", trials="depths.seeds")
        deep = load_depth_experiment(file, flags)
        name, run = deep.file.name, partial(depth_experiment, deep)
    else:
        plan, ask = _asked(file, image_set(data), given)
        device_for_tasks(device)  # before data are read
        pictures = images(data, train=samples, seed=data_seed)
        model["data"] = str(pictures)
        name, run = plan.name, partial(ask, plan, pictures)
    with progress_bar(name) as progress:
        found = run(seed=seed, device=device, work=work, progress=progress)
    title = f"{found.name}: {found.title}"
    write_page(out, title, found)
    answer("experiment", model, found, title, as_json, written={"out": out})


def _asked(file: Path, data: str, given: Mapping[str, Any]) -> tuple[Any, Callable[..., Any]]:
    """What a file of networks that are trained on images asks for, and what answers."""
    from tpcalc.experiments.plans import is_study_file, load_study
    from tpcalc.experiments.settings import load_experiment
    from tpcalc.experiments.study import study
    from tpcalc.experiments.trained import trained

    if is_study_file(file):
        own = {"trials": "training.networks", "steps": "training.epochs"}
        return load_study(file, _flags(given, **own)), study
    return load_experiment(file, data, _flags(given)), trained


def _flags(given: Mapping[str, Any], **keys: str) -> list[Flag]:
    from tpcalc.study.load import Flag

    return [
        Flag(f"--{name}", keys.get(name, f"training.{name}"), value)
        for name, value in given.items()
        if value is not None
    ]
