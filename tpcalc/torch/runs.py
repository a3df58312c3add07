"""First steps of modules of finite width under their own optimizers, as sizes by width.

The loss is a linear function of all outputs, with numbers that no width changes, so that what it
gives back does not depend on the outputs. One backward pass then has, of every parameter, what its
step adds to the loss to first order: <gradient, step>.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass
from math import inf, isfinite, sqrt
from statistics import median
from typing import Any

from tpcalc.engine.device.devices import load_torch, resolve_device, with_device
from tpcalc.errors import UsageError
from tpcalc.progress import Progress
from tpcalc.tasks.run import results
from tpcalc.tasks.task import Task
from tpcalc.torch.exported import arguments, doubled

Tensor = Any
MASKED = -1e3  # what is lower stands for -oo


def scores(see: Callable[[Tensor], None]) -> AbstractContextManager[Any]:
    """Tell what softmaxes read meanwhile; what a mask hides is 0 where it was added."""

    def dispatch(mode: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, named = function._schema.name.removeprefix("aten::"), kwargs or {}
        if name in ("_softmax", "_safe_softmax"):
            see(args[0].masked_fill(args[0] < MASKED, 0))
        elif name.startswith("_scaled_dot_product"):
            see(_products(args[0], args[1], named.get("scale")))
        return function(*args, **named)

    kind = load_torch().utils._python_dispatch.TorchDispatchMode
    found: AbstractContextManager[Any] = type("Scores", (kind,), {"__torch_dispatch__": dispatch})()
    return found


def _products(queries: Tensor, keys: Tensor, scale: float | None) -> Tensor:
    groups = queries.shape[-3] // keys.shape[-3]  # heads that share a key
    products = queries @ keys.repeat_interleave(groups, -3).mT
    return products * (queries.shape[-1] ** -0.5 if scale is None else scale)


Module = Any
Seen = dict[str, Tensor]  # what calls return, by path

TERM, GRADIENT, STEP, START, CHANGE = "term", "gradient", "step", "start", "change"
PROBE = 0  # seed of the numbers in front of the outputs
AIM, NEAR = 0.05, 2.0  # the largest relative change that is aimed at, within a factor
REACH, ROUNDS = 30.0, 16  # of a rate in one round
SMALL = 0.25  # of the median output: by what is smaller at the start no rate is chosen


@dataclass(frozen=True, order=True, slots=True)
class Spot:
    """What is measured."""

    # ``"term"``: what the step of a parameter adds to the probe; ``"gradient"`` and ``"step"``:
    # root mean squares of its entries; ``"start"`` and ``"change"``: those of the output of a call
    # of a module at the start, and of its change since.
    what: str
    # A parameter, or a path; ``@1`` is the second call of a module, ``""`` the whole; ``:scores``
    # behind a path is what a softmax in its forward pass reads.
    name: str
    step: int  # the step, from 1; 0 at the start


@dataclass(frozen=True)
class Ran:
    """Sizes of one module, the shape of its output, and the classes of its modules by path."""

    sizes: Mapping[Spot, float]
    shape: tuple[int, ...]
    classes: Mapping[str, str]


@dataclass(frozen=True)
class Trial:
    """Modules that take first steps in float64, all on one batch."""

    make: Callable[[int], Module]  # a module, from a width
    # Its optimizer, or several, from the module and the width
    optimizer: Callable[[Module, int], Any]
    # A tensor, a sequence of them, or a mapping by the names of arguments; or a function of the
    # width that gives these.
    inputs: Any
    steps: int = 3  # how many steps; without any, outputs of modules at the start alone
    device: str = "cpu"  # where they run
    # What is done to gradients before each step, as clipping
    before_step: Callable[[Module, int], Any] | None = None

    def runs(
        self, widths: Sequence[int], seeds: Sequence[int], rate: float, progress: Progress | None
    ) -> dict[int, list[Ran]]:
        """Modules of several widths and seeds, all learning rates times a factor."""
        pairs = [(width, seed) for width in widths for seed in seeds]
        tasks = [Task(f"module of width {width}, seed {seed}", (width, seed, rate))
                 for width, seed in pairs]  # fmt: skip
        with with_device(resolve_device(self.device)):
            found = results(_ran, tasks, shared=self, progress=progress)
        ran: dict[int, list[Ran]] = {width: [] for width in widths}
        for (width, _), own in zip(pairs, found, strict=True):
            ran[width].append(own)
            _check_alike(found[0], own, (widths[0], width))
        return ran

    def run(self, width: int, seed: int, rate: float) -> Ran:
        """The sizes of one module."""
        torch, device = load_torch(), resolve_device(self.device)
        devices = [device] if device.type == "cuda" else []
        with torch.random.fork_rng(devices), torch.enable_grad():
            torch.manual_seed(seed)
            module = self.make(width).double().to(device)
            forward = Forward(module, *doubled(arguments(self.inputs, width), device), seed)
            optimizers = self._optimizers(module, width, rate)
            output, start = forward()
            found = {Spot(START, call, 0): _rms(value) for call, value in start.items()}
            for step in range(1, self.steps + 1):
                gradients = _backward(module, output)
                if self.before_step is not None:
                    self.before_step(module, width)
                # What a step adds is that of its gradient: no history, and no decay.
                fresh = self._optimizers(module, width, rate)
                for group in _groups(fresh):
                    group["weight_decay"] = 0 * group.get("weight_decay", 0)
                found |= _stepped(module, gradients, fresh, optimizers, step)
                output, now = forward()
                found |= _changes(start, now, step)
            classes = {path: type(own).__name__ for path, own in module.named_modules()}
            return Ran(found, tuple(output.shape), classes)

    def small_rate(self, width: int, seed: int) -> float:
        """A factor of learning rates at which steps are nearly linear."""
        rate = 1.0
        for _ in range(ROUNDS):
            largest = _largest_change(self.runs([width], [seed], rate, None)[width][0].sizes)
            if largest == 0 or AIM / NEAR < largest < AIM * NEAR:
                break
            rate *= min(max(AIM / largest, 1 / REACH), REACH)  # far away it is no line
        return rate

    def _optimizers(self, module: Module, width: int, rate: float) -> Sequence[Any]:
        made = self.optimizer(module, width)
        optimizers = made if isinstance(made, list | tuple) else (made,)
        for group in _groups(optimizers):
            if "lr" in group:
                group["lr"] = group["lr"] * rate
        return optimizers


def _ran(trial: Trial, width: int, seed: int, rate: float, progress: Progress) -> Ran:
    return trial.run(width, seed, rate)


def _check_alike(one: Ran, other: Ran, widths: tuple[int, int]) -> None:
    """Refuse modules that are no family."""
    apart = one.sizes.keys() ^ other.sizes.keys()
    if apart or one.shape != other.shape:
        what = f"one has {min(apart).name!r}" if apart else f"outputs {one.shape}, {other.shape}"
        raise UsageError(
            "two modules, of widths {} and {}, differ: {}.".format(*widths, what),
            hint="Parameters, calls and outputs are to be the same at all widths.",
        )


def _changes(start: Seen, now: Seen, step: int) -> dict[Spot, float]:
    for call in start.keys() | now.keys():
        if call not in start or call not in now or start[call].shape != now[call].shape:
            raise UsageError(
                f"the calls of {call!r} depend on data: after step {step} they are others.",
                where=call,
                hint="Let it see all rows, and weigh what it gives, as dense routing does.",
            )
    return {Spot(CHANGE, call, step): _rms(now[call] - own) for call, own in start.items()}


def _groups(optimizers: Sequence[Any]) -> list[dict[str, Any]]:
    return [group for own in optimizers for group in own.param_groups]


def _largest_change(sizes: Mapping[Spot, float]) -> float:
    """Of outputs of modules, beside what they were."""
    starts = {spot.name: size for spot, size in sizes.items() if spot.what == START}
    usual = median([size for size in starts.values() if size] or [0.0])
    changes = [(spot.name, size) for spot, size in sizes.items() if spot.what == CHANGE]
    if not all(isfinite(size) for _, size in changes):
        return inf
    own = (size / starts[name] for name, size in changes if starts[name] > SMALL * usual)
    return max(own, default=0.0)


@dataclass(frozen=True)
class Forward:
    """Forward passes of a module on one batch, whose random masks are the same each time."""

    module: Module
    inputs: Sequence[Any]
    named: Mapping[str, Any]
    seed: int

    def __call__(self) -> tuple[Tensor, Seen]:
        """The output, and that of each call of a module by its path."""
        torch = load_torch()
        usual = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)  # of what forward passes make
        torch.manual_seed(self.seed)
        try:
            with _watched(self.module) as seen:
                output = _floating(self.module(*self.inputs, **self.named))
        except RuntimeError as error:
            raise UsageError(
                f"the module does not run in float64: {error}",
                hint="Measured is in float64: do not cast to a precision, but to that of inputs.",
            ) from error
        finally:
            torch.set_default_dtype(usual)
        if output is None or not output.requires_grad:
            raise UsageError(
                "the module returns no numbers that its parameters lead to.",
                hint="Return a tensor of them first.",
            )
        return output, seen


@contextmanager
def _watched(module: Module) -> Iterator[Seen]:
    """What the calls of modules return meanwhile, and what softmaxes in them read."""
    seen: Seen = {}
    calls, inside = Counter[str](), list[str]()

    def see(name: str, value: Tensor) -> None:
        call = f"{name}@{calls[name]}" if calls[name] else name
        calls[name] += 1
        seen[call] = value.detach().clone()  # what follows may work in place

    def look(path: str) -> Callable[[Module, Any, Any], None]:
        def hook(_module: Module, _inputs: Any, output: Any) -> None:
            inside.pop()
            value = _floating(output)
            if value is not None:
                see(path, value)

        return hook

    hooks = []
    for path, own in module.named_modules():
        hooks.append(own.register_forward_pre_hook(lambda *_, path=path: inside.append(path)))
        hooks.append(own.register_forward_hook(look(path)))
    try:
        with scores(lambda value: see(f"{inside[-1]}:scores", value)):
            yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _backward(module: Module, output: Tensor) -> dict[str, Tensor]:
    """The gradients of what is trained."""
    torch = load_torch()
    numbers = torch.Generator().manual_seed(PROBE)
    probe = torch.randn(output.shape, generator=numbers, dtype=torch.float64)
    module.zero_grad()
    (probe.to(output.device) * output).sum().backward()
    own = {name: one for name, one in module.named_parameters() if one.requires_grad}
    return {
        name: one.detach() * 0 if one.grad is None else one.grad.clone()
        for name, one in own.items()
    }


def _stepped(
    module: Module,
    gradients: Mapping[str, Tensor],
    fresh: Sequence[Any],
    optimizers: Sequence[Any],
    step: int,
) -> dict[Spot, float]:
    """Let optimizers step, and before it measure what steps of fresh ones are."""
    own = {name: one for name, one in module.named_parameters() if name in gradients}
    start = {name: (one.detach().clone(), deepcopy(one.grad)) for name, one in own.items()}
    for optimizer in fresh:
        optimizer.step()
    found: dict[Spot, float] = {}
    with load_torch().no_grad():
        for name, one in own.items():
            moved = one - start[name][0]
            found[Spot(TERM, name, step)] = abs(float((moved * gradients[name]).sum()))
            found[Spot(GRADIENT, name, step)] = _rms(gradients[name])
            found[Spot(STEP, name, step)] = _rms(moved)
            one.copy_(start[name][0])
            one.grad = start[name][1]
    for optimizer in optimizers:
        optimizer.step()
    return found


def _floating(value: Any) -> Tensor | None:
    """The first tensor of real numbers."""
    if isinstance(value, load_torch().Tensor):
        return value if value.is_floating_point() else None
    parts: Iterable[Any] = ()
    if is_dataclass(value):
        parts = (getattr(value, own.name) for own in fields(value))
    elif isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, list | tuple):
        parts = value
    return next((found for one in parts if (found := _floating(one)) is not None), None)


def _rms(values: Tensor) -> float:
    return float(values.norm()) / sqrt(max(values.numel(), 1))
