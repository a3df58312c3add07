"""``Samples``: the data of a training run as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from tpcalc.errors import StudyError

__all__ = ["Samples"]


@dataclass(frozen=True)
class Samples:
    """Inputs with their targets, row by row.

    Args:
        inputs: One tuple of d numbers for each sample.
        targets: One tuple of K numbers for each sample (one-hot for classes).
        origin: Where they come from, for the report.

    Raises:
        StudyError: Rows of unequal length, no rows, or a value that is not finite.

    Example:
        >>> data = Samples(((1.0, 0.5), (-0.5, 1.0)), ((1.0,), (-1.0,)))
        >>> len(data), data.dimension, data.outputs
        (2, 2, 1)
    """

    inputs: tuple[tuple[float, ...], ...]
    targets: tuple[tuple[float, ...], ...]
    origin: str = "inline"

    def __post_init__(self) -> None:
        if not self.inputs or len(self.inputs) != len(self.targets):
            raise StudyError(
                f"{len(self.inputs)} inputs and {len(self.targets)} targets; "
                "at least one sample is needed, and one target for each.",
                where=self.origin,
            )
        for kind, rows in (("input", self.inputs), ("target", self.targets)):
            for index, row in enumerate(rows):
                if len(row) != len(rows[0]) or not row:
                    raise StudyError(
                        f"{kind} row {index} has {len(row)} numbers, row 0 has {len(rows[0])}.",
                        where=self.origin,
                    )
                for column, value in enumerate(row):
                    if not isfinite(value):
                        raise StudyError(
                            f"{kind} row {index}, column {column} is {value}; every number must be "
                            "finite.",
                            where=self.origin,
                            hint="Drop or repair that row.",
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
