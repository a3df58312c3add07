"""``Samples``: the data of a training run as plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tpcalc import checks
from tpcalc.errors import StudyError
from tpcalc.shown import Shown

Row = Sequence[float] | NDArray[Any]
Rows = Sequence[Row] | NDArray[Any]


@dataclass(frozen=True)
class Samples(Shown):
    """Inputs with their targets, row by row.

    Lists, arrays and data frames are taken too; they become tuples of floats.

    Args:
        inputs: One row of d numbers for each sample.
        targets: One row of K numbers for each sample (one-hot for classes), or one number.
        origin: Where they come from, for the report.

    Raises:
        StudyError: Rows of unequal length, no rows, or an entry that is not a finite number.

    Example:
        >>> data = Samples(((1.0, 0.5), (-0.5, 1.0)), ((1.0,), (-1.0,)))
        >>> len(data), data.dimension, data.outputs
        (2, 2, 1)
    """

    inputs: tuple[tuple[float, ...], ...]
    targets: tuple[tuple[float, ...], ...]
    origin: str = "inline"

    if TYPE_CHECKING:  # what is taken is more than what is kept

        def __init__(self, inputs: Rows, targets: Rows | Row, origin: str = "inline") -> None: ...

    def __post_init__(self) -> None:
        origin = checks.text(self.origin, "origin")
        object.__setattr__(self, "inputs", checks.rows(self.inputs, "input", origin))
        targets = checks.rows(self.targets, "target", origin, single=True)
        object.__setattr__(self, "targets", targets)
        if not self.inputs or len(self.inputs) != len(self.targets):
            raise StudyError(
                f"{len(self.inputs)} inputs and {len(self.targets)} targets; "
                "at least one sample is needed, and one target for each.",
                where=self.origin,
            )

    @property
    def dimension(self) -> int:
        """Number of input features d."""
        return len(self.inputs[0])

    @property
    def outputs(self) -> int:
        """Number of outputs K."""
        return len(self.targets[0])

    def __len__(self) -> int:
        return len(self.inputs)
