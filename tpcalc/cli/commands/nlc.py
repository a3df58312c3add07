"""``tpcalc nlc``: the nonlinearity coefficient of a network, layer by layer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tpcalc.cli.asked import Asked, of_network
from tpcalc.cli.option import many, whole_numbers


@many
@of_network
def nlc(
    asked: Asked,
    widths: str = "",
    seeds: int = 4,
    inputs: int = 500,
    seed: int = 0,
    device: str = "cpu",
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """The nonlinearity coefficient: the limit of every layer, and networks of finite width."""
    from tpcalc.cli.show import answer, check_page, progress_bar, write_page
    from tpcalc.engine.device.devices import known_device
    from tpcalc.meanfield.answer import nonlinearity
    from tpcalc.meanfield.measured import Sampling

    check_page(out)
    known_device(device)
    sampling = None
    if widths:
        sizes = tuple(whole_numbers("--widths", widths))
        sampling = Sampling(sizes, seeds, inputs, seed=seed, device=device)
    with progress_bar("networks") as progress:
        words = asked.network, asked.title
        found = nonlinearity(*words, sampling, seed, progress, asked.inputs)
    found = replace(found, notes=(*found.notes, *asked.notes))
    write_page(out, f"Nonlinearity: {asked.title}", found, program_text=found.text)
    answer("nlc", {"model": found.model}, found, asked.title, as_json, written={"out": out})
