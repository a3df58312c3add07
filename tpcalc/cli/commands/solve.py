"""``tpcalc solve MODEL``: the learning rates at which every layer learns."""

from __future__ import annotations

from tpcalc.cli.flags import MODULE, NETWORK, RATES_OPEN, VALUES, Flags, takes

SYMBOLS = ("p", "L")


@takes(NETWORK, MODULE, RATES_OPEN, VALUES)
def solve(
    model: str,
    flags: Flags,
    symbolic: str | None = None,
    multipliers: bool = False,
    at: list[str] | None = None,
    base: int | None = None,
    at_width: int | None = None,
    deep: int | None = None,
    as_json: bool = False,
) -> None:
    """The largest learning-rate exponents c_l(t) at which nothing that is read grows."""
    from tpcalc.cli.show import answer
    from tpcalc.cli.values import point, words
    from tpcalc.questions.solve import solve as solved
    from tpcalc.questions.verdict.probe import DEEP
    from tpcalc.study import open_network

    names = words("--symbolic", symbolic, SYMBOLS) if symbolic is not None else ()
    opened = open_network(model, flags)
    chosen = {**point("--at", at or ()), **(opened.study.limit.values or {})} or None
    found = solved(
        opened.training,
        symbolic=names,
        multipliers=multipliers,
        at=chosen,
        base=base,
        width=at_width,
        deep=DEEP if deep is None else deep,
    )
    answer("solve", opened.description, found, opened.title, as_json)
