"""``tpcalc experiment FILE``: networks trained beside each other, and what the limit says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tpcalc.cli.option import many

if TYPE_CHECKING:
    from tpcalc.experiments.trained import Plan
    from tpcalc.results import DepthExperiment, Experiment
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
    from tpcalc.cli.show import answer, check_page, write_page
    from tpcalc.data.image_sets import image_set
    from tpcalc.engine.device.devices import known_device
    from tpcalc.experiments.plans import is_depth_file
    from tpcalc.experiments.settings import load_experiment

    check_page(out)
    known_device(device)
    run = _Run(data, samples, data_seed, device, seed, work)
    given = {"width": width, "steps": steps, "trials": trials, "batch": batch}
    found: Experiment | DepthExperiment
    model = {"file": str(file)}
    if is_depth_file(file):
        found = _along_depth(file, given, run)
    else:
        found = _trained(load_experiment(file, image_set(data), _flags(given)), run)
        model["data"] = found.data
    title = f"{found.name}: {found.title}"
    write_page(out, title, found)
    answer("experiment", model, found, title, as_json, written={"out": out})


def _flags(given: dict[str, Any], **keys: str) -> list[Flag]:
    from tpcalc.study.load import Flag

    return [
        Flag(f"--{name}", keys.get(name, f"training.{name}"), value)
        for name, value in given.items()
        if value is not None
    ]


class _Run(NamedTuple):
    """Where and on what an experiment is run."""

    data: str
    samples: int | None
    data_seed: int
    device: str
    seed: int
    work: Path | None


def _trained(plan: Plan, run: _Run) -> Experiment:
    from tpcalc.cli.show import progress_bar
    from tpcalc.data import images
    from tpcalc.experiments.trained import device_for_tasks, trained

    device_for_tasks(run.device)  # before data are read
    pictures = images(run.data, train=run.samples, seed=run.data_seed)
    with progress_bar(plan.name) as progress:
        return trained(
            plan, pictures, seed=run.seed, device=run.device, work=run.work, progress=progress
        )


def _along_depth(file: Path, given: dict[str, Any], run: _Run) -> DepthExperiment:
    """A file about networks of many blocks."""
    from tpcalc.cli.show import progress_bar
    from tpcalc.experiments.depth import depth_experiment
    from tpcalc.experiments.plans import load_depth_experiment

    widths = None if given["width"] is None else [given["width"]]
    data = None if run.data == "digits" else run.data
    typed = given | {"width": widths, "samples": run.samples, "data": data}
    plan = load_depth_experiment(file, _flags(typed, width="depths.widths", trials="depths.seeds"))
    with progress_bar(plan.file.name) as progress:
        return depth_experiment(
            plan, seed=run.seed, device=run.device, work=run.work, progress=progress
        )
