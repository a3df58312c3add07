"""Pickles of plain dictionaries and byte arrays, read without running anything that they name.

A pickle is a program for a stack machine whose instructions import and call what they like. Here
the instructions that build plain values are carried out, and no other one is. The few global names
that arrays of bytes need stay words: what they stand for is never imported or called, their
arguments are checked and the array is made here.
"""

from __future__ import annotations

import io
import math
import pickletools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpcalc.data.files import ByteStream, opened
from tpcalc.errors import StudyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST = 1 << 26
_STEPS = 1 << 20  # a batch of 10000 images with their file names takes some 50000

_LONGEST_KEY = 100

_MARK = object()
_BYTE = object()  # the type of unsigned bytes

# Every name under which numpy and the codecs may be called in such a file.
_ROLES = {
    "numpy.core.multiarray _reconstruct": "announce",
    "numpy._core.multiarray _reconstruct": "announce",
    "numpy.core.numeric _frombuffer": "view",
    "numpy._core.numeric _frombuffer": "view",
    "numpy ndarray": "array",
    "numpy dtype": "type",
    "_codecs encode": "encode",
}
_UINT8 = {"u1", "|u1", "uint8", "B"}
_PLAIN = {"int", "int_or_bool", "bytes_or_str", "bytes", "bytearray", "str"}
# Instructions that leave a number, a text or bytes that they hold themselves.
_LITERALS = {
    opcode.name
    for opcode in pickletools.opcodes
    if not opcode.stack_before and opcode.stack_after and opcode.stack_after[0].name in _PLAIN
}
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "MARK": lambda: _MARK,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
}


@dataclass(frozen=True, slots=True)
class _Word:
    """A global name that is allowed, and nothing else than the name."""

    role: str


class _Array:
    """An array, from when it is announced; ``values`` come later.

    Values of a pickle are compared with what is expected in their place. numpy's arrays would
    answer with arrays, so that none may lie among them as it is.
    """

    __slots__ = ("values",)

    def __init__(self, values: NDArray[Any] | None = None) -> None:
        self.values = values


def read_pickle(path: Path) -> dict[str, Any]:
    """A dictionary with texts as keys, from a pickle of any protocol.

    Source:
        Python, Lib/pickletools.py, the description of the pickle machine.
    """
    with opened(path) as stream:
        content = stream.take(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise stream.error(f"the file has more than {_LARGEST} bytes; batches are smaller.")
    machine = _Machine(stream)
    found = machine.run(bytes(content))
    if not isinstance(found, dict):
        raise stream.error("this is a pickle, and what it holds is no dictionary.")
    return {
        key: value.values if isinstance(value, _Array) else value for key, value in found.items()
    }


class _Machine:
    """The stack and the memo of a pickle, with where it stands."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._copied = 0
        self._at = 0
        self._opcode = ""

    def run(self, content: bytes) -> Any:
        """What the pickle leaves, after every instruction was checked."""
        size = len(content)
        for step, (name, argument, position) in enumerate(self._instructions(content)):
            self._opcode, self._at = name, position
            if step >= _STEPS:
                raise self._refused(f"more than {_STEPS} instructions")
            if name == "STOP":
                break
            self._do(name, argument)
        if self._at + 1 < size:
            raise self._stream.error(
                f"the pickle ends at byte {self._at + 1}, and the file goes on to byte {size}."
            )
        found = self._pop()
        if self._stack:
            raise self._refused("values are left over")
        return found

    def _instructions(self, content: bytes) -> Iterator[tuple[str, Any, int]]:
        source = io.BytesIO(content)
        steps = pickletools.genops(source)
        while True:
            start = source.tell()
            try:
                opcode, argument, _ = next(steps)
            except StopIteration:
                return
            except (ValueError, OverflowError, Warning) as error:
                if start >= len(content):
                    raise self._stream.error(
                        f"the file ends at byte {start}, before the pickle does.",
                        hint="Copy the file again.",
                    ) from None
                reason = " ".join(str(error).split())[:100]
                raise self._stream.error(
                    f"byte {start}: no whole instruction of a pickle stands here ({reason}).",
                    hint="The file is cut off or damaged, or it is no pickle.",
                ) from None
            yield opcode.name, argument, start

    def _do(self, name: str, argument: Any) -> None:
        if name in _LITERALS:
            self._stack.append(argument)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name]())
        elif name in _ACTIONS:
            _ACTIONS[name](self, argument)
        else:
            raise self._refused("such an instruction has no place in arrays and lists")

    def _top(self) -> Any:
        if not self._stack or self._stack[-1] is _MARK:
            raise self._refused("a value is missing")
        return self._stack[-1]

    def _pop(self) -> Any:
        self._top()
        return self._stack.pop()

    def _marked(self) -> list[Any]:
        """Everything above the last mark, taken from the stack with the mark."""
        items: list[Any] = []
        while self._stack:
            item = self._stack.pop()
            if item is _MARK:
                return items[::-1]
            items.append(item)
        raise self._refused("a mark is missing")

    def _last(self, count: int) -> list[Any]:
        """So many values from the stack, the last one last."""
        return [self._pop() for _ in range(count)][::-1]

    def _nothing(self, argument: Any) -> None:
        """Protocol and frames: how the bytes are cut up, which does not matter here."""

    def _store(self, argument: Any) -> None:
        self._memo[len(self._memo) if argument is None else argument] = self._top()

    def _fetch(self, argument: Any) -> None:
        if argument not in self._memo:
            raise self._refused("fetches what was never stored")
        self._stack.append(self._memo[argument])

    def _dict(self, items: list[Any]) -> None:
        self._stack.append({})
        self._set(items)

    def _append(self, items: list[Any]) -> None:
        found = self._top()
        if type(found) is not list:
            raise self._refused("appends to what is no list")
        found.extend(items)

    def _set(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) is not dict or len(items) % 2:
            raise self._refused("sets what is no entry of a dictionary")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(key) not in (str, bytes):  # others may take for ever to hash
                raise self._refused("a key is neither text nor bytes")
            if len(key) > _LONGEST_KEY:
                raise self._refused("a key is too long")
            target[key if isinstance(key, str) else key.decode("latin-1")] = value

    def _global(self, argument: Any) -> None:
        self._name(*argument.partition(" ")[::2])

    def _stack_global(self, argument: Any) -> None:
        module, name = self._last(2)
        if type(name) is not str or type(module) is not str:
            raise self._refused("a name is no text")
        self._name(module, name)

    def _name(self, module: str, name: str) -> None:
        role = _ROLES.get(f"{module} {name}")
        if role is None:
            shown = f"{module}.{name}"
            raise self._refused(
                f"asks for {shown[:80]!r}, and only the names of byte arrays are allowed"
            )
        self._stack.append(_Word(role))

    def _reduce(self, argument: Any) -> None:
        called, given = self._last(2)
        if type(called) is not _Word or type(given) is not tuple:
            raise self._refused("calls something")
        maker = _CALLS.get((called.role, len(given)))
        if maker is None:
            raise self._refused(f"calls {called.role!r} with {len(given)} arguments")
        self._stack.append(maker(self, *given))

    def _announced(self, kind: Any, shape: Any, code: Any) -> _Array:
        if kind != _Word("array") or shape != (0,) or code not in (b"b", "b"):
            raise self._refused("announces something else than an array")
        return _Array()

    def _type(self, name: Any, align: Any, copy: Any) -> Any:
        if type(name) is not str or name not in _UINT8:
            shown = repr(name[:20]) if type(name) is str else f"a {type(name).__name__}"
            raise self._refused(f"an array of type {shown}; only unsigned bytes ('u1') are read")
        if type(align) not in (int, bool) or type(copy) not in (int, bool):
            raise self._refused("a type with other arguments than numpy gives it")
        return _BYTE

    def _encoded(self, text: Any, codec: Any) -> bytes:
        if type(text) is not str or codec not in ("latin1", "latin-1"):
            raise self._refused("bytes that are not written as Latin-1 text")
        # One stored text may be asked for many times, and is copied each time.
        self._copied += len(text)
        if self._copied > _LARGEST:
            raise self._refused(f"more than {_LARGEST} bytes are made of texts")
        try:
            return text.encode("latin-1")
        except UnicodeEncodeError:
            raise self._refused("a text with characters that are no bytes") from None

    def _viewed(self, content: Any, kind: Any, shape: Any, order: Any) -> _Array:
        if order not in ("C", "F"):
            raise self._refused("an array in an order that is neither C nor F")
        return _Array(self._values(content, kind, shape, order))

    def _build(self, argument: Any) -> None:
        state = self._pop()
        target = self._top()
        if target is _BYTE and type(state) is tuple:
            # Version, byte order, then: no parts, no fields, no size or alignment of its own.
            if len(state) != 8 or state[2:] != (None, None, None, -1, -1, 0):
                raise self._refused("a type with parts; only unsigned bytes are read")
        elif isinstance(target, _Array) and type(state) is tuple and len(state) == 5:
            _, shape, kind, columns, content = state
            if target.values is not None or type(columns) not in (int, bool):
                raise self._refused("an array that is filled twice, or in an unknown order")
            target.values = self._values(content, kind, shape, "F" if columns else "C")
        else:
            raise self._refused("sets the state of something else than one array")

    def _values(self, content: Any, kind: Any, shape: Any, order: str) -> NDArray[Any]:
        import numpy as np

        if kind is not _BYTE:
            raise self._refused("an array without a type of entries")
        if type(shape) is not tuple or len(shape) > 4:
            raise self._refused("an array without a shape")
        if not all(type(size) is int and 0 <= size <= _LARGEST for size in shape):
            raise self._refused("an array with a size that is no whole number, or too large")
        raw = self._encoded(content, "latin1") if type(content) is str else content
        if type(raw) not in (bytes, bytearray):
            raise self._refused("an array whose content is not bytes")
        if len(raw) != math.prod(shape):
            raise self._refused(
                f"an array of shape {shape} with {len(raw)} bytes; it must have {math.prod(shape)}"
            )
        return np.frombuffer(raw, dtype=np.uint8).reshape(shape, order=order)  # type: ignore[call-overload, no-any-return]

    def _refused(self, reason: str) -> StudyError:
        return self._stream.error(
            f"byte {self._at}: {self._opcode}: {reason}. Nothing in the file was run.",
            hint="Take the files of CIFAR-10 from their authors, in the python or binary version.",
        )


_ACTIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": _Machine._nothing,
    "FRAME": _Machine._nothing,
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _Machine._store),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Machine._fetch),
    "TUPLE": lambda machine, _: machine._stack.append(tuple(machine._marked())),
    "TUPLE1": lambda machine, _: machine._stack.append(tuple(machine._last(1))),
    "TUPLE2": lambda machine, _: machine._stack.append(tuple(machine._last(2))),
    "TUPLE3": lambda machine, _: machine._stack.append(tuple(machine._last(3))),
    "LIST": lambda machine, _: machine._stack.append(machine._marked()),
    "DICT": lambda machine, _: machine._dict(machine._marked()),
    "APPEND": lambda machine, _: machine._append(machine._last(1)),
    "APPENDS": lambda machine, _: machine._append(machine._marked()),
    "SETITEM": lambda machine, _: machine._set(machine._last(2)),
    "SETITEMS": lambda machine, _: machine._set(machine._marked()),
    "GLOBAL": _Machine._global,
    "STACK_GLOBAL": _Machine._stack_global,
    "REDUCE": _Machine._reduce,
    "BUILD": _Machine._build,
}
_CALLS: dict[tuple[str, int], Callable[..., Any]] = {
    ("announce", 3): _Machine._announced,
    ("type", 3): _Machine._type,
    ("encode", 2): _Machine._encoded,
    ("view", 4): _Machine._viewed,
}
