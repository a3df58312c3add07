"""``tpcalc show MODEL``: the program itself, and what its limits are functions of."""

from __future__ import annotations

from typing import Annotated

from tpcalc.cli.flags import DATA, MODULE, NETWORK, AsJson, Flags, ModelWord, takes
from tpcalc.cli.option import told

VECTORS = ("h", "x", "dh", "dx")

InWords = Annotated[bool, told("show", "in-words")]
Depends = Annotated[bool, told("show", "depends")]


@takes(NETWORK, MODULE, DATA)
def show(
    model: ModelWord,
    flags: Flags,
    words: InWords = False,
    dependencies: Depends = False,
    as_json: AsJson = False,
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
