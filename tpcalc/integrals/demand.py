"""Values that ask for each other: computed once, in any order, to any depth.

A rule is a generator that yields the keys it needs and receives their values. A stack of such
generators replaces recursion, which deep networks would exhaust.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping
from typing import Any

Key = tuple[Hashable, ...]
Rule = Generator[Key, Any, Any]


class Unknown(Exception):
    """A value that closed forms and quadrature do not give; the text says why."""


class Demands:
    """A table of values that is filled as they are asked for.

    Example:
        >>> def sum_to(k):
        ...     return k + (yield ("sum", k - 1)) if k else 0
        >>> Demands({"sum": sum_to}).get(("sum", 5000))
        12502500
    """

    def __init__(self, rules: Mapping[Hashable, Callable[..., Rule]]) -> None:
        self._rules = rules
        self._known: dict[Key, Any] = {}  # an Unknown stands for itself

    def get(self, key: Key) -> Any:
        """The value of a key."""
        if key not in self._known:
            self._run(key)
        found = self._known[key]
        if isinstance(found, Unknown):
            raise found
        return found

    def _run(self, key: Key) -> None:
        stack = [(key, self._rules[key[0]](*key[1:]))]
        reply: Any = None
        while stack:
            top, rule = stack[-1]
            try:
                asked = rule.throw(reply) if isinstance(reply, Unknown) else rule.send(reply)
            except StopIteration as end:
                reply = self._known[top] = end.value
                stack.pop()
            except Unknown as reason:
                reply = self._known[top] = reason.with_traceback(None)
                stack.pop()
            else:
                if asked in self._known:
                    reply = self._known[asked]
                else:
                    stack.append((asked, self._rules[asked[0]](*asked[1:])))
                    reply = None
