"""``tpcalc show MODEL``: the program itself, and what its limits are functions of."""

from __future__ import annotations

from tpcalc.cli.flags import DATA, MODULE, NETWORK, Flags, takes

VECTORS = ("h", "x", "dh", "dx")


@takes(NETWORK, MODULE, DATA)
def show(
    model: str,
    flags: Flags,
    words: bool = False,
    dependencies: bool = False,
    as_json: bool = False,
) -> None:
    """The program: its canonical text, what it computes in words, or what its limits depend on."""
    from tpcalc.cli import payload
    from tpcalc.cli.show import answer, put
    from tpcalc.study import open_model

    opened = open_model(model, flags, VECTORS if dependencies else ())
    if dependencies:
        from tpcalc.questions.dependencies import dependencies as found

        answer("show", opened.description, found(opened.program).table, "", as_json)
        return
    text = str(opened.program)
    if as_json:
        result = {
            "title": opened.title,
            "facts": opened.facts,
            "words": opened.words,
            "text": text,
            "nodes": len(opened.program.nodes),
            "outputs": [name for name, _ in opened.program.outputs],
        }
        made = {"program": opened.program.digest}
        put(payload.document("show", opened.description, result, made))
    elif words:
        facts = [f"{name}: {value}" for name, value in opened.facts.items()]
        put("\n".join([opened.title, "", *facts, *(["", *opened.words] if opened.words else [])]))
    else:
        put(text.rstrip("\n"))
