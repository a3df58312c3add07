"""Formulas reach the page as mathematics and nothing else."""

from __future__ import annotations

import pytest

from tpcalc.results import Formula
from tpcalc.views.page import formula_html, formula_markdown


def shown(mathml: str) -> str:
    return formula_html(Formula("plain <text>", mathml=mathml))


def test_entities_and_wrappers_are_resolved() -> None:
    assert shown(
        '<?xml version="1.0"?><math xmlns="http://www.w3.org/1998/Math/MathML">'
        "<mi>a</mi><mo>&InvisibleTimes;</mo><mi>b</mi><mo>&lt;</mo></math>"
    ) == (
        '<math display="block"><mrow><mi>a</mi><mo>\u2062</mo><mi>b</mi><mo>&lt;</mo></mrow></math>'
    )


def test_fences_are_written_out() -> None:
    assert shown('<mfenced open="[" close="]"><mi>a</mi><mi>b</mi></mfenced>') == (
        '<math display="block"><mrow><mo>[</mo><mi>a</mi><mo>,</mo><mi>b</mi><mo>]</mo></mrow>'
        "</math>"
    )


@pytest.mark.parametrize(
    "mathml",
    [
        "<mi>a",
        "<!DOCTYPE x [<!ENTITY a 'b'>]><mi>&a;</mi>",
        "<script>alert(1)</script>",
        "<mrow>" * 300 + "</mrow>" * 300,
        "&nosuchentity;<mi>a</mi>",
    ],
    ids=["broken", "doctype", "script", "deep", "entity"],
)
def test_what_cannot_be_shown_falls_back_to_text(mathml: str) -> None:
    assert shown(mathml) == "<code>plain &lt;text&gt;</code>"


def test_foreign_elements_and_attributes_are_dropped() -> None:
    page = shown(
        '<mrow onclick="x()" href="http://a.b"><mi mathvariant="bold" style="color:red">a</mi>'
        "<img src='http://a.b'/></mrow>"
    )
    assert page == '<math display="block"><mrow><mi mathvariant="bold">a</mi></mrow></math>'


def test_sympy_output_is_shown() -> None:
    from sympy import Integral, Symbol, erf, oo, sqrt
    from sympy.printing.mathml import mathml

    x = Symbol("x")
    expression = Integral(erf(x) / sqrt(2 * (x + 1)), (x, -oo, oo))
    page = shown(mathml(expression, printer="presentation"))
    assert page.startswith('<math display="block">')
    assert "∫" in page and "mfenced" not in page and "&" not in page


def test_markdown_takes_latex_then_text() -> None:
    assert formula_markdown(Formula("x", latex="x\n^2")) == "$$x ^2$$"
    assert formula_markdown(Formula("a`b", latex="")) == "`a'b`"
