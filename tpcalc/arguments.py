"""What public functions say where something that they were given is not of its type."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import wraps
from itertools import islice
from math import isfinite
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from tpcalc.checks import is_row, shown
from tpcalc.doors.numbers import MOST
from tpcalc.errors import OutOfMemory, TpcalcError, UnknownName, UsageError

_STRANGE = re.compile(r"unexpected keyword argument '(\w+)'")
_LATER = re.compile(r"^Callable|Rule$")  # what such functions are given is used in another call


def public(value: Any) -> Any:
    """A function or class of a face: types are looked at where calls fail, or make a function."""
    if not str(getattr(value, "__module__", "")).startswith("tpcalc."):
        return value
    if inspect.isfunction(value) and not hasattr(value, "told"):
        home = vars(sys.modules[value.__module__])
        value = _told(value)
        home[value.__name__] = value  # where it is found again, in another process
    elif inspect.isclass(value) and inspect.isfunction(vars(value).get("__init__")):
        start: Any = value.__init__
        value.__init__ = start if hasattr(start, "told") else _told(start)  # type: ignore[method-assign]
    return value


def all_public(names: MutableMapping[str, Any]) -> None:
    """The same of all names of a face."""
    names.update({name: public(value) for name, value in names.items() if name[0] != "_"})


def _told(function: Callable[..., Any]) -> Callable[..., Any]:
    later = _LATER.search(str(function.__annotations__.get("return")))

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            if later and _misfit(function, args, kwargs, ""):
                raise TypeError
            return function(*args, **kwargs)
        except TpcalcError:
            raise
        except MemoryError as error:
            raise OutOfMemory("the memory of this machine is used up.") from error
        except Exception as error:
            found = _misfit(function, args, kwargs, str(error))
            if found is None:
                raise
            name = function.__qualname__.removesuffix(".__init__")
            raise UsageError(found, hint=f"See help({name}).") from error

    called.told = True  # type: ignore[attr-defined]
    return called


def _misfit(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], said: str
) -> str | None:
    """An argument that is not what the function says that it takes."""
    known = inspect.signature(function)
    try:
        given = known.bind(*args, **kwargs)
    except TypeError as error:  # Python does not say which names are near
        strange = _STRANGE.search(said)
        return (
            UnknownName("argument", strange[1], known.parameters).told if strange else f"{error}."
        )
    names = inspect.unwrap(function).__globals__
    for name, value in given.arguments.items():
        parameter = given.signature.parameters[name]
        several = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        kind = "object" if several else parameter.annotation
        if value is not parameter.default and not _written(value, kind, names):
            return f"{name} is {shown(value)}; it must be {kind}."
    return None


def _written(value: Any, kind: Any, names: dict[str, Any]) -> bool:
    """Whether a value is of a type as it is written."""
    try:
        return _fits(value, eval(kind, names) if isinstance(kind, str) else kind)
    except NameError:  # of a library that is not loaded
        return any(one.__name__ in kind for one in type(value).__mro__[:-1])


def _fits(value: Any, kind: Any) -> bool:
    inner, origin = get_args(kind), get_origin(kind) or kind
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if not inspect.isclass(origin) or origin in (Any, inspect.Parameter.empty):
        return origin is not None or value is None
    if getattr(origin, "_is_protocol", False):
        asked = {*vars(origin), *vars(origin).get("__annotations__", ())}
        return all(hasattr(value, name) for name in asked if name[0] != "_" or name == "__call__")
    if origin in (int, float) or issubclass(origin, Real):
        number: Any = Integral if origin is int else Real
        return isinstance(value, number) and abs(value) <= MOST and isfinite(value)
    if callable(value) and origin.__name__ in ("Architecture", "Expr", "Program"):
        return True  # functions stand for them
    if isinstance(value, str) and origin is not str:
        return origin.__name__ == "Expr"
    if is_row(value) and issubclass(Sequence, origin):
        return not inner or all(_fits(one, inner[0]) for one in islice(value, 100))
    return isinstance(value, origin)
