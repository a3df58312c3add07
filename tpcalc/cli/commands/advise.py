"""``tpcalc advise``: guidelines for the design of a network, and what to change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tpcalc.cli.asked import Asked, of_network
from tpcalc.cli.exits import SAYS_NO
from tpcalc.cli.option import many, whole_numbers

if TYPE_CHECKING:
    from tpcalc.results import Thresholds


@many
@of_network
def advise(
    asked: Asked,
    thresholds: str = "",
    noise: str = "",
    dtype: str = "float32",
    widths: str = "",
    seeds: int = 4,
    seed: int = 0,
    device: str = "cpu",
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """Guidelines for the start of training, the worst first, and what to change."""
    from tpcalc.cli.show import answer, check_page, progress_bar, write_page
    from tpcalc.engine.device.devices import known_device
    from tpcalc.errors import Incomplete
    from tpcalc.practice.advice import advise as advice_on

    check_page(out)
    known_device(device)
    bar, sizes = _thresholds(thresholds), whole_numbers("--widths", widths) if widths else []
    noises = [float(word) for word in _numbers("--noise", noise.split(","))] if noise else []
    with progress_bar("networks") as progress:
        given = bar, sizes, seeds, noises, dtype, asked.inputs, seed, device, asked.title
        found = advice_on(asked.network, *given, progress)
    write_page(out, f"Advice: {asked.title}", found, program_text=found.text)
    answer("advise", {"model": found.model}, found, asked.title, as_json, written={"out": out})
    if found.grade == "fail":
        raise typer.Exit(SAYS_NO)
    if found.route != "recursion":
        keys = [each.key for each in found.guidelines if each.grade == "open"]
        raise Incomplete(f"no number of {', '.join(keys)}: {found.notes[0]}")


def _numbers(flag: str, words: list[str]) -> list[float]:
    from tpcalc import checks

    return [float(checks.real(word.strip(), flag)) for word in words]


def _thresholds(text: str) -> Thresholds:
    from tpcalc import checks
    from tpcalc.errors import UsageError
    from tpcalc.results import Thresholds

    given = {}
    for pair in text.split(",") if text else ():
        name, equals, value = pair.partition("=")
        checks.one_of("threshold", name.strip(), Thresholds.__slots__)
        numbers = _numbers("--thresholds", value.split(":")) if equals else []
        if not numbers:
            raise UsageError(f"--thresholds: {pair!r} has no numbers.", hint="Write bias=3:20.")
        given[name.strip()] = numbers[0] if name.strip() == "linear" else tuple(numbers)
    return Thresholds(**given)  # type: ignore[arg-type]
