"""Rates and inits of single parameters, in a script: parameter groups, and rescaled tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpcalc import checks
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UnknownName, UsageError
from tpcalc.results import Suggestion

MARK = "_tpcalc_rescaled"


Factors = Mapping[str, float] | Suggestion


def param_groups(
    model: Any, rates: Factors, lr: float, *, width: int | None = None, **settings: Any
) -> list[dict[str, Any]]:
    """Groups for a torch optimizer: each trained parameter at lr times its factor.

    Args:
        model: The module.
        rates: Factors by the names of parameters; of others it is 1. Or what ``tp.suggest`` found.
        lr: The learning rate that factors are of; of a suggestion that at its base width.
        width: Of a suggestion the width of the model; None: by the shapes of its parameters.
        settings: Other settings: one for all, or by the names of parameters.

    Returns:
        A group with a name for each set of settings.

    Raises:
        UnknownName: A name that no parameter has.
        UsageError: A factor that is no number above 0, settings of a parameter that needs no
            gradient, two names of one parameter with two values.

    Example:
        >>> from tpcalc.engine.device.devices import load_torch
        >>> model = load_torch().nn.Linear(4, 2)
        >>> groups = param_groups(model, {"weight": 0.25}, 0.01, weight_decay={"weight": 0.1})
        >>> [(own["name"], own["lr"]) for own in groups]
        [('lr x 0.25, weight_decay=0.1', 0.0025), ('lr x 1', 0.01)]
    """
    if isinstance(rates, Suggestion):
        rates = rates.rates(_width(model, rates, width))
    for name, factor in rates.items():
        checks.real(factor, f"the factor of the rate of {name}", above=0)
    given = {key: own for key, own in settings.items() if isinstance(own, Mapping)}
    for_all = {key: own for key, own in settings.items() if key not in given}
    values = {key: _by_tensor(model, own, key) for key, own in {"": rates, **given}.items()}
    groups: dict[str, dict[str, Any]] = {}
    for name, tensor in model.named_parameters():
        own = {key: found[tensor] for key, found in values.items() if tensor in found}
        if tensor.requires_grad:
            factor = own.pop("", 1)
            words = ", ".join([f"lr x {factor}", *(f"{key}={own[key]}" for key in own)])
            new = {"params": [], "name": words, "lr": lr * factor, **for_all, **own}
            groups.setdefault(words, new)["params"].append(tensor)
        elif own:
            raise UsageError(
                f"{name} needs no gradient, and no optimizer moves it.",
                hint="Leave it out, or let it be trained before groups are made.",
            )
    return list(groups.values())


def init_(model: Any, factors: Factors, *, width: int | None = None) -> None:
    """Multiply parameters by factors, in place and once.

    Args:
        model: The module.
        factors: Factors by the names of parameters; or what ``tp.suggest`` found.
        width: Of a suggestion the width of the model; None: by the shapes of its parameters.

    Raises:
        UnknownName: A name that no parameter has.
        UsageError: A model that was rescaled before, or a factor that is no number.

    Example:
        >>> from tpcalc.engine.device.devices import load_torch
        >>> model = load_torch().nn.Linear(4, 2)
        >>> init_(model, {"weight": 0})
        >>> bool((model.weight == 0).all())
        True
    """
    if hasattr(model, MARK):
        raise UsageError(
            "the model was rescaled before, and would be twice.",
            hint="Rescale a model once, behind its own init and before it is trained.",
        )
    if isinstance(factors, Suggestion):
        factors = factors.starts(_width(model, factors, width))
    told = "the factor of"
    factors = {name: float(checks.real(own, f"{told} {name}")) for name, own in factors.items()}
    with load_torch().no_grad():
        for tensor, factor in _by_tensor(model, factors, "factor").items():
            tensor.mul_(factor)
    setattr(model, MARK, True)


def _tensors(model: Any) -> dict[str, Any]:
    """The parameters of a module by all their names."""
    module = checks.of_type(model, load_torch().nn.Module, "model")
    return dict(module.named_parameters(remove_duplicate=False))


def _width(model: Any, found: Suggestion, width: int | None) -> int:
    """The width of a model: as it was given, or what all shapes of its parameters say."""
    if width is not None:
        return checks.whole(width, "width", least=1)
    tensors = _tensors(model)
    rows = [row for row in found.rows if row.per and row.name in tensors]
    told: dict[float, str] = {tensors[row.name].shape[row.axis] / row.per: row.name for row in rows}
    if len(told) != 1:
        said = ", ".join(f"{n:g} by {name}" for n, name in told.items())
        raise UsageError(f"the width of the model is not known{': ' * bool(said)}{said}.",
                         hint="Say width=, the n of its make(n).")  # fmt: skip
    return round(next(iter(told)))


def _by_tensor(model: Any, values: Mapping[str, Any], what: str) -> dict[Any, Any]:
    """Values by parameter, of which all names have one."""
    tensors = _tensors(model)
    found: dict[Any, Any] = {}
    for name, value in values.items():
        if name not in tensors:
            raise UnknownName("parameter of the model", name, tensors)
        other = found.setdefault(tensors[name], value)
        if other != value:
            raise UsageError(f"{name} has another name too, with {what or 'the factor'} {other}.")
    return found
