"""``study``: random networks of study A trained on images, test error against the coefficient."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tpcalc import checks
from tpcalc.errors import UsageError
from tpcalc.experiments.plans import StudyFile
from tpcalc.experiments.records import records, task_of
from tpcalc.practice.study_a import StudyPlan, study_point
from tpcalc.progress import Progress
from tpcalc.results.images import Images
from tpcalc.results.scales import Study, StudyPoint
from tpcalc.results.tables import provenance
from tpcalc.tasks.kept import Kept


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
