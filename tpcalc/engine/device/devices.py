"""Where and in which precision torch computes: loading it, devices, number formats, free memory."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tpcalc import checks
from tpcalc.doors.machine import available_memory
from tpcalc.errors import MissingBackend, UnknownName
from tpcalc.tasks.alone import alone, hold

_DTYPES = {
    "float64": "float64",
    "float32": "float32",
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
}
_DEVICES = ("cpu", "cuda", "cuda:0", "auto")


def load_torch(instead: str = "") -> Any:
    """The torch module; in a task it has one thread; ``instead``: what does without it."""
    try:
        import torch
    except ImportError as error:
        raise MissingBackend(
            "dense networks and devices need torch, which is not installed.",
            hint=f"Run pip install 'tpcalc[torch]'{instead}.",
        ) from error
    hold(torch)
    return torch


def known_device(name: Any) -> None:
    """Refuse what is the name of no device on any machine."""
    if not re.fullmatch(r"cpu|auto|cuda(:\d{1,9})?", checks.text(name, "device"), re.ASCII):
        raise UnknownName("device", name, _DEVICES)


def resolve_device(name: str) -> Any:
    """The torch device of a name."""
    known_device(name)
    torch = load_torch()
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        built = torch.version.cuda
        why = "sees no CUDA device" if built else "was built without CUDA"
        raise MissingBackend(
            f"the device {name!r} was asked for, but torch {torch.__version__} {why}.",
            hint="Use device='cpu', or install a CUDA build of torch and its driver "
            "(`tpcalc doctor` lists the devices).",
        )
    count = torch.cuda.device_count()
    if int(name.partition(":")[2] or 0) >= count:
        raise MissingBackend(
            f"the device {name!r} was asked for; there are {count} CUDA devices, "
            f"cuda:0 to cuda:{count - 1}.",
            hint="Use one of those.",
        )
    return torch.device(name)


def device_name(name: str | None) -> str | None:
    """The name of a device that is there, or None; an argument is checked before any work."""
    if name is None:
        return None
    known_device(name)
    load_torch(", or leave out the device and use backend='lazy'")
    return str(resolve_device(name))


def with_device(device: Any) -> AbstractContextManager[None]:
    """Within it, tasks that compute on a device other than the CPU stay with this process."""
    return nullcontext() if str(device) == "cpu" else alone()


def devices() -> tuple[str, ...]:
    """The devices that ``resolve_device`` knows here, each with what it is.

    Example:
        >>> devices()[0]
        'cpu'
    """
    try:
        torch = load_torch()
    except MissingBackend:
        return ("cpu",)
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    found = (f"cuda:{index} ({torch.cuda.get_device_name(index)})" for index in range(count))
    return ("cpu", *found)


def resolve_dtype(name: str) -> Any:
    """The torch number format of a name: float64, float32, bfloat16 (or bf16).

    Example:
        >>> resolve_dtype("float63")
        Traceback (most recent call last):
        ...
        tpcalc.errors.UnknownName: TPC201 there is no number format called 'float63'. ...
    """
    checks.one_of("number format", name, _DTYPES)
    return getattr(load_torch(), _DTYPES[name])


def free_memory(device: Any = None) -> int:
    """Free bytes of a torch device, or of this machine (None).

    Of this machine it is what a new program could take without swapping, and no more than a
    container still allows.

    Example:
        >>> free_memory() > 0
        True
    """
    if device is not None and device.type == "cuda":
        free, _ = load_torch().cuda.mem_get_info(device)
        return int(free)
    return available_memory()


def is_out_of_memory(torch: Any, error: BaseException) -> bool:
    """Whether an error says that a device has no memory left."""
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    text = str(error)
    return "can't allocate memory" in text or "not enough memory" in text
