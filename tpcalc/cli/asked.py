"""``MODEL`` of commands about layers: mlp or resnet with flags, a network of a file, a text."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tpcalc.cli.option import taking

if TYPE_CHECKING:
    from tpcalc.errors import UsageError
    from tpcalc.meanfield.notation.architectures import Design
    from tpcalc.meanfield.operations import Input as Moments

_NETWORKS = ("mlp", "resnet")
_WHOLE = ("depth", "batch")
_LAYERS = ("act", "weights", "biases", "norm", "batch", "family", "rank", "bias", "skip", "branch")
_FLAGS = ("depth", *_LAYERS, "q", "c")
_TAKEN = ("typed", "asked")  # what commands are called with in place of the flags


def of_layers(command: Callable[..., None], first: str = "model") -> Callable[..., None]:
    """Give a command of what was typed about layers, and of values, the flags that say it."""

    @wraps(command)
    def wrapper(**values: Any) -> None:
        typed = {name: values.pop(name) for name in _FLAGS}
        command({name: value for name, value in typed.items() if value is not None}, **values)

    taken = inspect.signature(command, eval_str=True).parameters
    place = inspect.Parameter(first, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=str)
    place = taken.get(first, place)
    kinds: dict[str, Any] = dict.fromkeys(_FLAGS, str | None) | dict.fromkeys(_WHOLE, int | None)
    keyword = inspect.Parameter.KEYWORD_ONLY
    named = [each for each in taken.values() if each.name not in (*_TAKEN, first)]
    own = [each.replace(kind=keyword) for each in named]
    flags = [
        inspect.Parameter(name, keyword, default=None, annotation=kind)
        for name, kind in kinds.items()
    ]
    return taking(wrapper, [place, *flags, *own])


def of_network(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command of a network and of values ``MODEL`` and the flags that say what it is."""

    @wraps(command)
    def wrapper(typed: Typed, model: str, **values: Any) -> None:
        command(asked_network(model, typed), **values)

    return of_layers(wrapper)


Typed = dict[str, Any]


class Asked(NamedTuple):
    """The network, what it is called, what more is said of it, and its inputs, where typed."""

    network: Any
    title: str
    notes: tuple[str, ...] = ()
    inputs: Moments | None = None


def asked_network(model: str, typed: Typed) -> Asked:
    """What a word or a file with flags stands for."""
    from tpcalc.meanfield.notation.notation import parse_graph
    from tpcalc.meanfield.operations import Input

    start = Input(_number(typed, "q", "1"), _number(typed, "c", "0"))
    if model in _NETWORKS:
        return _network(model, typed, start)
    from tpcalc.study.program_file import load_network, split_model

    place = split_model(model)
    if place is None:
        text = _read(model)
        if typed:
            raise _stray(next(iter(typed)), "the file says what the layers are")
        return Asked(parse_graph(text), Path(model).name)
    for name in (word for word in typed if word not in ("q", "c")):
        raise _stray(name, "the file says what the network is")
    name, network = load_network(*place)
    return Asked(network, f"{name}: {network.words}", inputs=start)


def _network(model: str, typed: Typed, start: Moments) -> Asked:
    from tpcalc.meanfield.notation.architectures import mlp, resnet

    design = _design(typed)
    if model == "mlp":
        for name in ("skip", "branch"):
            if name in typed:
                raise _stray(name, "an mlp has no skip connections; take resnet")
    if "batch" in typed and design.norm != "batch":
        raise _stray("batch", "it is the batch of batch norm (--norm batch)")
    depth = typed.get("depth", 10)
    title = f"{model}, depth {depth}, {design.tau.name}"
    if design.norm != "none":
        title += f", {design.norm} norm"
    if model == "mlp":
        return Asked(mlp(depth, design, start), title, _see_signal(depth, design))
    parts = (_number(typed, name, "1") for name in ("skip", "branch"))
    return Asked(resnet(depth, design, start, *parts), title)


def _design(typed: Typed) -> Design:
    from tpcalc.cli.values import kept
    from tpcalc.meanfield.notation.architectures import Design

    rank = _number(typed, "rank", "1") if "rank" in typed else None
    biases, bias = _number(typed, "biases", "0"), typed.get("bias", "independent")
    words = (typed.get("norm", "none"), typed.get("family", "gaussian"), rank, bias)
    design = Design(
        typed.get("act", "relu"), _number(typed, "weights", "1"), biases, *words, typed.get("batch")
    )
    share = Fraction(1) if rank is None else rank
    if "weights" in typed or not share:
        return design
    added = biases if bias == "independent" else biases * share
    return replace(design, weights=kept(design.tau.tau, added, share))


def _see_signal(depth: int, design: Design) -> tuple[str, ...]:
    """What ``tpcalc signal`` says of the same layers, where it takes them."""
    if design.norm != "none" or design.family == "padded" or not _lasting(design):
        return ()
    flags = f"--weights {_typed(design.weights)}"
    if design.biases:
        flags += f" --biases {_typed(design.biases)}"
    if design.rank is not None:
        flags += f" --rank {_typed(design.rank)}"
    if design.family != "gaussian":
        flags += f" --family {design.family}"
    line = f"tpcalc signal {design.tau.name} {flags} --depth {depth}"
    return (f"Phase, depth scales and the spectrum of the same layers: {line}",)


def _lasting(design: Design) -> bool:
    """Whether lengths have a fixed point, with biases as that command takes them."""
    from tpcalc.errors import TpcalcError
    from tpcalc.meanfield.maps.layer_map import LayerMap

    if design.rank is not None and design.biases and design.bias == "independent":
        return False
    rank = 1.0 if design.rank is None else float(design.rank)
    layer = LayerMap(design.tau.tau, float(design.weights), float(design.biases), rank=rank)
    try:
        return layer.every_length or layer.fixed_point.value > 0
    except TpcalcError:
        return False


def _typed(number: Any) -> str:
    """A number as a flag takes it: decimals, or its fraction where that is exact and shorter."""
    decimals, fraction = f"{float(number):g}", str(number)
    if Fraction(decimals) == number or len(fraction) > len(decimals) + 2:
        return decimals
    return fraction


def _read(model: str) -> str:
    from tpcalc.doors import files
    from tpcalc.errors import UsageError

    place = Path(model)
    if not place.suffix and not place.exists():
        hint = (
            "Write one layer a line into a file: x = input(1, 0), then a = dense(x, 1.5); or give "
            "a network of a file, file.py:net."
        )
        if _is_activation(model):
            hint = f"Write mlp --act {model}."
        raise UsageError(f"{model!r} is neither mlp nor resnet, nor a file.", hint=hint)
    return files.text(place, "file of layers")


def _is_activation(word: str) -> bool:
    from tpcalc.activations.entries import lookup
    from tpcalc.errors import TpcalcError

    try:
        lookup(word)
    except TpcalcError:
        return False
    return True


def _number(typed: Typed, name: str, default: str) -> Fraction:
    from tpcalc.cli.values import rational

    return rational(f"--{name}", typed.get(name, default))


def _stray(name: str, why: str) -> UsageError:
    from tpcalc.errors import UsageError

    return UsageError(f"--{name}: {why}.", hint="Leave it out.")
