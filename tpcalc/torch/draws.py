"""What a constructor writes into tensors, followed while it runs: laws, deviations, lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import sqrt
from statistics import NormalDist
from types import CodeType
from typing import Any

from tpcalc.dsl.operands import user_line
from tpcalc.engine.device.devices import load_torch

CONSTANT, FIXED, UNSET = "constant", "fixed", "uninitialised"
NORMAL, TRUNCATED, UNIFORM = "normal", "truncated normal", "uniform"
ORTHOGONAL, TRIANGULAR, IDENTITY = "orthogonal", "triangular", "identity"  # a shift breaks these
FAR = 9.0  # deviations behind which no normal number comes
Region = tuple[int, int, int]  # of a storage: the first entry, the last, and how many between


@dataclass(frozen=True)
class Draw:
    """How the entries of a tensor came: independent ones of a law, or all the same number."""

    law: str
    mean: float = 0.0
    std: float = 0.0
    line: str = ""  # the user's line that wrote it
    source: tuple[Any, ...] = ()  # equal where two tensors hold the same random numbers

    @property
    def random(self) -> bool:
        """Whether a second run would write other numbers."""
        return self.law not in (CONSTANT, FIXED, UNSET)


Call = Mapping[str, Any]  # arguments by name, with draws for tensors; and the shape of the result
Rule = Callable[[Call], Draw | None]


def _number(value: Any) -> float | None:
    if isinstance(value, Draw):
        return value.mean if value.law == CONSTANT else None
    return float(value) if isinstance(value, int | float) else None


def _of(law: str, mean: float | None, std: float | None = 0.0) -> Draw | None:
    return None if mean is None or std is None else Draw(law, mean, std)


def _same(draw: Any, law: str) -> Draw | None:
    return draw if isinstance(draw, Draw) and draw.law == law else None


def _uniform(low: float, high: float) -> Draw:
    return Draw(UNIFORM, (low + high) / 2, (high - low) / sqrt(12))


def _eye(shape: tuple[int, ...]) -> Draw:
    share = 1 / max(shape)
    return Draw(IDENTITY, share, sqrt(share * (1 - share)))


def _truncated(low: float, high: float) -> Draw | None:
    """A standard normal number between two bounds."""
    normal, ends = NormalDist(), [min(max(end, -FAR), FAR) for end in (low, high)]
    inside = normal.cdf(ends[1]) - normal.cdf(ends[0])
    if inside <= 0:
        return None
    below, above = (normal.pdf(end) for end in ends)
    mean = (below - above) / inside
    std = sqrt(1 + (ends[0] * below - ends[1] * above) / inside - mean**2)
    return Draw(TRUNCATED, 0.0 if abs(mean) < 1e-12 else mean, std)


def _inverse_error(draw: Any) -> Draw | None:
    """Uniform numbers in (-1, 1) become truncated normal ones of variance 1/2."""
    if not _same(draw, UNIFORM):
        return None
    ends = [(1 + draw.mean + side * sqrt(3) * draw.std) / 2 for side in (-1, 1)]
    low, high = (NormalDist().inv_cdf(min(max(end, 1e-16), 1 - 2e-16)) for end in ends)
    return _moved(_truncated(low, high), sqrt(0.5))


def _moved(draw: Any, factor: float | None, shift: float | None = 0.0) -> Draw | None:
    """A draw times a number, plus a number."""
    if not isinstance(draw, Draw) or draw.law in (FIXED, UNSET) or factor is None or shift is None:
        return None
    if not factor:
        return Draw(CONSTANT, shift)
    if shift and draw.law in (ORTHOGONAL, TRIANGULAR, IDENTITY):
        return None
    return replace(draw, mean=draw.mean * factor + shift, std=draw.std * abs(factor))


def _product(one: Any, other: Any) -> Draw | None:
    if _same(other, TRIANGULAR):  # the signs of its diagonal
        return _same(one, ORTHOGONAL)
    number = _number(other)
    return _moved(one, number) if number is not None else _moved(other, _number(one))


def _quotient(call: Call) -> Draw | None:
    below = _number(call["other"])
    return None if call.get("rounding_mode") or not below else _moved(call["self"], 1 / below)


def _sum(one: Any, other: Any, factor: float) -> Draw | None:
    number = _number(other)
    if isinstance(one, Draw) and number is not None:
        return _moved(one, 1.0, factor * number)
    return _moved(other, factor, _number(one))


def _orthogonal(call: Call) -> Draw | None:
    """The factors Q and R of independent normal entries."""
    draw = _same(call["A"], NORMAL)
    if draw is None or draw.mean:
        return None
    # A column of Q is a direction in as many dimensions as there are rows.
    law, std = (TRIANGULAR, 1.0) if call["index"] else (ORTHOGONAL, call["shape"][-2] ** -0.5)
    return replace(draw, law=law, std=std)


def _named(rule: Rule, *names: str) -> dict[str, Rule]:
    return dict.fromkeys(names, rule)


# By the name of an operation, in place or not: what forgets what was there, and what does not.
WRITES = {
    **_named(lambda call: Draw(UNSET), "empty", "empty_like", "new_empty", "empty_strided"),
    **_named(lambda call: Draw(CONSTANT, 0.0), "zeros", "zeros_like", "new_zeros", "zero"),
    **_named(lambda call: Draw(CONSTANT, 1.0), "ones", "ones_like", "new_ones"),
    **_named(
        lambda call: _of(CONSTANT, _number(call["fill_value"])), "full", "full_like", "new_full"
    ),
    **_named(lambda call: _of(CONSTANT, _number(call["value"])), "fill"),
    **_named(lambda call: Draw(NORMAL, 0.0, 1.0), "randn", "randn_like"),
    **_named(lambda call: _uniform(0, 1), "rand", "rand_like"),
    **_named(lambda call: _of(NORMAL, _number(call["mean"]), _number(call["std"])), "normal"),
    **_named(lambda call: _uniform(call["from"], call["to"]), "uniform"),
    **_named(lambda call: _eye(call["shape"]), "eye"),
    **_named(lambda call: call["src"], "copy"),
}
CHANGES: dict[str, Rule] = {
    "mul": lambda call: _product(call["self"], call["other"]),
    "div": _quotient,
    "add": lambda call: _sum(call["self"], call["other"], call["alpha"]),
    "sub": lambda call: _sum(call["self"], call["other"], -call["alpha"]),
    "rsub": lambda call: _sum(call["other"], call["self"], -call["alpha"]),
    "neg": lambda call: _moved(call["self"], -1.0),
    "erfinv": lambda call: _inverse_error(call["self"]),
    "clamp": lambda call: _same(call["self"], TRUNCATED),  # at its bounds, the entries tell
    "linalg_qr": _orthogonal,
    **_named(lambda call: call["self"], "clone", "_to_copy"),
    **_named(lambda call: _same(call["self"], TRIANGULAR), "diagonal_copy", "sign"),
}
RULES = WRITES | CHANGES


def region(tensor: Any) -> Region:
    """Where a tensor lies in its storage, alike for all views of the same entries."""
    first = tensor.storage_offset()
    steps = zip(tensor.stride(), tensor.shape, strict=True)
    return first, first + sum((size - 1) * step for step, size in steps), tensor.numel()


def apart(one: Region, other: Region) -> bool:
    """Whether two regions lie behind one another, so that they have nothing in common."""
    return one[1] < other[0] or other[1] < one[0]


def _settled(draws: Iterable[Draw | None]) -> bool:
    """Whether nothing is random or left open."""
    return all(draw is not None and draw.law in (CONSTANT, FIXED) for draw in draws)


class Record:
    """What was written where while a constructor ran, and which line registered what.

    Args:
        within: The code object that calls the constructor; lines are looked for inside.
    """

    def __init__(self, within: CodeType) -> None:
        self._torch = load_torch()
        self._within = within
        # By storage; the first region is all of it, the others were written apart.
        self._written: dict[Any, dict[Region, Draw | None]] = {}
        self._births: dict[tuple[int, str], tuple[Any, str]] = {}
        self._drawn = 0

    def register(self, module: Any, name: str, parameter: Any) -> None:
        """A hook of torch: a module takes a parameter."""
        self._births[id(module), name] = module, user_line(self._within) or ""

    def birth(self, module: Any, name: str) -> str:
        """The line that registered a parameter, or wrote it where its module is a copy."""
        if (id(module), name) in self._births:
            return self._births[id(module), name][1]
        draws = (draw for _, draw in self.pieces(getattr(module, name)))
        return next((draw.line for draw in draws if draw is not None), "")

    def pieces(self, tensor: Any) -> tuple[tuple[int, Draw | None], ...]:
        """The parts of a tensor that were written as one: how many entries, and how.

        None stands for random numbers of no law that is known.
        """
        written, here = self._of(tensor), region(tensor)
        whole, *parts = written
        if here in parts or all(apart(here, part) for part in parts):
            return ((here[2], written.get(here, written[whole])),)
        if here != whole:
            return ((here[2], None),)
        left = here[2] - sum(count for _, _, count in parts)
        found = [(left, written[whole])] if left else []
        return (*found, *((part[2], written[part]) for part in parts))

    def write(self, tensor: Any, draw: Draw | None) -> None:
        """Note that a tensor was written as one."""
        if draw is not None and not draw.line:
            self._drawn += 1
            source = (self._drawn,) if draw.random else ()
            draw = replace(draw, line=user_line(self._within) or "", source=source)
        written, here = self._of(tensor), region(tensor)
        whole, *parts = written
        if here == whole:
            written = {whole: draw}
        elif here in parts or all(apart(here, part) for part in parts):
            written = {**written, here: draw}
        else:
            written = {whole: Draw(FIXED) if _settled([*written.values(), draw]) else None}
        self._written[self._key(tensor)] = written

    def watch(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call an operation of torch, and follow what it writes."""
        declared = function._schema.arguments
        bound = {one.name: one.default_value for one in declared}
        bound |= dict(zip(bound, args, strict=False)) | kwargs
        seen = {name: self._seen(value) for name, value in bound.items()}
        inputs = [(self._seen(one), one.numel()) for one in self._tensors(bound)]
        result = function(*args, **kwargs)
        changed = [
            bound[one.name] for one in declared if one.alias_info and one.alias_info.is_write
        ]
        tags, viewed = self._torch.Tag, any(one.alias_info for one in function._schema.returns)
        if tags.inplace_view in function.tags or (viewed and not changed):
            return result
        name = function._schema.name.partition("::")[2].rstrip("_")
        seeded = tags.nondeterministic_seeded in function.tags
        for index, target in enumerate(self._tensors(changed or result)):
            call = {**seen, "index": index, "shape": tuple(target.shape)}
            self.write(target, _made(name, call, inputs, target, seeded))
        return result

    def _key(self, tensor: Any) -> Any:
        # A weak reference keeps the number of a storage from being given again.
        return self._torch.multiprocessing.reductions.StorageWeakRef(tensor.untyped_storage())

    def _of(self, tensor: Any) -> dict[Region, Draw | None]:
        length = tensor.untyped_storage().nbytes() // tensor.element_size()
        return self._written.get(self._key(tensor), {(0, length - 1, length): Draw(FIXED)})

    def _tensors(self, values: Any) -> list[Any]:
        torch = self._torch
        leaves = torch.utils._pytree.tree_leaves(values)
        found = [one for one in leaves if isinstance(one, torch.Tensor)]
        return [one for one in found if one.layout is torch.strided and one.numel()]

    def _seen(self, value: Any) -> Any:
        """The draw of a tensor; anything else as it is."""
        if isinstance(value, list | tuple) or not self._tensors(value):
            return value
        here, draws = region(value), [draw for _, draw in self.pieces(value)]
        draw = draws[0] if len(draws) == 1 else Draw(FIXED) if _settled(draws) else None
        if draw is not None and draw.law == FIXED and value.numel() == 1:
            try:
                with self._torch.utils._python_dispatch._disable_current_modes():
                    return Draw(CONSTANT, float(value))
            except RuntimeError:  # a fake tensor whose number is not known
                return draw
        if draw is None or not draw.random:
            return draw
        expanded = here[2] > here[1] - here[0] + 1
        part = () if here in self._of(value) else (here,)
        return None if expanded else replace(draw, source=(*draw.source, *part))


def _made(name: str, call: Call, inputs: Any, target: Any, seeded: bool) -> Draw | None:
    """What an operation writes into a tensor, from the draws and sizes of its inputs."""
    rule, draws = RULES.get(name), [draw for draw, _ in inputs]
    found = rule(call) if rule and (name in WRITES or None not in draws) else None
    if found is None:
        return Draw(FIXED) if _settled(draws) and not seeded else None
    # Random entries that are repeated, or rounded, are of another law.
    spread = [count for draw, count in inputs if draw and draw.random and draw.law != TRIANGULAR]
    lost = min(spread, default=target.numel()) < target.numel() or not target.is_floating_point()
    return None if found.random and lost else found


@contextmanager
def following(within: CodeType) -> Iterator[Record]:
    """Follow what constructors write in the body.

    torch draws its truncated normal numbers until they fit, so that this one word is caught by
    its function; every other by the operations that it consists of.
    """
    torch, record = load_torch(), Record(within)
    init, plain = torch.nn.init, torch.nn.init._no_grad_trunc_normal_

    class Follower(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return record.watch(func, args, kwargs or {})

    def truncated(tensor: Any, mean: float, std: float, *ends: float, **rest: Any) -> Any:
        # Numbers of fake tensors cannot be compared with bounds.
        fake = isinstance(tensor, torch._subclasses.fake_tensor.FakeTensor)
        with torch.no_grad():
            made = tensor if fake else plain(tensor, mean, std, *ends, **rest)
        low, high = ((end - mean) / std for end in ends)
        record.write(made, _moved(_truncated(low, high), std, mean))
        return made

    register = torch.nn.modules.module.register_module_parameter_registration_hook
    hook = register(record.register)
    init._no_grad_trunc_normal_ = truncated
    try:
        with Follower():
            yield record
    finally:
        init._no_grad_trunc_normal_ = plain
        hook.remove()
