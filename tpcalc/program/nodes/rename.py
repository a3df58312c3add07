"""``Rename``: a value with some of its finite axes under other names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tpcalc.program.types import Ref, Type
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
        for name in new:
            if name not in known:
                raise before.fail(
                    f"%{self.of} ({found}) has no axis {name!r} to read under another name.",
                    hint=f"Its axes: {', '.join(known) or 'none'}.",
                )
        names = [new.get(name, name) for name in known]
        for name in names:
            if names.count(name) > 1:
                raise before.fail(
                    f"%{self.of} ({found}) is read with the name {name!r} for two of its axes.",
                    hint="Multiply with a constant eye to take a diagonal.",
                )
        sizes = (size for _, size in found.axes)
        return Type(found.width, tuple(zip(names, sizes, strict=True)))
