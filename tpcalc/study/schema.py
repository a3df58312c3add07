"""What a study file may say: every key with its type, its range and its default.

What a key means is told by its flag, in ``cli/flags.toml``; of those without one it stands here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from tpcalc.activations import entries
from tpcalc.doors.numbers import MOST, exact, whole
from tpcalc.engine.device.devices import known_device
from tpcalc.errors import StudyError, TpcalcError
from tpcalc.networks.architecture import bias_variance_of, row_of, variance_of
from tpcalc.registry.values import exponent
from tpcalc.study.program_file import find_architecture, split_model
from tpcalc.training import losses, parameterizations, schedules

_Finite = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=MOST)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Seed = Annotated[int, Field(ge=0, le=MOST)]
# TOML has arrays, not tuples: strictness is for the numbers in them.
_Counts = Annotated[tuple[Count, ...], Field(strict=False, min_length=1)]


def _as_rows(targets: Any) -> Any:
    """One number for a sample stands for a row of one."""
    if not isinstance(targets, list):
        return targets
    return [row if isinstance(row, list) else [row] for row in targets]


def known(find: Callable[[Any], object]) -> AfterValidator:
    """A check that the catalogue takes a value; what it says otherwise is the problem."""

    def check(name: Any) -> Any:
        try:
            find(name)
        except TpcalcError as error:
            text = " ".join(part for part in (error.message, error.hint) if part)
            raise PydanticCustomError("unknown_name", "{text}", {"text": text}) from error
        return name

    return AfterValidator(check)


def _listed(name: str) -> None:
    """Check a name of the catalogue; Python files run when all else has been checked."""
    if split_model(name) is None:
        find_architecture(name)


def _power_of_two(samples: int) -> int:
    if samples & (samples - 1):
        below = 1 << (samples.bit_length() - 1)
        raise PydanticCustomError(
            "power_of_two",
            "it should be a power of two, such as {below} or {above}",
            {"below": below, "above": 2 * below},
        )
    return samples


def _depth(value: Any, check: Callable[[Any], int]) -> Any:
    """A number of blocks, also as text, or the symbol."""
    if value == "L":
        return value
    if isinstance(value, str) and "oo" in value.split(","):
        text = "one number of blocks, or L, is asked here; lists and oo are for limits and transfer"
        raise PydanticCustomError("unknown_name", text)
    number = whole(value) if isinstance(value, str) else None
    return check(value if number is None else number)


def _gammas(value: Any) -> None:
    """Exponents of updates, one or one by label."""
    for one in value.values() if isinstance(value, dict) else [value]:
        exponent(one, what="gamma")


def _shape(text: str) -> None:
    if not re.fullmatch(r"([1-9]\d*|n)(x([1-9]\d*|n))*(:vocab=[1-9]\d*)?", text):
        hint = "Write 4x8, with n for the width, or 8x16:vocab=50 of whole numbers."
        raise StudyError(f"{text!r} is no shape.", hint=hint)


def _rows(value: Any, name: str, where: str) -> None:
    parts = value.split(",") if isinstance(value, str) else value
    for part in parts if isinstance(parts, list) else [parts]:
        row_of(part, 1, name, where)


_Rows = list[list[_Finite]]
# Numbers or their texts ("9/4"), which stay exact.
# Of one layer or of all; how many there are is checked with the network.
_Weights = Annotated[Any, known(partial(_rows, name="the variance", where="model.weight_variance"))]
_WeightRates = Annotated[Any, known(partial(_rows, name="the rate", where="model.weight_rate"))]
_BiasRates = Annotated[Any, known(partial(_rows, name="the rate", where="model.bias_rate"))]
_Inputs = Annotated[
    Any, known(partial(variance_of, name="the variance", where="model.input_variance"))
]
_Biases = Annotated[Any, known(partial(bias_variance_of, where="model.bias_variance"))]
_Power = Annotated[Any, known(partial(exponent, what="alpha"))]
_Values = dict[str, Annotated[Any, known(partial(exact, what="a value"))]]
_Shape = Annotated[str, known(_shape)]
ActivationWord = Annotated[str, known(entries.lookup)]
ParameterizationWord = Annotated[str, known(parameterizations.lookup)]
ScheduleWords = Annotated[str | list[_Finite], known(schedules.checked)]
GroupsPart = dict[str, dict[str, Any]]
_Device = Annotated[str, known(known_device)]
# A Sobol sequence is balanced at powers of two only.
_Particles = Annotated[int, Field(ge=2, le=2**40), AfterValidator(_power_of_two)]


class Part(BaseModel):
    """A section of a file: its keys alone, of their types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ModelPart(Part):
    """``[model]``: the network and the powers of its width."""

    # A catalogue name, or a network in a Python file (``net.py:Net``)
    architecture: Annotated[str, known(_listed)] = "mlp"
    depth: Annotated[Count, WrapValidator(_depth), PlainSerializer(lambda depth: depth)] = 3
    length: Count = 4
    act: ActivationWord | None = None
    param: ParameterizationWord = "mup"
    p: Annotated[_Finite, Field(gt=0)] | None = None
    bias: Literal["none", "first", "hidden", "all"] = "none"
    weight_variance: _Weights = None
    bias_variance: _Biases = None
    variances: Literal["factors", "initial"] = "factors"
    weight_rate: _WeightRates = None
    bias_rate: _BiasRates = None
    input_variance: _Inputs = None
    norm: Literal["none", "layer", "rms"] = "none"
    alpha: _Power = None
    nonlin: Literal["pre", "post", "between"] = "pre"
    center: bool = False
    layers: Count = 1
    multiplier: Annotated[Any, known(partial(exact, what="multiplier"))] = None
    shared: bool = False
    law: str = "gaussian"
    along: str = "fresh"
    hurst: Annotated[Any, known(partial(exponent, what="hurst"))] = None
    base: Count = 1
    outputs: Literal["last", "all"] = "last"
    # What a network in a file takes besides, by name
    parameters: dict[str, Any] = Field(default_factory=dict)


class ModulePart(Part):
    """``[module]``: a PyTorch module in a Python file, in place of ``[model]``."""

    # A function of the width that makes it, or its class: ``model.py:make``
    make: str | None = None
    input: dict[str, _Shape] = Field(default_factory=dict)
    width: str = ""
    set: dict[str, Any] = Field(default_factory=dict)
    init: dict[str, Any] = Field(default_factory=dict)
    output: str = ""
    clip: Annotated[_Finite, Field(gt=0)] | None = None


class TrainingPart(Part):
    """``[training]``: the updates and the data."""

    optimizer: str = "sgd"
    lr: Annotated[_Finite, Field(ge=0)] = 1.0
    schedule: ScheduleWords | None = None
    lr_depth: Annotated[Any, known(_gammas)] = None
    groups: GroupsPart = Field(default_factory=dict)
    loss: Annotated[str, known(losses.lookup)] = "mse"
    steps: Annotated[int, Field(ge=0, le=MOST)] = 3
    data: str | None = None
    inputs: _Rows | None = None  # rows of numbers in place of ``data``
    # The target (or row of targets) of each of the ``inputs``
    targets: Annotated[_Rows | None, BeforeValidator(_as_rows)] = None
    samples: Count | None = None
    batch: Count = 1
    query: str | None = None
    watch: Annotated[
        tuple[Literal["h", "x", "dh", "dx", "hhat", "dhhat", "dW_x", "dB"], ...],
        Field(strict=False),
    ] = (
        "h",
        "x",
        "dh",
        "dx",
    )
    classes: Annotated[
        tuple[Annotated[int, Field(ge=0, le=9)], ...], Field(strict=False, min_length=2)
    ] = (0, 1)
    seed: _Seed = 0


class LimitPart(Part):
    """``[limit]``: how the limit is computed."""

    samples: _Particles | None = None
    replicates: Annotated[int, Field(ge=2)] | None = None
    rel_error: Annotated[float, Field(gt=0, lt=1)] | None = None
    max_samples: _Particles | None = None
    storage: Literal["float64", "float32"] = "float64"
    device: _Device | None = None
    method: Literal["auto", "exact", "quadrature", "particles"] = "auto"
    threads: Count | None = None
    seed: _Seed = 0
    values: _Values | None = None
    outputs: list[str] | None = None


class SimulatePart(Part):
    """``[simulate]``: networks of finite width."""

    widths: _Counts = (256, 1024, 4096)
    seeds: Count | None = None
    backend: Literal["lazy", "dense"] = "lazy"
    device: _Device | None = None
    dtype: Literal["float64", "float32", "bfloat16"] = "float64"
    threads: Count | None = None
    seed: _Seed = 0
    values: _Values | None = None
    outputs: list[str] | None = None


class SweepPart(Part):
    """``[sweep]``: one question over a grid of settings."""

    question: str = "check"
    grid: dict[str, Any] = Field(default_factory=dict)


class Study(Part):
    """A whole study."""

    model: ModelPart = ModelPart()  # the network
    module: ModulePart = ModulePart()  # one of PyTorch in its place
    training: TrainingPart = TrainingPart()  # updates and data
    limit: LimitPart = LimitPart()  # settings of the limit
    simulate: SimulatePart = SimulatePart()  # settings of finite networks
    sweep: SweepPart = SweepPart()  # a grid of other settings, for ``tpcalc sweep`` alone
