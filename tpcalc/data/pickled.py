"""Pickles of plain dictionaries and byte arrays, read without calling anything that they name.

The machine of ``pickle`` reads them, with the instructions that build plain values and no other.
The few global names that arrays of bytes need stand for methods of the reader, which check what
they are given: what the names stand for is never imported or called, and the array is made here.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tpcalc.data.files import opened

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST = 1 << 26
_STEPS = 1 << 20  # a batch of 10000 images with their file names takes some 50000

_LONGEST_KEY = 100

# Every name under which numpy and the codecs may be called in such a file.
_ROLES = {
    "numpy.core.multiarray _reconstruct": "announced",
    "numpy._core.multiarray _reconstruct": "announced",
    "numpy.core.numeric _frombuffer": "viewed",
    "numpy._core.numeric _frombuffer": "viewed",
    "numpy ndarray": "called",
    "numpy dtype": "typed",
    "_codecs encode": "encoded",
}
_UINT8 = {"u1", "|u1", "uint8", "B"}
_OTHERS = {"FLOAT", "BINFLOAT", "EMPTY_SET", "ADDITEMS", "FROZENSET", "POP", "POP_MARK", "DUP",
           "EXT1", "EXT2", "EXT4", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "PERSID", "BINPERSID",
           "NEXT_BUFFER", "READONLY_BUFFER"}  # fmt: skip


class _RefusedError(Exception):
    """What has no place in such a file."""


class _Type:
    """The type of unsigned bytes."""

    def filled(self, state: Any) -> None:
        """Version, byte order, then: no parts, no fields, no size or alignment of its own."""
        if type(state) is not tuple or state[2:] != (None, None, None, -1, -1, 0):
            raise _RefusedError("a type with parts; only unsigned bytes are read")


class _Array:
    """An array, from when it is announced; ``values`` come later.

    Values of a pickle are compared with what is expected in their place. numpy's arrays would
    answer with arrays, so that none may lie among them as it is.
    """

    values: NDArray[Any] | None = None

    def filled(self, state: Any) -> None:
        """Version, shape, type, whether columns come first, content."""
        if type(state) is not tuple or len(state) != 5 or self.values is not None:
            raise _RefusedError("an array that is filled twice, or with what is none")
        _, shape, kind, columns, content = state
        if type(columns) not in (int, bool):
            raise _RefusedError("an array in an unknown order")
        self.take(content, kind, shape, "F" if columns else "C")

    def take(self, content: Any, kind: Any, shape: Any, order: Any) -> _Array:
        """Check values before they are believed."""
        import numpy as np

        if type(kind) is not _Type or order not in ("C", "F"):
            raise _RefusedError("an array without a type of entries, or in an unknown order")
        if type(shape) is not tuple or len(shape) > 4:
            raise _RefusedError("an array without a shape")
        if not all(type(size) is int and 0 <= size <= _LARGEST for size in shape):
            raise _RefusedError("an array with a size that is no whole number, or too large")
        raw = content.encode("latin-1") if type(content) is str else content
        if type(raw) not in (bytes, bytearray):
            raise _RefusedError("an array whose content is not bytes")
        if len(raw) != math.prod(shape):
            raise _RefusedError(
                f"an array of shape {shape} with {len(raw)} bytes; it must have {math.prod(shape)}"
            )
        self.values = np.frombuffer(raw, np.uint8).reshape(shape, order=order)
        return self


def read_pickle(path: Path) -> dict[str, Any]:
    """A dictionary with texts as keys, from a pickle of any protocol.

    Source:
        Python, Lib/pickletools.py, the description of the pickle machine.
    """
    with opened(path) as stream:
        content = bytes(stream.take(_LARGEST + 1))
    if len(content) > _LARGEST:
        raise stream.error(f"the file has more than {_LARGEST} bytes; batches are smaller.")
    source = io.BytesIO(content)
    try:
        _check(source)
        if source.tell() < len(content):
            raise _RefusedError(f"the pickle ends here, and the file has {len(content)} bytes")
        source.seek(0)
        reader = _Reader(source, encoding="latin-1")
        found = reader.load()
        if reader.stack:
            raise _RefusedError("values are left over")
    except Exception as error:  # of the machine, handed what has no meaning
        at, shown = source.tell(), " ".join(str(error).split())[:100]
        reason = shown if isinstance(error, _RefusedError) else f"no pickle goes on so ({shown})"
        raise stream.error(
            f"before byte {at}: {reason}. Nothing in the file was run.",
            hint="Copy it again, or take the python or binary version of CIFAR-10.",
        ) from None
    if not isinstance(found, dict):
        raise stream.error("this is a pickle, and what it holds is no dictionary.")
    return {key: own.values if isinstance(own, _Array) else own for key, own in found.items()}


def _check(source: io.BytesIO) -> None:
    """Look at every instruction before one is carried out."""
    for step, (opcode, *_) in enumerate(pickletools.genops(source)):
        if step >= _STEPS:
            raise _RefusedError(f"more than {_STEPS} instructions")
        if opcode.name in _OTHERS or opcode.proto > 5:  # of protocols to come, too
            raise _RefusedError(f"{opcode.name} has no place in arrays and lists")


_Machine: Any = pickle._Unpickler  # in Python: its memo has room for what is stored, not for more


class _Reader(_Machine):  # type: ignore[misc]
    """The machine, with keys that are texts and with names that are those of byte arrays."""

    copied = 0

    def find_class(self, module: Any, name: Any) -> Callable[..., Any]:
        role = _ROLES.get(f"{module} {name}")
        if role is None:
            shown = f"{module}.{name}"[:80]
            raise _RefusedError(
                f"asks for {shown!r}, and only the names of byte arrays are allowed"
            )
        found: Callable[..., Any] = getattr(self, role)
        return found

    def called(self, *given: Any) -> None:
        raise _RefusedError("calls a class")

    def announced(self, kind: Any, shape: Any, code: Any) -> _Array:
        if kind != self.called or shape != (0,) or code not in (b"b", "b"):
            raise _RefusedError("announces something else than an array")
        return _Array()

    def viewed(self, content: Any, kind: Any, shape: Any, order: Any) -> _Array:
        return _Array().take(content, kind, shape, order)

    def typed(self, name: Any, align: Any, copy: Any) -> _Type:
        if type(name) is not str or name not in _UINT8:
            shown = repr(name[:20]) if type(name) is str else f"a {type(name).__name__}"
            raise _RefusedError(f"an array of type {shown}; only unsigned bytes ('u1') are read")
        return _Type()

    def encoded(self, text: Any, codec: Any) -> bytes:
        if type(text) is not str or codec not in ("latin1", "latin-1"):
            raise _RefusedError("bytes that are not written as Latin-1 text")
        # One stored text may be asked for many times, and is copied each time.
        self.copied += len(text)
        if self.copied > _LARGEST:
            raise _RefusedError(f"more than {_LARGEST} bytes are made of texts")
        return text.encode("latin-1")

    def load_frame(self) -> None:
        """How the bytes are cut up does not matter to what reads them one by one."""
        self.read(8)

    def load_build(self) -> None:
        state = self.stack.pop()
        if type(self.stack[-1]) not in (_Type, _Array):
            raise _RefusedError("sets the state of something else than one array")
        self.stack[-1].filled(state)

    def load_reduce(self) -> None:
        given = self.stack.pop()
        called = self.stack[-1]
        if getattr(called, "__self__", None) is not self or type(given) is not tuple:
            raise _RefusedError("calls something")
        self.stack[-1] = called(*given)

    def load_dict(self) -> None:
        items = self.pop_mark()
        self.append({})
        self._set(items)

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._set([key, value])

    def load_setitems(self) -> None:
        self._set(self.pop_mark())

    def _set(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not dict:
            raise _RefusedError("sets what is no entry of a dictionary")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(key) not in (str, bytes) or len(key) > _LONGEST_KEY:  # others may hash for ever
                raise _RefusedError("a key is neither text nor bytes, or too long")
            self.stack[-1][key if type(key) is str else key.decode("latin-1")] = value

    dispatch: ClassVar = {
        **_Machine.dispatch, pickle.FRAME[0]: load_frame, pickle.BUILD[0]: load_build,
        pickle.REDUCE[0]: load_reduce, pickle.DICT[0]: load_dict,
        pickle.SETITEM[0]: load_setitem, pickle.SETITEMS[0]: load_setitems,
    }  # fmt: skip
