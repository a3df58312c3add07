"""The sections of a file about networks of many blocks: what can be asked of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from tpcalc.doors.numbers import exact
from tpcalc.program.along import along_of
from tpcalc.study.schema import Count, ParameterizationWord, Part, Positive, known
from tpcalc.study.sections import Flag, problems_of, refusal

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


def depth_file(sections: Mapping[str, Any], flags: Sequence[Flag], where: str | None) -> DepthFile:
    """A file as read, with all that is wrong in it told at once."""
    try:
        return DepthFile.model_validate(sections)
    except ValidationError as error:
        raise refusal(problems_of(error, DepthFile), flags, where) from None
