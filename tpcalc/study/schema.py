"""What a study file may say: every key with its type, its range and its default."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

__all__ = ["LimitPart", "ModelPart", "SimulatePart", "Study", "TrainingPart"]

_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=1)]
_Seed = Annotated[int, Field(ge=0, lt=2**63)]
# TOML has arrays, not tuples: strictness is for the numbers in them.
_Counts = Annotated[tuple[_Count, ...], Field(strict=False, min_length=1)]


def _as_rows(targets: Any) -> Any:
    """One number for a sample stands for a row of one."""
    if not isinstance(targets, list):
        return targets
    return [row if isinstance(row, list) else [row] for row in targets]


_Rows = list[list[_Finite]]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ModelPart(_Part):
    """``[model]``: the network and the powers of its width.

    Args:
        architecture: A catalogue name.
        depth: Number of hidden layers L.
        act: An activation of the catalogue, with parameters (``relu^2``, ``leaky_relu:0.2``).
        param: A parameterization of the catalogue.
        p: Degree of homogeneity that ``ip-llr`` takes its learning rates for.
        bias: Which layers have biases.
    """

    architecture: str = "mlp"
    depth: _Count = 3
    act: str = "relu"
    param: str = "mup"
    p: _Count | None = None
    bias: Literal["none", "first", "all"] = "none"


class TrainingPart(_Part):
    """``[training]``: the updates and the data.

    Args:
        optimizer: A catalogue name.
        lr: The factor of the learning rate in front of its power of n.
        loss: A catalogue name.
        steps: Number of updates T; results are for t = 0..T.
        data: ``digits``, or the path of a CSV file.
        inputs: Rows of numbers in place of ``data``.
        targets: The target (or row of targets) of each of the ``inputs``.
        samples: How many samples; without it 4 of the digits, all of a file.
        batch: Samples used by each step.
        query: The path of a CSV file with more inputs at which outputs are reported.
        classes: Which digits.
        seed: Seed of the choice of digits.
    """

    optimizer: str = "sgd"
    lr: Annotated[_Finite, Field(ge=0)] = 1.0
    loss: str = "mse"
    steps: Annotated[int, Field(ge=0)] = 3
    data: str | None = None
    inputs: _Rows | None = None
    targets: Annotated[_Rows | None, BeforeValidator(_as_rows)] = None
    samples: _Count | None = None
    batch: _Count = 1
    query: str | None = None
    classes: Annotated[
        tuple[Annotated[int, Field(ge=0, le=9)], ...], Field(strict=False, min_length=2)
    ] = (0, 1)
    seed: _Seed = 0


class LimitPart(_Part):
    """``[limit]``: how the limit is computed.

    Args:
        samples: Particles of each replicate; without it the engine chooses.
        replicates: Independent replicates behind every standard error.
        rel_error: Samples are added until every standard error is below this share of its number.
        threads: Threads over replicates; the answer does not depend on them.
        seed: Seed of the draws.
    """

    samples: Annotated[int, Field(ge=2)] | None = None
    replicates: Annotated[int, Field(ge=2)] | None = None
    rel_error: Annotated[float, Field(gt=0, lt=1)] | None = None
    threads: _Count | None = None
    seed: _Seed = 0


class SimulatePart(_Part):
    """``[simulate]``: networks of finite width.

    Args:
        widths: The widths.
        seeds: Independent networks of each width.
        backend: ``lazy`` (exact in law, any width) or ``dense`` (weights in full, on torch).
        device: Where ``dense`` runs.
        dtype: Precision of ``dense``.
        seed: Seed of the first network.
    """

    widths: _Counts = (256, 1024, 4096)
    seeds: _Count = 16
    backend: Literal["lazy", "dense"] = "lazy"
    device: str = "cpu"
    dtype: Literal["float64", "float32"] = "float64"
    seed: _Seed = 0


class Study(_Part):
    """A whole study.

    Args:
        model: The network.
        training: Updates and data.
        limit: Settings of the limit.
        simulate: Settings of finite networks.
    """

    model: ModelPart = ModelPart()
    training: TrainingPart = TrainingPart()
    limit: LimitPart = LimitPart()
    simulate: SimulatePart = SimulatePart()
