"""``tpcalc kernel MODEL``: NNGP and NTK of a network on many inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpcalc import checks
from tpcalc.cli.flags import INPUTS, KERNEL, MODULE, RUN, Flags, takes
from tpcalc.cli.option import many

if TYPE_CHECKING:
    from tpcalc.results import Kernel, Samples
    from tpcalc.study import Network

METHODS = ("auto", "exact", "quadrature", "particles")
_LABELS = 20  # classes that a map can be sorted by


@many
@takes(KERNEL, MODULE, INPUTS, RUN)
def kernel(
    model: str,
    flags: Flags,
    kinds: str = "nngp,ntk",
    method: str = "auto",
    scale: float | None = None,
    save: Path | None = None,
    out: Path | None = None,
    as_json: bool = False,
    steps: int | None = None,
) -> None:
    """NNGP and NTK on many inputs, in closed form where there is one."""
    from tpcalc.cli.show import answer, check_page, check_place, write_page
    from tpcalc.cli.values import words
    from tpcalc.errors import UsageError
    from tpcalc.results.kernel import KINDS

    if steps is not None:
        raise UsageError(
            "--steps: a kernel is that of the network at the start; training has no part in it.",
            hint="tpcalc limit follows training.",
        )
    chosen = words("--kinds", kinds, KINDS)
    checks.one_of("method", method, METHODS, where="--method")
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
    from tpcalc.cli.show import progress_bar
    from tpcalc.errors import UsageError
    from tpcalc.questions.kernel.kernel import kernel as computed
    from tpcalc.questions.studies import kernel_of
    from tpcalc.study import is_program, open_model
    from tpcalc.study.models import study_at

    asked: dict[str, Any] = {"kinds": kinds, "method": method}
    if is_program(model, flags):
        if scale is not None:
            raise UsageError("--scale: a program in a file has its inputs written in it.")
        program = open_model(model, flags)
        part = program.study.limit
        with progress_bar("kernel") as progress:
            asked |= {"seed": part.seed, "threads": part.threads, "progress": progress}
            found = computed(program.program, None, **asked)
        return found, program.title, dict(program.description)
    with progress_bar("kernel") as progress:
        found, opened, data = kernel_of(study_at(model, flags), progress, scale=scale, **asked)
    return _told(found, opened, data), opened.title, _described(opened, data)


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
