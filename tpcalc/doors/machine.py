"""What this process has of the memory and the cores of this machine, and what it may take."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_UNKNOWN_MEMORY = 2**32  # where the system does not say
SHARING: list[int] = []  # of the process: threads that are started do not inherit a context
_CGROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_VERSION_1 = "memory.limit_in_bytes", "memory.usage_in_bytes"
_VERSION_2 = "memory.max", "memory.current"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may take."""

    seconds: float = 86400.0  # of its estimate
    memory: int | None = None  # bytes; None: what the machine has


CHOSEN: list[Limits] = []
_DEFAULT = Limits()


def limits() -> Limits:
    """What a run may take now."""
    return CHOSEN[-1] if CHOSEN else _DEFAULT


def beside() -> int:
    """Processes that share the cores and the memory of this machine, this one included."""
    return SHARING[-1] if SHARING else 1


def available_cores() -> int:
    """Cores that this process may use; processes that carry tasks out share those of the machine.

    Example:
        >>> available_cores() >= 1
        True
    """
    system = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if system else os.cpu_count() or 1
    return max(1, cores // beside())


def memory_text(count: float) -> str:
    """A number of bytes in words.

    Example:
        >>> memory_text(3 * 2**29), memory_text(9000)
        ('1.50 GiB', '8.79 KiB')
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.2f} {unit}"
        count /= 1024
    return f"{count:.2f} TiB" if count < 1e6 else f"{count:.0e} TiB"


def available_memory() -> int:
    """Bytes that a new program could take without swapping, and a container still allows.

    Processes that carry tasks out have the same share each.

    Example:
        >>> available_memory() > 0
        True
    """
    found = (_system_free(), _container_free(), limits().memory)
    return max(min(free for free in found if free is not None), 0) // beside()


def _system_free() -> int:
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)
        if found:
            return int(found[1]) * 1024
    names = os.sysconf_names if hasattr(os, "sysconf_names") else {}
    for pages in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        if pages in names:
            count = os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
            # Of the physical memory a part is taken already; how much is not known here.
            return count if pages == "SC_AVPHYS_PAGES" else count // 2
    return _UNKNOWN_MEMORY


def _container_free(root: Path = _CGROUPS, own: Path = _OWN) -> int | None:
    """What memory limits leave of this process's control group, or of one that it is in."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        lines = ["0::/"]
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        folder = root / "memory" if controllers else root  # version 1, version 2
        names = _VERSION_1 if controllers else _VERSION_2
        parts = [part for part in path.split("/") if part not in ("", "..")]
        inner = (folder.joinpath(*parts[:count]) for count in range(len(parts) + 1))
        found += [left for group in inner if (left := _left(group, *names)) is not None]
    return min(found, default=None)


def _left(group: Path, limit: str, usage: str) -> int | None:
    try:
        allowed = (group / limit).read_text().strip()
        used = int((group / usage).read_text())
    except (OSError, ValueError):
        return None
    # Version 1 writes a huge number where there is no limit.
    return int(allowed) - used if allowed.isdigit() else None
