"""``tpcalc phases MODEL``: verdicts over a box of exponents."""

from __future__ import annotations

from pathlib import Path

from tpcalc.cli.flags import NETWORK, RATES_OPEN, VALUES, Flags, takes


@takes(NETWORK, RATES_OPEN, VALUES)
def phases(
    model: str,
    flags: Flags,
    box: list[str] | None = None,
    svg: Path | None = None,
    as_json: bool = False,
) -> None:
    """The phase diagram of a parameterization with symbols: regions, walls and points."""
    from tpcalc.cli.show import answer, check_place
    from tpcalc.cli.values import box as box_of
    from tpcalc.errors import UsageError
    from tpcalc.questions.phases import phases as mapped
    from tpcalc.study import open_network

    sides = box_of("--box", box or ())
    if svg is not None:
        check_place("--svg", svg, (".svg",), "a picture")
        if len(sides) != 2:
            raise UsageError(
                f"--svg: a picture shows two symbols; --box gives {len(sides)}.",
                hint="Write a number in place of the others in --param.",
            )
    opened = open_network(model, flags)
    found = mapped(opened.run(steps=2), box=sides, values=opened.study.limit.values)
    if svg is not None:
        from tpcalc.doors.write import put
        from tpcalc.views.answers.phases import phase_svg

        put(svg, phase_svg(found), "picture")
    answer("phases", opened.description, found, opened.title, as_json, written={"svg": svg})
