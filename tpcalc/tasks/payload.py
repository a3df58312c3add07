"""Functions and numbers as bytes that another process reads."""

from __future__ import annotations

import io
import pickle
import sys
from types import FunctionType
from typing import Any

from tpcalc.errors import UsageError, short

OF_A_FILE = "_tpcalc_file_"  # begins names of modules that are files of a user
_KNOWN = ("cloudpickle", "tpcalc")  # whose functions are sent by name


def packed(value: Any, what: str) -> bytes:
    """Bytes of a value; what cannot be sent is named.

    Example:
        >>> unpacked(packed(lambda x: x + 1, "a function"))(1)
        2
    """
    import cloudpickle

    for module in [own for name, own in sys.modules.items() if name.startswith(OF_A_FILE)]:
        cloudpickle.register_pickle_by_value(module)

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
        last = ""

        def reducer_override(self, own: Any) -> Any:
            if isinstance(own, FunctionType) and own.__module__.partition(".")[0] not in _KNOWN:
                code = own.__code__
                self.last = f"{own.__qualname__} ({code.co_filename}:{code.co_firstlineno})"
            return super().reducer_override(own)

    out = io.BytesIO()
    pickler = Pickler(out, protocol=pickle.HIGHEST_PROTOCOL)
    try:
        pickler.dump(value)
    except Exception as error:
        named = f"the function {pickler.last}" if pickler.last else what
        raise UsageError(
            f"{named} cannot be sent to another process: {short(str(error), 200)}.",
            hint="Let it hold no open file, lock or generator, or do the tasks in this process.",
        ) from error
    return out.getvalue()


def unpacked(data: bytes) -> Any:
    """The value of such bytes."""
    return pickle.loads(data)
