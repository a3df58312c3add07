"""``tpcalc regularity FILE``: what weights are along the depth, and which power suits them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpcalc.cli.flags import OF_BLOCKS, Flags, takes

if TYPE_CHECKING:
    from tpcalc.networks.architectures.resnet import ResNet


@takes(OF_BLOCKS)
def regularity(
    file: str,
    flags: Flags,
    autocovariance: bool = False,
    sequences: int = 1,
    alphas: str = "1/2,1",
    seed: int = 0,
    as_json: bool = False,
) -> None:
    """Which regime weights along the depth are in, and which power of 1/L suits them."""
    from tpcalc.cli.show import answer
    from tpcalc.questions.depth.regularity import regularity as found_regularity

    numbers = _numbers(Path(file))
    given = {"autocovariance": numbers.ravel()} if autocovariance else {"weights": numbers}
    found = found_regularity(
        **given,
        sequences=sequences,
        network=_network(flags),
        alphas=[word.strip() for word in alphas.split(",")],
        seed=seed,
    )
    answer("regularity", {"file": file}, found, "", as_json)


def _network(flags: Flags) -> ResNet | None:
    """The blocks that are asked about; None: those of ``tp.regularity``."""
    from tpcalc.networks.architectures.resnet import ResNet
    from tpcalc.study import Flag, open_network

    if not flags:
        return None
    made = open_network("resnet", [Flag("--depth", "model.depth", "L"), *flags]).training.network
    return made if isinstance(made, ResNet) else None


def _numbers(file: Path) -> Any:
    """The numbers of a file."""
    from tpcalc.doors import arrays

    return arrays.array(file, "array") if file.suffix == ".npy" else arrays.table(file, "table")
