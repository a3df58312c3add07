"""``study``: random networks of study A trained on images, test error against the coefficient."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from tpcalc import checks
from tpcalc.errors import UsageError
from tpcalc.experiments.records import records, task_of
from tpcalc.practice.study_a import StudyPlan, study_point
from tpcalc.progress import Progress
from tpcalc.results.images import Images
from tpcalc.results.scales import Study, StudyPoint
from tpcalc.results.tables import provenance
from tpcalc.study.load import merged_with
from tpcalc.study.schema import Count, Part, Positive
from tpcalc.study.sections import Flag, problems_of, read_sections, refusal
from tpcalc.tasks.kept import Kept

KIND = "macro-layers"


class TrainedPart(Part):
    """``[training]``: how networks are trained, the fields of ``StudyPlan``, and how many.

    Args:
        networks: How many random networks.
        parameters: Entries of the matrices of each.
        rates: How many learning rates are tried.
        factor: The quotient of two neighbours.
        smallest: The relative length of a step with the first of them.
        epochs: Passes over the training images with each.
        batch: Images of a step.
    """

    networks: Count = 24
    parameters: Count = StudyPlan.parameters
    rates: Count = StudyPlan.rates
    factor: Annotated[float, Field(gt=1)] = StudyPlan.factor
    smallest: Positive = StudyPlan.smallest
    epochs: Count = StudyPlan.epochs
    batch: Count = StudyPlan.batch


class StudyFile(Part):
    """A whole file.

    Args:
        kind: ``"macro-layers"``.
        name: Its name.
        title: What it is about.
        source: Where it was published.
        notes: What a reader should know besides.
        training: How networks are trained.
    """

    kind: Literal["macro-layers"]
    name: Annotated[str, Field(min_length=1)]
    title: str
    source: str = ""
    notes: Annotated[tuple[str, ...], Field(strict=False)] = ()
    training: TrainedPart = TrainedPart()


def is_study_file(path: Path) -> bool:
    """Whether an experiment file is about random networks."""
    return read_sections(path).get("kind") == KIND


def load_study(path: Path, flags: Sequence[Flag] = ()) -> StudyFile:
    """Read a file."""
    try:
        return StudyFile.model_validate(merged_with(read_sections(path), flags))
    except ValidationError as error:
        raise refusal(problems_of(error, StudyFile), flags, str(path)) from None


def study(
    file: StudyFile,
    images: Images,
    *,
    seed: int = 0,
    device: str = "cpu",
    work: str | Path | None = None,
    progress: Progress | None = None,
) -> Study:
    """Train random networks of study A; each is a task, which is kept."""
    if device != "cpu":
        raise UsageError("networks of a study are trained on the CPU.", where=f"device {device}")
    began, seed = time.perf_counter(), checks.seed(seed)
    asked: dict[str, Any] = file.training.model_dump(exclude={"networks"})
    plan = replace(StudyPlan(), **asked)
    facts = {**asked, "data": images.digest}
    tasks = [task_of(study_point, f"network {k}", seed + k) for k in range(file.training.networks)]
    with Kept(work, f"study-{images.digest[:8]}", facts) as kept:
        shared = plan, images
        made = records(tasks, kept, StudyPoint, shared=shared, progress=progress)
    points = tuple(one for (one,) in made)
    said = {name: f"{value:g}" for name, value in asdict(plan).items()}
    source = provenance(images.digest, seed, said, time.perf_counter() - began)
    return Study(file.name, file.title, file.source, str(images), points, source, file.notes)
