"""``tpcalc experiment FILE``: networks trained beside each other, and what the limit says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from tpcalc.cli.flags import AsJson, ReportOut
from tpcalc.cli.many import many
from tpcalc.cli.option import told

if TYPE_CHECKING:
    from tpcalc.experiments.settings import Plan
    from tpcalc.results import DepthExperiment, Experiment
    from tpcalc.study.load import Flag

FileWord = Annotated[Path, told("experiment", "FILE-WORD")]
Data = Annotated[str, told("experiment", "data")]
Samples = Annotated[int | None, told("experiment", "samples")]
DataSeed = Annotated[int, told("experiment", "data-seed")]
Width = Annotated[int | None, told("experiment", "width")]
Steps = Annotated[int | None, told("experiment", "steps")]
Trials = Annotated[int | None, told("experiment", "trials")]
Batch = Annotated[int | None, told("experiment", "batch")]
Device = Annotated[str, told("experiment", "device")]
Seed = Annotated[int, told("experiment", "seed")]
Work = Annotated[Path | None, told("experiment", "work")]


@many
def experiment(
    file: FileWord,
    data: Data = "digits",
    samples: Samples = None,
    data_seed: DataSeed = 0,
    width: Width = None,
    steps: Steps = None,
    trials: Trials = None,
    batch: Batch = None,
    device: Device = "cpu",
    seed: Seed = 0,
    work: Work = None,
    out: ReportOut = None,
    as_json: AsJson = False,
) -> None:
    """Networks trained on images, beside what was published and what the limit says."""
    from tpcalc.cli.places import check_page
    from tpcalc.cli.show import answer, write_page
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
    from tpcalc.cli.progress import progress_bar
    from tpcalc.data import images
    from tpcalc.experiments.trained import device_for_tasks, trained

    device_for_tasks(run.device)  # before data are read
    pictures = images(run.data, train=run.samples, seed=run.data_seed)
    with progress_bar(plan.name) as progress:
        found = trained(
            plan.settings,
            pictures,
            name=plan.name,
            title=plan.title,
            by_width=plan.by_width,
            trials=plan.trials,
            seed=run.seed,
            device=run.device,
            ranks=plan.rank_samples,
            work=run.work,
            progress=progress,
        )
    return replace(
        found,
        source=plan.source,
        shows=plan.shows,
        reported=plan.reported,
        shares=(*found.shares, *plan.shares),
    )


def _along_depth(file: Path, given: dict[str, Any], run: _Run) -> DepthExperiment:
    """A file about networks of many blocks."""
    from tpcalc.cli.progress import progress_bar
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
