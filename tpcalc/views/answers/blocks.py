"""What to type for a network of L blocks, and which power of L its weights ask for."""

from __future__ import annotations

from tpcalc.results import Recipe, Regularity
from tpcalc.views.numbers import SETTLED, count, plain, settled
from tpcalc.views.tables import Table, number, numbers, sentence, texts
from tpcalc.views.view import Judgement, Part, View, view


@view.register
def _(found: Recipe) -> View:
    said = f"{found.name} (alpha = {found.alpha}, gamma = {found.gamma}), {found.optimizer}"
    rows = (
        (row.what, plain(row.at_base), plain(row.value), f"(L/{found.base})^({row.power})")
        for row in found.rows
    )
    head = (*texts("Number"), *numbers(f"L = {found.base}", f"L = {found.depth}", "Factor"))
    part = Part("recipe", "Recipe", "", (Table.of("What to type", head, rows),))
    return View("Recipe", Judgement("info", said), "", (part,), found.notes)


@view.register
def _(found: Regularity) -> View:
    said = f"{found.kind.capitalize()} along {count(found.depth)} blocks: L^(-{found.alpha}) suits"
    facts = (
        ("H", settled(found.hurst), "sums over m blocks are of size m^H"),
        ("H, coarse", settled(found.coarse), "the same between the two longest sums alone"),
        (
            "Smoothness s",
            settled(found.smoothness),
            "numbers m blocks apart differ by m^s, m small",
        ),
        ("Nearest law", found.law, "as along= of a network takes it"),
        ("Critical for outputs", f"L^(-{found.critical[0]})", "outputs stay of order one"),
        ("Critical for gradients", f"L^(-{found.critical[1]})", "gradients stay of order one"),
    )
    local = ((str(m), settled(own)) for m, own in found.scales)
    rows = (
        (
            f"L^(-{row.alpha})",
            row.outputs,
            row.gradients,
            *("" if own is None else settled(own) for own in (row.D, row.Dp)),
        )
        for row in found.rows
    )
    columns = (*texts("Power", "Outputs", "Gradients"), *numbers("D at this depth", "Dp"))
    tables = (
        Table.of(
            "What was measured",
            (*texts("Quantity"), number("Value"), *texts("Meaning")),
            ((word, value, sentence(means)) for word, value, means in facts),
        ),
        Table.of("Powers in front of a block", columns, rows, SETTLED),
        Table.of("H by the length of sums", numbers("m", "H between m and 2 m blocks"), local),
    )
    part = Part("regularity", "Weights along the depth", "", tables)
    title = "Regularity along the depth"
    return View(title, Judgement("info", said), "", (part,), found.notes, found.provenance)
