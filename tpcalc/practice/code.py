"""Activations as code of torch that a person can paste."""

from __future__ import annotations

import ast
from collections.abc import Callable
from textwrap import wrap
from typing import Any

from tpcalc.errors import StudyError, raised
from tpcalc.functions import Expr, Fn
from tpcalc.functions.tape import lower, run
from tpcalc.results.normed import IMPORT

WIDTH = 80
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "mod": "%", "pow": "**"}
_SIGNS |= {"gt": ">", "lt": "<", "ge": ">=", "le": "<="}


class _Text:
    """What stands for a tensor where a function runs: it writes down what is done to it."""

    __array_ufunc__ = None  # no function of numpy takes it for a number

    def __init__(self, text: str) -> None:
        self.text = text

    def __neg__(self) -> _Text:
        return _Text(f"(-{self.text})")

    def __bool__(self) -> bool:
        raise TypeError("a branch is taken for all coordinates at once")


def _operator(sign: str, turned: bool) -> Callable[[_Text, Any], _Text]:
    def written(own: _Text, other: Any) -> _Text:
        pair = (_shown(other), own.text) if turned else (own.text, _shown(other))
        return _Text(f"({pair[0]} {sign} {pair[1]})")

    return written


for _name, _sign in _SIGNS.items():
    setattr(_Text, f"__{_name}__", _operator(_sign, False))
    setattr(_Text, f"__r{_name}__", _operator(_sign, True))


class _Space:
    """The functions that atoms are written with, as what torch calls them."""

    _names = ("exp", "log", "log1p", "sqrt", "tanh", "sin", "cos", "erf", "abs", "sign", "where")

    def __getattr__(self, name: str) -> Callable[..., _Text]:
        if name not in self._names:
            raise AttributeError(name)
        return lambda *given: _Text(f"torch.{name}({', '.join(map(_shown, given))})")

    def maximum(self, value: Any, end: Any) -> _Text:
        """A value, but no less than a number."""
        if end == 0:  # of which torch takes another slope at 0
            return _Text(f"torch.relu({_shown(value)})")
        return _Text(f"torch.clamp({_shown(value)}, min={_shown(end)})")

    def minimum(self, value: Any, end: Any) -> _Text:
        """A value, but no more than a number."""
        return _Text(f"torch.clamp({_shown(value)}, max={_shown(end)})")


def _shown(value: Any) -> str:
    return value.text if isinstance(value, _Text) else repr(float(value))


def torch_code(expr: Expr, name: str, said: str) -> str:
    """A function of torch with the values of an expression of ``Var(0)``.

    Args:
        expr: The expression.
        name: What the function is called.
        said: What it is, in a line.

    Returns:
        The import and the function.

    Raises:
        StudyError: It holds a function whose code only numpy runs.

    Example:
        >>> from tpcalc.functions import Var
        >>> print(torch_code(2 * Var(0) - 1, "line", "A line"))
        import torch
        <BLANKLINE>
        <BLANKLINE>
        def line(x):
            \"\"\"A line.\"\"\"
            return (
                -1.0 + 2.0 * x
            )
    """
    try:
        found = _shown(run(lower(Fn(expr, 1)), _Space(), [_Text("x")]))
    except Exception as error:  # whatever the code of a user raises
        raise StudyError(
            f"{expr.text} has no code of torch: {raised(error)}.",
            hint="Write it with tpcalc's functions: tp.function('f', lambda z: z * tp.tanh(z)).",
        ) from error
    result = ast.unparse(ast.parse(found)).replace("+ -", "- ")  # without brackets too many
    head = f'{IMPORT}\n\n\ndef {name}(x):\n    """{said}."""\n    return (\n'
    lines = wrap(result, WIDTH, break_long_words=False, break_on_hyphens=False)
    return head + "\n".join(f"        {line}" for line in lines) + "\n    )"
