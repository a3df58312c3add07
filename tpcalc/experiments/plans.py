"""Files of studies of networks of many blocks -> ``DepthPlan``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tpcalc.experiments.depth import DepthPlan
from tpcalc.experiments.parts import depth_file
from tpcalc.results import Reference
from tpcalc.study.build import data_of, network_of
from tpcalc.study.load import located, merged_with, study_of
from tpcalc.study.sections import Flag, read_sections, refusal

KIND = "depth"


def is_depth_file(path: str | Path) -> bool:
    """Whether an experiment file is about networks of many blocks."""
    return read_sections(Path(path)).get("kind") == KIND


def load_depth_experiment(path: str | Path, flags: Sequence[Flag] = ()) -> DepthPlan:
    """Read a file."""
    path = Path(path)
    return depth_plan_of(located(read_sections(path), path.parent), flags, where=str(path))


def depth_plan_of(
    sections: Mapping[str, Any], flags: Sequence[Flag] = (), *, where: str | None = None
) -> DepthPlan:
    """A plan from nested mappings, as a TOML file gives them.

    Example:
        >>> found = depth_plan_of({
        ...     "kind": "depth", "name": "sizes", "title": "Sizes",
        ...     "training": {"steps": 1, "inputs": [[1.0]], "targets": [[1.0]]},
        ...     "depths": {"blocks": [4, "oo"]}, "profile": {"places": [0.5], "steps": [1]},
        ... })
        >>> found.depths, found.shape.what
        (('4', 'oo'), 'size')
    """
    found = depth_file(merged_with(sections, flags), flags, where)
    if not any((found.profile, found.transfer, found.start, found.trained)):
        problem = "there is neither [profile], [transfer], [start] nor [trained]: nothing is asked."
        raise refusal([("profile", problem)], flags, where)
    model = {"architecture": "resnet", "depth": "L", **found.model}
    study = study_of({"model": model, "training": found.training}, where=where)
    run = network_of(study).training
    if run.data is None and (found.profile or found.transfer):
        run = run.replace(data=data_of(study))
    return DepthPlan(
        found.name,
        found.title,
        found.source,
        run,
        found.depths.recipes,
        tuple(map(str, found.depths.blocks)),
        found.depths.widths,
        found.depths.seeds,
        found.profile,
        found.transfer,
        tuple(
            Reference(depth=str(one.blocks), **one.model_dump(exclude={"blocks"}))
            for one in found.references
        ),
        found.notes,
        found.start,
        found.trained,
    )
