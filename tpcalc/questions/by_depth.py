"""``limit`` and ``simulate``: of a program, or, where a depth is named, of L blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter, Signature, signature
from typing import Any, overload

from tpcalc.arguments import public
from tpcalc.docstrings import named_after
from tpcalc.evaluate.answers import Limit
from tpcalc.evaluate.limit import limit as width_limit
from tpcalc.finite.simulate import simulate as width_simulate
from tpcalc.questions.depth.limit import depth_limit
from tpcalc.questions.depth.simulate import depth_simulate
from tpcalc.results import DepthSample, DepthTable, FiniteTable

Asked = Callable[..., Any]

_LIMITS: tuple[Asked, Asked] = public(width_limit), public(depth_limit)
_NETWORKS: tuple[Asked, Asked] = public(width_simulate), public(depth_simulate)


def _describe(asked: Asked, shallow: Asked, deep: Asked, *more: str) -> None:
    """Say of a question what two questions say, the second of the arguments that it adds."""
    one, other = (signature(part, eval_str=True) for part in (shallow, deep))
    added = [
        other.parameters[name].replace(kind=Parameter.KEYWORD_ONLY, default=None) for name in more
    ]
    returned = one.return_annotation | other.return_annotation
    home = asked.__module__
    takes = Signature([*one.parameters.values(), *added], return_annotation=returned)
    named_after(asked, shallow, takes, deep.__doc__)
    asked.__module__ = home


@overload
def limit(program: Any, *, depths: None = None, **options: Any) -> Limit: ...
@overload
def limit(program: Any, *, depths: Iterable[int | str], **options: Any) -> DepthTable: ...
def limit(program: Any, *, depths: Iterable[int | str] | None = None, **options: Any) -> Any:
    """What a program, or a run of L blocks, converges to."""
    if depths is None:
        return _LIMITS[0](program, **options)
    return _LIMITS[1](program, depths, **options)


@overload
def simulate(
    program: Any,
    widths: Sequence[int],
    seeds: int | None = None,
    *,
    depth: None = None,
    **options: Any,
) -> FiniteTable: ...
@overload
def simulate(
    program: Any, widths: int, seeds: int | None = None, *, depth: int, **options: Any
) -> DepthSample: ...
def simulate(
    program: Any, widths: Any, seeds: int | None = None, *, depth: int | None = None, **options: Any
) -> Any:
    """A program, or L blocks, at finite widths."""
    if depth is None:
        return _NETWORKS[0](program, widths, seeds, **options)
    counted = {} if seeds is None else {"seeds": seeds}
    return _NETWORKS[1](program, depth, widths, **counted, **options)


_describe(limit, *_LIMITS, "depths", "places")
_describe(simulate, *_NETWORKS, "depth", "alphas", "places")
