"""What this process has of the memory and the cores of this machine."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tpcalc.tasks.alone import beside

_UNKNOWN_MEMORY = 2**32  # where the system does not say


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
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.2f} {unit}"
        count /= 1024
    return f"{count:.2f} GiB"


def available_memory() -> int:
    """Bytes that a new program could take without swapping, and a container still allows.

    Processes that carry tasks out have the same share each.

    Example:
        >>> available_memory() > 0
        True
    """
    limits = [_system_free()]
    allowed = _container_free()
    if allowed is not None:
        limits.append(allowed)
    return max(min(limits), 0) // beside()


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


def _container_free(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What a memory limit of the container leaves (Linux control groups, version 2)."""
    try:
        allowed = (root / "memory.max").read_text().strip()
        used = int((root / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return None if allowed == "max" else int(allowed) - used
