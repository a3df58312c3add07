"""What torch optimizers do to the parameters of a family: texts, rates and settings of each."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import isclass, signature, unwrap
from numbers import Real
from typing import Any

from tpcalc.dsl.operands import last_user_line, line_of, user_line
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError, raised
from tpcalc.torch.family import Family
from tpcalc.torch.optimizers.reading import CLASSES, Reading, Settings, by_rule
from tpcalc.torch.powers import Scaling, scaling
from tpcalc.training.optimizer import Optimizer, setting
from tpcalc.training.optimizers import called, lookup

Make = Callable[..., Any]
Clip = Mapping[str, object]
FUNCTION = "Write optimizer(model, n), which returns a torch optimizer or several, or give a text."
TEXT = "Say what its step is: rule='optimizer mine(b=9/10)\\nm = b m + g\\nw = w - lr m'."
DRIVEN = "Return the optimizer that it drives, and give its factors as a schedule."
ON_NAMES = "Write the rule of groups on names, or on numbers of axes."
OWN_MODEL = "Take the parameters of the model that the function is called with, each once."
SAME = "A family has one recipe at all widths."
DEFAULT = "no optimizer was given: Adam with one learning rate for all parameters"


@dataclass(frozen=True)
class Recipe:
    """How the parameters of a family are trained.

    Args:
        optimizer: That of most parameters.
        groups: Their settings by name, as ``Training.groups`` takes them.
        lines: By the name of a parameter the line that made its optimizer.
        notes: What is to be said of it.
        group_of: By the name of a parameter its group in torch, in words.
    """

    optimizer: Optimizer
    groups: Mapping[str, Mapping[str, object]]
    lines: Mapping[str, str]
    notes: tuple[str, ...]
    group_of: Mapping[str, str]


@dataclass(frozen=True)
class _Place:
    """Where a parameter is trained: a group of an optimizer, in words, and the optimizer's line."""

    optimizer: Any
    group: Mapping[str, Any]
    words: str
    line: str | None

    @property
    def kind(self) -> str:
        return type(self.optimizer).__name__

    def refused(self, what: str, hint: str = TEXT) -> UsageError:
        return UsageError(f"{what}.", where=self.line, hint=hint)


_Rule = tuple[Optimizer, Scaling, Sequence[str]]  # of a group: its optimizer, its rate, notes


def read_recipe(
    optimizer: Make | str | Optimizer | None,
    family: Family,
    *,
    clip: float | str | None = None,
    rule: str | Optimizer | None = None,
) -> Recipe:
    """The recipe of a function ``optimizer(model, n)``, or of a text such as ``"adamw(lr=0.1)"``.

    A limit ``clip`` of the norm of all gradients stands before all steps. A ``rule`` is the text of
    the steps of classes that are not known; its numbers come from settings of their names.
    """
    cut: Clip = {} if clip is None else {"clip": clip}
    if optimizer is None:
        return replace(_of_text("adam", family, cut), notes=(DEFAULT,))
    if isinstance(optimizer, str | Optimizer):
        return _of_text(optimizer, family, cut)
    if not callable(optimizer) or isclass(optimizer):
        raise _no_optimizer(optimizer, None)
    return _of_torch(optimizer, family, cut, rule)


def _of_text(text: str | Optimizer, family: Family, cut: Clip) -> Recipe:
    name, values = called(text) if isinstance(text, str) else (text, {})
    rate = values.pop("lr", None)
    optimizer = lookup(name).with_settings(**values, **cut)
    groups = {}
    if rate is not None:
        number, power = setting(rate, f"lr of {optimizer.name}")
        own = {"lr": number, "power": power}
        groups = {parameter.name: own for parameter in family.parameters if parameter.trained}
    return Recipe(optimizer, groups, {}, (), {})


def _of_torch(make: Make, family: Family, cut: Clip, text: str | Optimizer | None) -> Recipe:
    placed = {n: _places(make, family, n) for n in family.widths}
    rules: dict[tuple[int, ...], _Rule] = {}
    found: dict[str, tuple[_Place, Optimizer, Scaling]] = {}
    missing, left_out = list[str](), list[str]()
    for parameter in family.parameters:
        name = parameter.name
        own = {n: places[name] for n, places in placed.items() if name in places}
        if not parameter.trained:
            left_out += [name] * bool(own)
        elif not (own and family.modules[max(own)].get_parameter(name).requires_grad):
            missing.append(name)
        elif len(own) < len(placed):
            what = f"{name} is in a group at n = {_listed(own)} alone, of {_listed(placed)}"
            raise own[min(own)].refused(what, ON_NAMES)
        else:
            key = tuple(id(place.group) for place in own.values())
            rules[key] = rules.get(key) or _rule(name, own, cut, text)
            found[name] = own[max(own)], *rules[key][:2]
    if not found:
        raise UsageError("nothing that is trained is in a group.", where=line_of(make))
    common = Counter(optimizer for _, optimizer, _ in found.values()).most_common(1)[0][0]
    groups: dict[str, Mapping[str, object]] = {own: {"lr": 0} for own in missing}
    for name, (_, optimizer, lr) in found.items():
        # One of hidden matrices is named wherever it is meant.
        named = optimizer != common or optimizer.others
        others = {"optimizer": optimizer} if named else {}
        groups[name] = {"lr": lr.number, "power": lr.power, **others}
    notes = [note for *_, told in rules.values() for note in told]
    notes += [f"without a group or a gradient, so not trained: {', '.join(missing)}"] * bool(
        missing
    )
    notes += [f"in a group, but not trained: {', '.join(left_out)}"] * bool(left_out)
    lines = {name: place.line for name, (place, *_) in found.items() if place.line}
    words = {name: place.words for name, (place, *_) in found.items()}
    return Recipe(common, groups, lines, tuple(dict.fromkeys(notes)), words)


# ------------------------------------------------------------------------------- what was made


def _places(make: Make, family: Family, width: int) -> dict[str, _Place]:
    """Where the parameters of a width are trained, by name."""
    module, found = family.modules[width], dict[str, _Place]()
    tensors = dict(module.named_parameters(remove_duplicate=False))
    owners = {id(tensors[name]): own.name for own in family.parameters for name in own.names}
    for optimizer, line in _made(make, module, width):
        for index, group in enumerate(optimizer.param_groups):
            place = _Place(optimizer, group, _words(optimizer, index), line)
            for tensor in group["params"]:
                name = owners.get(id(tensor))
                if name is None:
                    what = f"{place.kind} has a parameter of shape {tuple(tensor.shape)} that is"
                    raise place.refused(f"{what} not of the model at n = {width}", OWN_MODEL)
                other = found.setdefault(name, place)
                if other.optimizer is not optimizer:
                    what = f"{name} is in two optimizers, {other.kind} ({other.line})"
                    raise place.refused(f"{what} and {place.kind}", OWN_MODEL)
    return found


def _made(make: Make, module: Any, width: int) -> list[tuple[Any, str | None]]:
    """The optimizers of a module, each with the line that made it."""
    given = (module, width) if _takes_width(make) else (module,)
    with _lines() as lines:
        try:
            found = make(*given)
        except Exception as error:
            what = f"the optimizer of n = {width} raised {raised(error)}"
            where = last_user_line(error.__traceback__)
            raise UsageError(f"{what}.", where=where, hint=FUNCTION) from error
    several = found.values() if isinstance(found, Mapping) else found
    several = list(several) if isinstance(several, Iterable) else [several]
    for one in several or [found]:
        if not isinstance(one, load_torch().optim.Optimizer):
            raise _no_optimizer(one, line_of(make))
    return [(one, lines.get(id(one))) for one in several]


def _takes_width(make: Make) -> bool:
    """Whether a function has a second argument, which no value of its own says is another."""
    taken = list(signature(make).parameters.values())[1:2]
    meant = (own.default is own.empty or own.name in ("n", "width") for own in taken)
    return any(meant) and taken[0].kind < taken[0].KEYWORD_ONLY


@contextmanager
def _lines() -> Iterator[dict[int, str | None]]:
    """The lines where optimizers are made, by their ids."""
    base = load_torch().optim.Optimizer
    own, lines = base.__init__, dict[int, str | None]()

    def recorded(optimizer: Any, *args: Any, **settings: Any) -> None:
        frame = sys._getframe(1)
        while frame.f_back and frame.f_locals.get("self") is optimizer:  # constructors of its own
            frame = frame.f_back
        lines[id(optimizer)] = user_line(_made.__code__, frame)
        own(optimizer, *args, **settings)

    base.__init__ = recorded
    try:
        yield lines
    finally:
        base.__init__ = own


def _no_optimizer(found: Any, where: str | None) -> UsageError:
    name, hint = type(found).__name__, FUNCTION
    if isclass(found):
        name = f"the class {found.__name__}"
        hint = f"Write lambda model, n: {found.__name__}(model.parameters(), lr=1e-3)."
    elif isinstance(found, load_torch().optim.lr_scheduler.LRScheduler):
        name, hint = f"the scheduler {name}", DRIVEN
    return UsageError(f"{name} stands where an optimizer is meant.", where=where, hint=hint)


# ----------------------------------------------------------------------------- what it stands for


def _rule(name: str, places: Mapping[int, _Place], cut: Clip, own: str | Optimizer | None) -> _Rule:
    """The rule of a group, from its settings at all widths."""
    place, known = places[max(places)], ("params", "lr", "initial_lr")
    reading, kind = _reading(place, own), place.kind
    keys = [key for key in place.optimizer.defaults or place.group if key not in known]
    settings = Settings({key: _over_widths(places, key, name) for key in keys})
    # A switch that lion-pytorch keeps beside its groups.
    settings.values["decoupled_wd"] = getattr(place.optimizer, "decoupled_wd", False)
    notes = [reading.note] * bool(reading.note)
    late = [key for key in reading.late if settings.on(key)]
    notes += [f"{key} of {kind} acts from the second step on, and is left out" for key in late]
    try:
        text, values = reading.read(settings)
        unread = [key for key in settings.unread() if key not in reading.silent]
        if unread:
            raise place.refused(f"{kind} has no text with {', '.join(unread)}")
    except UsageError as error:
        raise UsageError(error.message, where=place.line, hint=error.hint) from None
    told = {key: value.text for key, value in values.items()}
    optimizer = lookup(text).with_settings(**{**told, **cut})
    if settings.on("maximize"):
        program = f"g = -g\n{optimizer.program}"
        optimizer = replace(optimizer, name=f"{optimizer.name}-upwards", program=program)
    return optimizer, _rate(name, places, notes), notes


def _rate(name: str, places: Mapping[int, _Place], notes: list[str]) -> Scaling:
    """The rate of the first step; where a scheduler starts it at 0, that of the optimizer."""
    place, key = places[max(places)], "lr"
    if place.group.get("initial_lr", place.group["lr"]) != place.group["lr"]:
        warm = float(place.group["lr"]) == 0
        key = "initial_lr" if warm else "lr"
        what = "starts at 0: the rate that it leads to is read" if warm else "sets the first rate"
        notes.append(f"a scheduler of {place.kind} {what}")
    if place.optimizer._optimizer_step_pre_hooks:
        notes.append(f"{place.kind} has hooks before its step, which are not read")
    if place.optimizer.state:
        notes.append(f"{place.kind} has a state, and is read from a state of 0 on")
    found: Scaling = _over_widths(places, key, name)
    return found


def _reading(place: _Place, rule: str | Optimizer | None) -> Reading:
    """How the class of an optimizer is read: as the first known one that it comes from."""
    own: Any = type(place.optimizer)
    what = f"it is not known what a step of the optimizer {own.__name__} is"
    for base in own.__mro__:
        reading = CLASSES.get(base.__name__)
        if reading is not None and base.__module__.partition(".")[0] in reading.packages:
            if unwrap(own.step) is unwrap(base.step):
                return reading
            what = f"{own.__name__}, made of {base.__name__}, has a step of its own"
    if rule is None:
        raise place.refused(what)
    return by_rule(own.__name__, lookup(rule), tuple(place.optimizer.defaults))


def _over_widths(places: Mapping[int, _Place], key: str, name: str) -> Any:
    """A setting as a function of the width: numbers as powers, others where they agree."""
    place, what = places[max(places)], f"{key} of {name}"
    values = {n: place.group.get(key) for n, place in places.items()}
    if len({place.kind for place in places.values()}) > 1:
        what, values = f"the optimizer of {name}", {n: own.kind for n, own in places.items()}

    def over(values: Mapping[int, Any]) -> Any:
        found = list(values.values())
        if all(isinstance(value, tuple | list) for value in found):
            parts = zip(*found, strict=True)
            return tuple(over(dict(zip(values, part, strict=True))) for part in parts)
        if all(map(_is_number, found)):
            return scaling({n: float(value) for n, value in values.items()}, what, place.line)
        if any(value != found[0] for value in found):
            shown = ", ".join(map(str, found))
            raise place.refused(f"{what} is {shown} at n = {_listed(values)}", SAME)
        return found[0]

    return over(values)


def _is_number(value: Any) -> bool:
    single = getattr(value, "numel", int)() == 1
    return single or (isinstance(value, Real) and not isinstance(value, bool))


def _words(optimizer: Any, index: int) -> str:
    """A group, with the settings that it does not share with all others of its optimizer."""
    groups = optimizer.param_groups
    known = [key for key in ("name", *optimizer.defaults) if key in groups[index]]
    own = [key for key in known if any(other.get(key) != groups[index][key] for other in groups)]
    shown = ", ".join(f"{key}={groups[index][key]}" for key in own)
    return f"{type(optimizer).__name__} group {index}" + f" ({shown})" * bool(shown)


def _listed(widths: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(widths)))
