"""``tpcalc kernel MODEL``: NNGP and NTK of a network on many inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tpcalc.cli.exits import clean
from tpcalc.cli.flags import INPUTS, KERNEL, MODULE, RUN, AsJson, Flags, ModelWord, ReportOut, takes
from tpcalc.cli.many import many
from tpcalc.cli.option import told

if TYPE_CHECKING:
    from tpcalc.results import Kernel, Samples
    from tpcalc.study import Model, Network

METHODS = ("auto", "exact", "quadrature", "particles")
_DIGITS = 100
_CLASSES = list(range(10))
_LABELS = 20  # classes that a map can be sorted by

Kinds = Annotated[str, told("kernel", "kinds")]
MethodWord = Annotated[str, told("kernel", "method-word")]
Scale = Annotated[float | None, told("kernel", "scale")]
Save = Annotated[Path | None, told("kernel", "save")]
Steps = Annotated[int | None, typer.Option(hidden=True)]


@clean
@many
@takes(KERNEL, MODULE, INPUTS, RUN)
def kernel(
    model: ModelWord,
    flags: Flags,
    kinds: Kinds = "nngp,ntk",
    method: MethodWord = "auto",
    scale: Scale = None,
    save: Save = None,
    out: ReportOut = None,
    as_json: AsJson = False,
    steps: Steps = None,
) -> None:
    """NNGP and NTK on many inputs, in closed form where there is one."""
    from tpcalc.cli.places import check_page, check_place
    from tpcalc.cli.show import answer, write_page
    from tpcalc.cli.values import words
    from tpcalc.errors import UsageError
    from tpcalc.results.kernel import KINDS

    if steps is not None:
        raise UsageError(
            "--steps: a kernel is that of the network at the start; training has no part in it.",
            hint="tpcalc limit follows training.",
        )
    chosen = words("--kinds", kinds, KINDS)
    if method not in METHODS:
        raise UsageError(f"--method: {method!r} is none of {', '.join(METHODS)}.")
    if save is not None:
        check_place("--save", save, (".npz",), "a kernel")
    check_page(out)
    found, title, description = _computed(model, flags, chosen, method, scale)
    if save is not None:
        found.save(save)
    write_page(out, title[0].upper() + title[1:], found)
    answer("kernel", description, found, title, as_json, written={"save": save, "out": out})


def _computed(
    model: str, flags: Flags, kinds: tuple[str, ...], method: str, scale: float | None
) -> tuple[Kernel, str, dict[str, Any]]:
    """The kernel, the model in words, and the same for JSON."""
    from tpcalc.errors import UsageError
    from tpcalc.study import is_program, open_model

    if is_program(model, flags):
        if scale is not None:
            raise UsageError("--scale: a program in a file has its inputs written in it.")
        program = open_model(model, flags)
        found = _run(program, program.program, None, kinds=kinds, method=method)
        return found, program.title, dict(program.description)
    opened, data = _opened(model, flags)
    if opened.study.module.make is not None:  # its first layer is as it is written
        scale = 1.0 if scale is None else scale
    way, asked = opened.parameterization, {"kinds": kinds, "method": method, "scale": scale}
    found = _run(opened, opened.architecture, data.inputs, parameterization=way, **asked)
    return _told(found, opened, data), opened.title, _described(opened, data)


def _run(opened: Model | Network, model: Any, inputs: Any, **asked: Any) -> Kernel:
    from tpcalc.cli.progress import progress_bar
    from tpcalc.questions.kernel.kernel import kernel as computed

    part = opened.study.limit
    with progress_bar("kernel") as progress:
        asked |= {"seed": part.seed, "threads": part.threads, "progress": progress}
        found: Kernel = computed(model, inputs, **asked)
    return found


def _opened(model: str, flags: Flags) -> tuple[Network, Samples]:
    """The network with many inputs, and the NTK parameterization where no other is named."""
    from tpcalc.study import open_network
    from tpcalc.study.modules import own_data

    opened = open_network(model, [*flags, *_defaults(model, flags)])
    data = opened.training.data or own_data(opened.study.module, opened.training)
    return opened, data


def _defaults(model: str, flags: Flags) -> Flags:
    """What this question takes where neither the flags nor a study file say it."""
    from tpcalc.study.load import Flag

    given = _given(model, flags)
    if "module.input" in given:  # it has powers and inputs of its own; a kernel is that of SGD
        return [Flag("--optimizer", "training.optimizer", "sgd")]
    found = [] if "model.param" in given else [Flag("--param", "model.param", "ntk")]
    if given.get("training.data", "digits") == "digits" and "training.inputs" not in given:
        for key, value in (("samples", _DIGITS), ("classes", _CLASSES)):
            if f"training.{key}" not in given:
                found.append(Flag(f"--{key}", f"training.{key}", value))
        if "training.loss" in given:  # targets have no part in a kernel: any loss takes them
            found.append(Flag("--loss", "training.loss", "mse"))
    return found


def _given(model: str, flags: Flags) -> dict[str, Any]:
    """The keys that the flags and a study file set."""
    from tpcalc.study.load import load

    found = {flag.key: flag.value for flag in flags}
    if model.lower().endswith(".toml"):
        study = load(model, flags)
        for name in ("model", "module", "training"):
            part = getattr(study, name)
            found |= {f"{name}.{key}": getattr(part, key) for key in part.model_fields_set}
    return found


def _told(kernel: Kernel, opened: Network, data: Samples) -> Kernel:
    """The kernel with the classes of its inputs, and a word about where they come from."""
    from dataclasses import replace

    origin = f"Inputs: {data.origin}."
    if data.origin.startswith("digits"):
        origin += (
            " Pixels are standardised; the mean of |x|^2 over all digits is 1, before --scale."
        )
    return replace(kernel, labels=_labels(opened, data), notes=(*kernel.notes, origin))


def _labels(opened: Network, data: Samples) -> tuple[str, ...]:
    """A word for the class of each input; none where targets are no classes."""
    if data.origin.startswith("digits"):
        classes = opened.study.training.classes
        hot = [max(range(len(row)), key=row.__getitem__) for row in data.targets]
        if data.outputs == 1:
            hot = [int(row[0] > 0) for row in data.targets]
        return tuple(str(classes[index]) for index in hot)
    if data.outputs > 1:
        one_hot = all(sorted(row) == [0.0] * (len(row) - 1) + [1.0] for row in data.targets)
        return tuple(str(row.index(1.0)) for row in data.targets) if one_hot else ()
    words = tuple(f"{row[0]:g}" for row in data.targets)
    return words if len(set(words)) <= min(_LABELS, len(words) // 2) else ()


def _described(opened: Network, data: Samples) -> dict[str, Any]:
    """The network and its inputs; training has no part in a kernel."""
    own = type(opened.study.model).model_fields
    network = {name: value for name, value in opened.description.items() if name in own}
    shape = {"origin": data.origin, "samples": len(data), "dimension": data.dimension}
    return {**network, "data": shape}
