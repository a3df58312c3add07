"""``Shown``: what every answer can do: print itself, show itself in a notebook, plot, export."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


class Shown:
    """What an answer can do; how it does it, its view says.

    ``print(answer)`` is what the command line shows, and the last line of a cell of a notebook
    shows what a page does.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return str(_faces().text(self))

    def _repr_html_(self) -> str:
        return str(_faces().html(self))

    def plot(self, part: str | None = None) -> Any:
        """The picture of the answer, as a ``matplotlib.figure.Figure``.

        Args:
            part: Which of several pictures; the first if None.

        Raises:
            UsageError: It has no picture, or none of this name.
        """
        return _faces().plot(self, part)

    def to_dataframe(self, part: str | None = None) -> Any:
        """The rows of the answer as a ``pandas.DataFrame``, with numbers as they are.

        Args:
            part: Which of several tables; the first that has rows if None.

        Raises:
            UsageError: It has no table of this name.
            MissingBackend: pandas is not installed.
        """
        return _faces().to_dataframe(self, part)

    def to_dict(self) -> dict[str, Any]:
        """The answer as dictionaries, lists and numbers."""
        return dict(_faces().to_dict(self))

    def save(self, path: str | Path) -> Path:
        """Write the answer to a file.

        Args:
            path: ``.json`` (all of it), ``.csv`` or ``.parquet`` (its rows), ``.html`` or ``.md``
                (a page).

        Returns:
            The path.

        Raises:
            StudyError: Another ending, or a place that cannot be written.
            MissingBackend: pyarrow is not installed, which writes ``.parquet``.
        """
        return Path(_faces().save(self, path))


class Rows(Shown, tuple[T, ...]):
    """Answers of one kind: a tuple that shows itself as a table."""

    __slots__ = ()


def _faces() -> Any:
    # Records lie below views, so what shows them is looked up when it is asked for, and only here.
    return import_module("tpcalc.views.faces")
