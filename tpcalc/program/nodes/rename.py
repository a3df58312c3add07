"""``Rename``: a value with some of its finite axes under other names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tpcalc.program.types import Ref, Type, check_axes
from tpcalc.program.typing import Typing


@dataclass(frozen=True, slots=True)
class Rename:
    """A block read under other names of axes: ``x[b>b']`` beside ``x`` makes pairs of samples."""

    of: Ref
    names: tuple[tuple[str, str], ...]

    grammar: ClassVar[str] = "rename <of> <names>"

    def type(self, before: Typing) -> Type:
        """The same type, with the new names."""
        found, new = before.types[self.of], dict(self.names)
        known = [name for name, _ in found.axes]
        if not new:
            raise before.fail(f"no axis of %{self.of} ({found}) is given another name.")
        for name in new:
            if name not in known:
                raise before.fail(
                    f"%{self.of} ({found}) has no axis {name!r} to read under another name.",
                    hint=f"Its axes: {', '.join(known) or 'none'}.",
                )
            if [old for old, _ in self.names].count(name) > 1:
                raise before.fail(f"the axis {name!r} is given two names.")
        names = [new.get(name, name) for name in known]
        for name in names:
            if names.count(name) > 1:
                raise before.fail(
                    f"%{self.of} ({found}) is read with the name {name!r} for two of its axes.",
                    hint="Multiply with a constant eye to take a diagonal.",
                )
        axes = tuple((new.get(name, name), size) for name, size in found.axes)
        check_axes(axes, f"%{self.of}", before.place)
        return Type(found.width, axes)
