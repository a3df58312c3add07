"""``tpcalc doctor``: what this machine has."""

from __future__ import annotations

from typing import Any

LIBRARIES = (
    "numpy",
    "scipy",
    "numba",
    "sympy",
    "scikit-learn",
    "matplotlib",
    "jinja2",
    "pydantic",
    "typer",
    "rich",
    "loky",
    "distributed",
    "torch",
)


def doctor(as_json: bool = False) -> None:
    """Versions, devices, threads and memory."""
    from tpcalc.cli import payload
    from tpcalc.cli.show import put

    found = _findings()
    if as_json:
        put(payload.document("doctor", {}, found))
        return
    width = max(map(len, found["versions"]))
    lines = [f"{name:<{width}}  {version}" for name, version in found["versions"].items()]
    lines.append(f"{'devices':<{width}}  {', '.join(found['devices'])}")
    lines.append(f"{'threads':<{width}}  {found['threads']}")
    lines.append(f"{'memory':<{width}}  {found['free_memory'] / 2**30:.1f} GiB free")
    lines += [f"{'':<{width}}  {note}" for note in found["notes"]]
    put("\n".join(lines))


def _findings() -> dict[str, Any]:
    import platform

    import tpcalc
    from tpcalc.doors.machine import available_cores
    from tpcalc.engine.device.devices import devices, free_memory
    from tpcalc.sources import library_versions

    found = dict(library_versions(LIBRARIES))
    versions = {
        "tpcalc": tpcalc.__version__,
        "python": platform.python_version(),
        **{name: found.get(name, "not installed") for name in LIBRARIES},
    }
    notes = []
    if "torch" not in found:
        notes.append("--backend dense and --device need torch: pip install 'tpcalc[torch]'")
    return {
        "versions": versions,
        "system": platform.platform(),
        "devices": devices(),
        "threads": available_cores(),
        "free_memory": free_memory(),
        "notes": notes,
    }
