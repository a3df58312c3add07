"""Formulas: what they say, and that large ones are left out."""

from __future__ import annotations

import math

import tpcalc as tp
from tpcalc.limit.derive import derive
from tpcalc.limit.express import express


@tp.program
def there_and_back(t: tp.Tracer) -> None:
    v, w = t.gaussian("v"), t.matrix("W")
    h = tp.n**-0.5 * (w @ v)
    x = tp.tanh(h)
    t.output("h", h)
    t.output("x", x)
    t.output("g", tp.n**-0.5 * (w.T @ x))
    t.output("s", t.inner(v, v))


def test_hat_and_correction() -> None:
    formulas = express(derive(there_and_back.build()))
    assert formulas["h"].text == "Z[h] = hat(W v)"
    assert formulas["x"].text == "Z[x] = tanh(Z[h])"
    assert formulas["g"].text == "Z[g] = hat(W^T x) + E[d x/d hat(W v)] v"
    assert formulas["s"].text == "s = E[v^2]"
    assert r"\hat Z" in formulas["g"].latex
    assert formulas["g"].mathml.startswith("<math") and "<mover>" in formulas["g"].mathml


def test_the_budget_leaves_large_formulas_out() -> None:
    @tp.program
    def large(t: tp.Tracer) -> None:
        h = t.gaussian("v")
        for _ in range(60):
            h = tp.tanh(h) + h
        t.output("h", h)
        t.output("short", tp.tanh(t.gaussian("w")))

    formulas = express(derive(large.build()))
    assert "h" not in formulas
    assert formulas["short"].text == "Z[short] = tanh(w)"


def test_formula_of_a_limit_vector() -> None:
    found = tp.limit(there_and_back, samples=2**6, replicates=2)
    assert found["x"].formula.text == "Z[x] = tanh(Z[h])"
    assert "Z[h] = hat(W v)" in repr(found["h"])


def test_unnamed_vectors_are_spelled_out() -> None:
    """Labels of inner vectors are not taken for the placeholders of symbols."""

    @tp.program
    def nested(t: tp.Tracer) -> None:
        v, w = t.gaussian("v"), t.matrix("W")
        h = tp.n**-0.5 * (w @ tp.relu(v))
        t.output("g", tp.n**-0.5 * (w.T @ tp.tanh(h)))

    text = express(derive(nested.build()))["g"].text
    assert text == (
        "Z[g] = hat(W^T tanh(W relu(v))) + E[d tanh(W relu(v))/d hat(W relu(v))] relu(v)"
    )


def test_a_formula_names_the_corrections_that_there_are() -> None:
    """gelu(V relu(a) + u) knows nothing of W: V gives its vector a Gaussian of its own."""
    small = tp.n**-0.5

    @tp.program
    def made(t: tp.Tracer) -> None:
        v, u, w, k = t.gaussian("v"), t.gaussian("u"), t.matrix("W"), t.matrix("V")
        a = small * (w @ tp.tanh(v))
        t.output("a", a)
        t.output("free", small * (w.T @ tp.gelu(small * (k @ tp.relu(a)) + u)))
        t.output("even", small * (w.T @ tp.tanh(a) ** 2))
        t.output("bound", small * (w.T @ tp.relu(a)))

    found = tp.limit(made, samples=2**6, formulas=True)
    table = {row.name: str(row).split(": ")[1] for row in tp.corrections(made).rows}
    for name, product in (("free", "W^T gelu(v6)"), ("even", "W^T tanh(a)**2")):
        assert "E[d" not in found[name].formula.text
        assert [text for key, text in table.items() if key.startswith(product[:8])] == ["none"]
    assert found["bound"].formula.text.endswith("+ E[d relu(a)/d hat(W tanh(v))] tanh(v)")
    assert table["W^T relu(a)"].endswith("* tanh(v)")


def test_sums_are_printed_with_their_numbers() -> None:
    """Fractions as they are, and other numbers with six digits."""

    @tp.program
    def total(t: tp.Tracer) -> None:
        v, w = t.gaussian("v"), t.gaussian("w")
        t.output("y", 2 * v - w / 3)
        t.output("z", math.pi * v)

    formulas = express(derive(total.build()))
    assert formulas["y"].text == "Z[y] = 2 v - 1/3 w"
    assert formulas["z"].text == "Z[z] = 3.14159 v"


def test_a_product_with_another_matrix_hides_what_is_below_it() -> None:
    """W^T relu(y) and W^T abs(y) are correlated; of V relu(a) only V is felt, and not a."""

    @tp.program
    def two(t: tp.Tracer) -> None:
        y, w = t.gaussian("y"), t.matrix("W")
        a, b = (tp.n**-0.5 * (w.T @ x) for x in (tp.relu(y), tp.abs(y)))
        x = tp.relu(tp.n**-0.5 * (t.matrix("V") @ tp.relu(a))) * tp.relu(b)
        t.output("x", x)
        t.output("h", tp.n**-0.5 * (w @ x))

    text = express(derive(two.build()))["h"].text
    assert text.count("E[") == 1 and "d hat(W^T abs(y))" in text


def test_brackets_stand_where_something_binds_more_tightly() -> None:
    """In averages, powers, products with a matrix and derivatives, in every notation."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        v, w = t.gaussian("v"), t.matrix("W")
        h = tp.n**-0.5 * (w @ tp.relu(v))
        g = tp.tanh(h) * tp.relu(v)
        t.output("s", t.inner(g, g))
        t.output("y", tp.n**-0.5 * (w.T @ g))
        t.output("q", (h - v) ** 3 / (1 + t.mean(h * h)) ** 0.5)

    found = express(derive(made.build()))
    product, power = "tanh(W relu(v)) relu(v)", "(hat(W relu(v)) - v)^3"
    assert found["s"].text == f"s = E[({product})^2]"
    assert found["y"].text.startswith(f"Z[y] = hat(W^T ({product})) + E[d ({product})/d hat(")
    assert power in found["q"].text and "^(-1/2)" in found["q"].text
    assert r"\right)}^{2}\right]" in found["s"].latex
    assert "<mrow><mo>(</mo>" in found["s"].mathml and "</sup>]" in found["s"].html
