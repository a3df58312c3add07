"""Files of studies of networks of many blocks: what can be asked of them -> ``DepthPlan``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from tpcalc.doors.numbers import exact
from tpcalc.practice.study_a import StudyPlan
from tpcalc.program.along import along_of
from tpcalc.results import Reference
from tpcalc.study.build import data_of, network_of
from tpcalc.study.load import located, merged_with, study_of
from tpcalc.study.schema import Count, ParameterizationWord, Part, Positive, known
from tpcalc.study.sections import Flag, problems_of, read_sections, refusal
from tpcalc.training.training import Training

KIND = "depth"
_Share = Annotated[float, Field(ge=0, le=1)]
_Depth = Count | Literal["oo"]
_Power = Annotated[str, known(partial(exact, what="alpha"))]


def _many(item: Any) -> Any:
    return Annotated[tuple[item, ...], Field(strict=False, min_length=1)]


class Shape(Part):
    """``[profile]``: what is followed along the depth.

    Args:
        what: ``"size"``, the root mean square of the stream; ``"distance"``, that of how far it
            moves between two places.
        places: Shares of the depth; of distances how far apart, from ``start``.
        steps: The training steps.
        start: Where distances begin.
    """

    what: Literal["size", "distance"] = "size"
    places: _many(_Share)  # type: ignore[valid-type]
    steps: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(strict=False, min_length=1)]
    start: _Share = 0.5


class Rates(Part):
    """``[transfer]``: the learning rates that are compared.

    Args:
        rates: The rates, at the base depth of a recipe.
        multipliers: Numbers in front of a block.
        average: The losses of how many last steps are averaged.
    """

    rates: _many(Positive)  # type: ignore[valid-type]
    multipliers: _many(Positive) = (1.0,)  # type: ignore[valid-type]
    average: Count = 1


class Growth(Part):
    """``[start]``: how far blocks carry a stream and its adjoint at the start.

    Args:
        along: Laws of the weights along the depth.
        alphas: Powers of 1/L in front of a block.
        ratios: ``"D"``, ``"R"``, of gradients ``"Dp"``, ``"Rp"``.
        places: Shares of the blocks that are gone through.
        walks: How many sequences of each law are drawn and measured.
    """

    along: _many(Annotated[str, known(along_of)]) = ("fresh",)  # type: ignore[valid-type]
    alphas: Annotated[tuple[_Power, ...], Field(strict=False)] = ()
    ratios: _many(Literal["D", "R", "Dp", "Rp"]) = ("D", "Dp")  # type: ignore[valid-type]
    places: _many(_Share) = (1.0,)  # type: ignore[valid-type]
    walks: Annotated[int, Field(ge=0)] = 0


class Heat(Part):
    """``[trained]``: networks trained on digits from weights that depend on each other.

    Args:
        along: Laws of the weights along the depth at the start.
        alphas: Powers of 1/L in front of a block.
        rates: Learning rates, of which the best one is taken.
        images: How many training images; all the rest are tested.
    """

    along: _many(Annotated[str, known(along_of)])  # type: ignore[valid-type]
    alphas: _many(_Power)  # type: ignore[valid-type]
    rates: _many(Positive)  # type: ignore[valid-type]
    images: Count = 1000


class DepthsPart(Part):
    """``[depths]``: the networks.

    Args:
        recipes: Parameterizations with powers of the depth.
        blocks: Numbers of blocks; ``"oo"`` is the limit.
        widths: Widths of networks; without any the width is infinite.
        seeds: Networks of each width.
    """

    recipes: _many(ParameterizationWord) = ("depth-mup",)  # type: ignore[valid-type]
    blocks: _many(_Depth)  # type: ignore[valid-type]
    widths: Annotated[tuple[Count, ...], Field(strict=False)] = ()
    seeds: Count = 4


class ReferencePart(Part):
    """An entry of ``[[references]]``: a reference number.

    Args:
        where: Where it stands.
        what: What it is; ``"rate"``: the best learning rate; ``"log10"``: the logarithm of a ratio;
            ``"quantile"``: that of networks at the share ``place``.
        recipe: The parameterization of the depth.
        blocks: The number of blocks, or ``"oo"``.
        value: The number.
        step: Of a profile the training step.
        place: Of a profile its place.
        digits: The unit of its last digit.
        along: Of a ratio the law along the depth.
        alpha: Of a ratio the power of 1/L.
        name: Of a ratio its name.
        width: Of a ratio the width of networks, or ``"oo"``.
    """

    where: str
    what: Literal["size", "distance", "slope", "rate", "log10", "quantile"]
    recipe: str = "depth-mup"
    blocks: _Depth
    value: float
    step: int = 0
    place: float = 0.0
    digits: float = 1e-6
    along: Annotated[str, known(along_of)] = "fresh"
    alpha: str = ""
    name: Literal["", "D", "R", "Dp", "Rp"] = ""
    width: str = ""


class DepthFile(Part):
    """A whole file.

    Args:
        kind: ``"depth"``.
        name: Its name.
        title: What it is about.
        source: Where it was published.
        notes: What a reader should know besides.
        model: The network, as in a study file; its depth is the symbol L.
        training: The run, as in a study file.
        depths: The networks.
        profile: What is followed along the depth.
        transfer: The learning rates that are compared.
        start: What is asked of the start.
        trained: What is trained from weights that depend on each other.
        references: Reference numbers.
    """

    kind: Literal["depth"]
    name: Annotated[str, Field(min_length=1)]
    title: str
    source: str = ""
    notes: Annotated[tuple[str, ...], Field(strict=False)] = ()
    model: dict[str, Any] = Field(default_factory=dict)
    training: dict[str, Any] = Field(default_factory=dict)
    depths: DepthsPart
    profile: Shape | None = None
    transfer: Rates | None = None
    start: Growth | None = None
    trained: Heat | None = None
    references: Annotated[tuple[ReferencePart, ...], Field(strict=False)] = ()


@dataclass(frozen=True, slots=True)
class DepthPlan:
    """A study of networks of many blocks: the file, and the run of L blocks that it is about."""

    file: DepthFile
    training: Training

    @property
    def depths(self) -> tuple[str, ...]:
        """Numbers of blocks; ``"oo"`` at infinite width."""
        return tuple(map(str, self.file.depths.blocks))

    @property
    def references(self) -> tuple[Reference, ...]:
        """Reference numbers."""
        return tuple(
            Reference(depth=str(one.blocks), **one.model_dump(exclude={"blocks"}))
            for one in self.file.references
        )


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
    """A plan from nested mappings, as a TOML file gives them; all that is wrong is told at once.

    Example:
        >>> found = depth_plan_of({
        ...     "kind": "depth", "name": "sizes", "title": "Sizes",
        ...     "training": {"steps": 1, "inputs": [[1.0]], "targets": [[1.0]]},
        ...     "depths": {"blocks": [4, "oo"]}, "profile": {"places": [0.5], "steps": [1]},
        ... })
        >>> found.depths, found.file.profile.what
        (('4', 'oo'), 'size')
    """
    try:
        found = DepthFile.model_validate(merged_with(sections, flags))
    except ValidationError as error:
        raise refusal(problems_of(error, DepthFile), flags, where) from None
    if not any((found.profile, found.transfer, found.start, found.trained)):
        problem = "there is neither [profile], [transfer], [start] nor [trained]: nothing is asked."
        raise refusal([("profile", problem)], flags, where)
    model = {"architecture": "resnet", "depth": "L", **found.model}
    study = study_of({"model": model, "training": found.training}, where=where)
    run = network_of(study).training
    if run.data is None and (found.profile or found.transfer):
        run = run.replace(data=data_of(study))
    return DepthPlan(found, run)


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
    return read_sections(path).get("kind") == "macro-layers"


def load_study(path: Path, flags: Sequence[Flag] = ()) -> StudyFile:
    """Read a file."""
    try:
        return StudyFile.model_validate(merged_with(read_sections(path), flags))
    except ValidationError as error:
        raise refusal(problems_of(error, StudyFile), flags, str(path)) from None
