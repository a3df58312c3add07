"""``tpcalc show MODEL``: the program itself."""

from __future__ import annotations

from typing import Annotated

import typer

from tpcalc.cli.exits import clean
from tpcalc.cli.flags import DATA, NETWORK, AsJson, Flags, ModelWord, takes

__all__ = ["show"]

InWords = Annotated[bool, typer.Option("--words", help="What it is and computes, in words.")]


@clean
@takes(NETWORK, DATA)
def show(model: ModelWord, flags: Flags, words: InWords = False, as_json: AsJson = False) -> None:
    """The program: its canonical text, or what it computes in words."""
    from tpcalc.cli import payload
    from tpcalc.cli.show import put
    from tpcalc.study import open_model

    opened = open_model(model, flags)
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
