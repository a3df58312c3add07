"""Names of outputs: made and read here alone.

A network reports ``h[2]``, ``W_x[up@1]``: what, and the label of a layer or of a map (``@1``: its
second use). In a training run they are ``h[l,t,i]``, ``x[l,t,i]``, ``dh[l,t,i]``, ``dx[l,t,i]``,
``dW_x[l,t,i]`` (``dW_x[l,t,i,k]`` of the last layer with several outputs), ``dB[l,t]``
(``dB[l,t,k]``), and without a layer ``f[t,i]`` (``f[t,i,k]`` with several outputs): l the layer, t
the step (from 0), i the input (within the step's batch; queries follow), k the output; ``loss[t]``
is the mean over the batch. A change is written as a difference, ``f[1,0]-f[0,0]``; ``f[2,16:]`` is
a block of all inputs from 16 on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

OPEN, CLOSE, COMMA, ALL, USE, SINCE = "[", "]", ",", ":", "@", "-"
WITHOUT = "-"  # before a pattern of names that are left out
SIGNS = frozenset(OPEN + CLOSE + COMMA + USE)  # which no label has
_OPEN, _CLOSE, _SINCE = map(re.escape, (OPEN, CLOSE, SINCE))
_WITHIN = rf"([^{_OPEN}{_CLOSE}]+)"
_HEAD = rf"{_WITHIN}{_OPEN}([^{_OPEN}{_CLOSE}{COMMA}]+)"
_BEHIND = rf"((?:{COMMA}\s*-?\d+)*)(?:{COMMA}(\d*){ALL})?"
_NAME = re.compile(rf"{_HEAD}(?:{_BEHIND}|{_CLOSE}{_OPEN}([\d{COMMA}]+)){_CLOSE}")
_ABOUT = re.compile(rf"{_WITHIN}{_OPEN}({_WITHIN}{_OPEN}.+{_CLOSE}){_CLOSE}")
_CHANGE = re.compile(rf"(.+{_CLOSE})\s*{_SINCE}\s*(.+{_CLOSE})")
_BLOCK = re.compile(rf"(.*{COMMA})(\d*){ALL}{_CLOSE}")
_UNLAYERED = ("f", "chi", "loss")
# Of what tables sort by layer and step: the fewest and the most numbers behind the step.
_SORTED = {what: (0, 1) for what in ("h", "x", "dh", "dx", "dB")}
_SORTED |= dict.fromkeys(_UNLAYERED, (1, 2)) | {"dW_x": (0, 2), "loss": (0, 2)}


@dataclass(frozen=True, slots=True)
class Name:
    """What an output is called; parts that do not apply are empty.

    Args:
        what: The quantity; all of a name that has no parts.
        layer: The label of a layer or of a map; of a use of it with ``@`` and its number.
        step: The step of a training run.
        cell: The numbers behind: input and output, or the cell of a block.
        first: Of a block the number of its first cell along the axis that comes next.
        since: Of a change the step and the numbers behind of what is subtracted.

    Example:
        >>> Name.of("h[2,1,0]").layer, Name.of("f[3,1]").step, Name.of("loss").step
        ('2', 3, None)
        >>> str(Name("dW_x", "blk.up@1", 0, (3,))), Name.of("dW_x[blk.up@1,0,3]").label
        ('dW_x[blk.up@1,0,3]', 'blk.up')
    """

    what: str
    layer: str = ""
    step: int | None = None
    cell: tuple[int, ...] = ()
    first: int | None = None
    since: tuple[int, ...] = ()

    @staticmethod
    def of(text: str) -> Name:
        """Read a name; what does not fit the scheme is a name without parts."""
        if both := _CHANGE.fullmatch(text):
            now, then = map(Name.of, both.groups())
            whole = replace(now, since=(then.step or 0, *then.cell))
            return whole if then.step is not None and whole._then == then else Name(text)
        if about := _ABOUT.fullmatch(text):
            return Name(about[1], about[2])
        found = _NAME.fullmatch(text)
        if found is None:
            return Name(text)
        what, layer, behind, last, cells = found.groups()
        numbers = [int(part) for part in (behind or "").split(COMMA) if part]
        behind_step = numbers or last is not None or what == "loss"
        if what in _UNLAYERED and layer.isdecimal() and behind_step:
            layer, numbers = "", [int(layer), *numbers]
        step = numbers.pop(0) if numbers else None
        numbers += map(int, cells.split(COMMA) if cells else ())
        return Name(what, layer, step, tuple(numbers), None if last is None else int(last or 0))

    @staticmethod
    def tabled(text: str) -> Name:
        """Read a name for tables, which sort by numbered layers and steps; others are words."""
        found = Name.of(text)
        least, most = _SORTED.get(found.what, (1, 0))
        fits = found.step is not None and least <= len(found.cell) <= most and found.first is None
        layered = found.number is not None or not found.layer
        return found if fits and layered else Name(text)

    def __str__(self) -> str:
        if self.since:
            return change(str(replace(self, since=())), str(self._then))
        if self.layer and self.step is None and len(self.parts) > 1:
            own = replace(self, what="", layer="")
            return f"{self.what}{OPEN}{self.layer}{CLOSE}{own}"
        return f"{self.what}{OPEN}{COMMA.join(self.parts)}{CLOSE}" if self.parts else self.what

    @property
    def _then(self) -> Name:
        return replace(self, step=self.since[0], cell=self.since[1:], since=())

    @property
    def parts(self) -> tuple[str, ...]:
        """What stands in brackets."""
        head = [self.layer] if self.layer else []
        numbers = self.cell if self.step is None else (self.step, *self.cell)
        block = [] if self.first is None else [f"{self.first or ''}{ALL}"]
        return (*head, *map(str, numbers), *block)

    @property
    def word(self) -> str:
        """The quantity; of a change the whole name."""
        return str(self) if self.since else self.what

    @property
    def label(self) -> str:
        """The label of the layer or map, whichever use of it this is."""
        return self.layer.partition(USE)[0]

    @property
    def number(self) -> int | None:
        """The number of the layer, where it has one."""
        return int(self.layer) if self.layer.isdecimal() else None

    @property
    def input(self) -> int | None:
        """The input; none of a bias, whose update is the same for all."""
        return self.cell[0] if self.cell and self.what != "dB" else None

    @property
    def output(self) -> int | None:
        """Of several outputs the one that it is of."""
        place = int(self.what != "dB")
        return self.cell[place] if len(self.cell) > place else None

    @property
    def pattern(self) -> str:
        """The name of all its cells."""
        own = replace(self, cell=())
        return f"{own.what}{OPEN}{COMMA.join([*own.parts, *ALL * len(self.cell)])}{CLOSE}"

    def at(self, cell: Sequence[int]) -> Name:
        """A cell of a block.

        Example:
            >>> str(Name.of("f[2,:]").at((0,))), str(Name.of("x[2,:]").at((0,)))
            ('f[2,0]', 'x[2,0]')
        """
        begin, *rest = cell
        begin += self.first or 0
        if self.layer and self.step is None and self.first is not None:
            return replace(self, step=begin, cell=tuple(rest), first=None)  # as it is read again
        return replace(self, cell=(*self.cell, begin, *rest), first=None)


def layered(what: str, label: str | int, *numbers: int) -> str:
    """The name of a quantity of a layer: at a step, for an input.

    Example:
        >>> layered("h", 2, 1, 0), layered("W_x", "out")
        ('h[2,1,0]', 'W_x[out]')
    """
    step, *cell = numbers or (None,)
    return str(Name(what, str(label), step, tuple(cell)))


def stepped(what: str, step: int, *cell: int) -> str:
    """The name of a quantity that has no layer.

    Example:
        >>> stepped("f", 1, 0)
        'f[1,0]'
    """
    return str(Name(what, step=step, cell=cell))


def change(now: str, then: str) -> str:
    """The name of a difference.

    Example:
        >>> change("f[1,0]", "f[0,0]")
        'f[1,0]-f[0,0]'
    """
    return f"{now}{SINCE}{then}"


def ends(text: str) -> tuple[str, str]:
    """What a difference is between; of no difference the name, and nothing."""
    both = _CHANGE.fullmatch(text)
    now, _, then = text.partition(SINCE)
    return (both[1], both[2]) if both else (now, then)


def what_of(text: str) -> str:
    """The quantity that a name is of."""
    return Name.of(text).what


def cell_name(text: str, cell: Sequence[int]) -> str:
    """The name of a cell; ``:`` at the end of a name stands for the first number, ``16:`` from 16.

    Example:
        >>> cell_name("f", (0, 1)), cell_name("f[2,:]", (0,)), cell_name("f[2,16:]", (3,))
        ('f[0,1]', 'f[2,0]', 'f[2,19]')
    """
    if not cell:
        return text
    if text.endswith(ALL + CLOSE):
        return str(Name.of(text).at(cell))
    return f"{text}{OPEN}{COMMA.join(map(str, cell))}{CLOSE}"


def fits(text: str, pattern: str) -> bool:
    """Whether a name is one of a pattern: ``*``, ``?``, or ``f[2,16:]`` for cells from 16 on.

    fnmatch reads ``[..]`` as a set; names of results hold brackets, so they are no patterns here.
    """
    block = _BLOCK.fullmatch(pattern)
    if block is None:
        return text == pattern or fnmatchcase(text, pattern.replace("[", "[[]"))
    own = re.match(r"\d+", text.removeprefix(block[1]))
    cell = own is not None and text.startswith(block[1]) and int(own[0]) >= int(block[2] or 0)
    return text == pattern or cell


def is_wanted(own: Collection[str], patterns: Collection[str]) -> bool:
    """Whether what has these names fits a pattern, and none of those after a minus.

    Example:
        >>> is_wanted(["f[2,0]"], ["f*"]), is_wanted(["g"], ["-f*"]), is_wanted(["f"], ["*", "-f"])
        (True, True, False)
    """
    kept = [pattern for pattern in patterns if not pattern.startswith(WITHOUT)]
    gone = [pattern.removeprefix(WITHOUT) for pattern in patterns if pattern not in kept]
    if any(fits(name, pattern) for name in own for pattern in gone):
        return False
    return any(fits(name, pattern) for name in own for pattern in kept) if kept else bool(gone)
