"""Modules of a family: built with a seed, unwrapped, refused where they cannot be read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations, zip_longest
from typing import Any

from tpcalc import checks
from tpcalc.dsl.operands import last_user_line
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import StudyError, UsageError, raised
from tpcalc.torch.draws import Draw, apart, following, region

# Widths are these times 1, 2, 3 and 5; the first that the constructor takes, and then others.
BASES = (64, 96, 192, 80, 160, 112, 144, 100)
STEPS = (1, 2, 3, 5)
FAR = (64, 256, 1024)  # times the first width: fake tensors show to which power a number tends
PLAIN = "Return the plain module from make, and wrap it in the script that trains."
CPU = "Build it on the cpu, and leave .to(device) to the script that trains."
REAL = "Register real numbers, as two parameters if need be, and none that is empty."
LAZY = "Call the module on an example inside of make, or give the sizes of its lazy layers."
Make = Callable[[int], Any]


def maker(make: Any, width: str, options: Mapping[str, Any]) -> tuple[Make, str]:
    """A function of the width alone, and its name."""
    if isinstance(make, load_torch().nn.Module) or not callable(make):
        hint = "One module says nothing of other widths: def make(n): return Net(d_model=n)."
        words = f"make is of the type {type(make).__name__}; it must be a function of the width."
        raise UsageError(words, hint=hint)
    name = getattr(make, "__name__", type(make).__name__)
    by_name: dict[str, Any] = {width: 64} if width else {}
    signature = inspect.signature(make)
    needed = [one for one in signature.parameters.values() if one.default is one.empty]
    called = f"{name}{signature}"
    if isinstance(make, type) and not width and len(needed) != 1:
        hint = "Name it: width='d_model'; options={'n_head': 4} holds others."
        raise UsageError(f"{called}: which of its arguments is the width is not said.", hint=hint)
    try:
        signature.bind(*(() if width else (64,)), **by_name, **options)
    except TypeError as error:
        hint = "make takes the width n, and returns the module of that width."
        words = f"{called} cannot be called with a width: {error}."
        raise UsageError(words, hint=hint) from error
    made = partial(make, **options)
    return (lambda n: made(**{width: n})) if width else made, name


def _called(make: Make, n: int) -> Any:
    return make(n)


class Build:
    """The module of one width, with what was written while it was built.

    Args:
        make: A function of the width.
        name: What it is called.
        n: The width.
        seed: For torch's generator, which is put back.
    """

    def __init__(self, make: Make, name: str, n: int, seed: int = 0) -> None:
        torch = load_torch()
        self.called, self.notes = f"{name}({n})", list[str]()
        with torch.random.fork_rng(devices=[]), following(_called.__code__) as self._record:
            torch.default_generator.manual_seed(seed)
            try:
                made = _called(make, n)
            except Exception as error:
                raise StudyError(
                    f"{self.called} raised {raised(error)}.",
                    where=last_user_line(error.__traceback__),
                    hint="Give widths that the constructor takes: widths=(...).",
                ) from error
            self.module = self._plain(made)
        self.tensors = dict(self.module.named_parameters(remove_duplicate=False))
        self._refuse()

    def _plain(self, made: Any) -> Any:
        """The module without wrappers, in single precision at least."""
        torch = load_torch()
        if not isinstance(made, torch.nn.Module):
            words = f"{self.called} returns what is of the type {type(made).__name__}."
            raise StudyError(words, hint="make returns a torch.nn.Module.")
        made = self._unwrapped(made)
        for parent in list(made.modules()):
            parent._compiled_call_impl = None
            for key, child in list(parent.named_children()):
                setattr(parent, key, self._unwrapped(child))
        kinds = {one.dtype for one in made.parameters()}
        for half in [kind for kind in (torch.bfloat16, torch.float16) if kind in kinds]:
            self.notes.append(f"Parameters are {half}: they are read as torch.float32.")
            made = made.float()
        return made

    def _unwrapped(self, module: Any) -> Any:
        torch, kind = load_torch(), type(module)
        shared = kind.__module__.startswith("torch.distributed.")
        if shared or isinstance(module, torch.jit.ScriptModule):
            raise StudyError(f"{self.called}: {kind.__name__} cannot be read.", hint=PLAIN)
        parallel = torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel
        attribute = "module" if isinstance(module, parallel) else "_orig_mod"
        if not hasattr(module, attribute):
            return module
        wrapper = "torch.compile" if attribute == "_orig_mod" else kind.__name__
        self.notes.append(f"The module inside of {wrapper} is read.")
        return self._unwrapped(getattr(module, attribute))

    def _refuse(self) -> None:
        lazy = load_torch().nn.parameter.is_lazy
        for name, one in {**self.tensors, **dict(self.module.named_buffers())}.items():
            if lazy(one):
                raise StudyError(f"{name} has no shape yet.", where=self.line(name), hint=LAZY)
            if one.device.type != "cpu":
                words = f"{name} lies on the device {one.device}."
                raise StudyError(words, where=self.line(name), hint=CPU)
            if name in self.tensors and (one.is_complex() or not one.numel()):
                words = f"{name} is {one.dtype} of shape {tuple(one.shape)}: it cannot be read."
                raise StudyError(words, where=self.line(name), hint=REAL)
        if not any(one.requires_grad for one in self.tensors.values()):
            words = f"{self.called} has no parameter that is trained."
            raise StudyError(words, hint="One of its parameters must require a gradient.")

    def line(self, name: str) -> str:
        """The user's line that registered a parameter."""
        path, _, last = name.rpartition(".")
        return self._record.birth(self.module.get_submodule(path), last)

    def pieces(self, name: str) -> tuple[tuple[int, Draw | None], ...]:
        """The parts of a parameter that were written as one."""
        return self._record.pieces(self.tensors[name])

    def groups(self) -> list[tuple[str, ...]]:
        """Names of parameters, those of one tensor together."""
        found: dict[Any, list[str]] = {}
        for name, one in self.tensors.items():
            place = one.untyped_storage()._cdata, region(one), one.shape, one.stride()
            found.setdefault(place, []).append(name)
        for (first, names), (second, others) in combinations(found.items(), 2):
            if first[0] == second[0] and not apart(first[1], second[1]):
                raise StudyError(
                    f"{names[0]} and {others[0]} are two views of one storage.",
                    where=self.line(others[0]),
                    hint="Register one parameter, and take the view of it in forward.",
                )
        return [tuple(names) for names in found.values()]

    def described(self, form: Callable[[Build, str], str]) -> list[str]:
        """Its parameters in order, each with what a form says of it."""
        return [f"{' = '.join(names)} {form(self, names[0])}" for names in self.groups()]


def built(
    make: Make, name: str, widths: Sequence[int] | None, notes: list[str]
) -> dict[int, Build]:
    """Modules of the widths that were asked for, or of the first that the constructor takes."""
    if widths is not None:
        chosen = {checks.whole(n, "a width", least=1) for n in checks.sequence(widths, "widths")}
        if len(chosen) < 3:
            raise UsageError(f"widths are {sorted(chosen)}; there must be three or more.")
        return {n: Build(make, name, n) for n in sorted(chosen)}
    failed: list[StudyError] = []
    for base in BASES:
        try:
            found = {base * step: Build(make, name, base * step) for step in STEPS}
        except StudyError as error:
            if error.__cause__ is None:  # not of the constructor
                raise
            failed.append(error)
            continue
        notes += [f"{one.message} Widths {tuple(found)} are taken." for one in failed[:1]]
        return found
    raise failed[0]


def compared(make: Make, name: str, builds: Mapping[int, Build]) -> Build:
    """The first module built once more, when all are found to be of one family."""
    n, first = next(iter(builds.items()))
    again = Build(make, name, n, 1)
    stores = {one.untyped_storage()._cdata for one in first.tensors.values()}
    for key, one in again.tensors.items():
        if one.untyped_storage()._cdata in stores:
            hint = "Build the whole module inside of make."
            raise StudyError(f"Two calls of {name}({n}) return the same {key}.", hint=hint)
    _alike(f"{name}({n}), called twice, makes modules that differ", first, again, _started)
    for other, build in builds.items():
        what = f"{name}({n}) and {name}({other}) differ beyond sizes"
        _alike(what, first, build, lambda one, key: f"of {one.tensors[key].dim()} axes")
    shapes = [[one.shape for one in build.tensors.values()] for build in builds.values()]
    if shapes[1:] == shapes[:-1]:
        raise StudyError(f"No parameter of {name}(n) grows with n.", hint="Is n the width?")
    return again


def _started(build: Build, name: str) -> str:
    draws = [draw for _, draw in build.pieces(name) if draw is not None]
    laws = "; ".join(f"{draw.law}, mean {draw.mean:g}, std {draw.std:g}" for draw in draws)
    return f"of shape {tuple(build.tensors[name].shape)} ({laws})"


def _alike(what: str, one: Build, other: Build, form: Callable[[Build, str], str]) -> None:
    for first, second in zip_longest(one.described(form), other.described(form)):
        if first != second:
            words = f"one has {first or 'no more'}, the other {second or 'no more'}"
            hint = "Of all that make does, sizes and scales alone may depend on n, none on chance."
            raise StudyError(f"{what}: {words}.", hint=hint)
