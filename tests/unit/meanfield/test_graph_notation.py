"""Layer graphs as text: what is read, what is refused, and that texts come back."""

from __future__ import annotations

import pytest
from layered import Lines

from tpcalc.errors import StudyError, TpcalcError
from tpcalc.meanfield.notation.architectures import Design, mlp, resnet
from tpcalc.meanfield.notation.macro_layers import MacroLayers
from tpcalc.meanfield.notation.notation import graph_text, parse_graph

TEXT = """
x = input(1, 0.3)        # the inputs
a = dense(x, 3/2, family="orthogonal", rank=1/4)
b = span_bias(a, 0.1, 1/4)
c = leaky_relu(b, 0.2)
d = dense(c, width=2)
e = dense(d, 2, outputs=10)
"""


def test_a_text_is_read() -> None:
    graph = parse_graph(TEXT)
    assert [line.word.name for line in graph.lines] == [
        "input",
        "dense",
        "bias in the span",
        "leaky_relu[1/5]",
        "dense",
        "readout",
    ]
    assert graph.widths[-2:] == (2, None)


@pytest.mark.parametrize(
    "graph",
    [
        parse_graph(TEXT),
        mlp(2, Design("tanh", 1.5, 0.05, "layer")),
        mlp(2, Design("gelu", 2, 0.1, "batch", batch=32)),
        mlp(1, Design("relu", 2, 0.1, family="gaussian-gaussian", rank=0.5, bias="shared")),
        resnet(2, Design("leaky_relu:0.1", 2, 0.1, "layer"), skip=0.5, branch=-2),
    ],
)
def test_texts_come_back(graph: Lines) -> None:
    assert parse_graph(graph_text(graph)) == graph


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("x = input()\ny = dense x", r"line 2: 'y = dense x' is no layer"),
        ("x = input()\ny = dense(z)", r"line 2: there is no layer 'z' before it"),
        ("x = input()\nx = dense(x)", "line 2: there is a layer 'x' already"),
        ("x = input()\ny = dense(1.5)", r"line 2: dense reads a layer, which comes first"),
        ("x = input()\ny = dense(x, 1, depth=3)", "line 2: dense takes variance, family"),
        ("x = input()\ny = dense(x, -1)", r"line 2.*variance of the weights is -1"),
        ("x = input()\ny = dense(x, 'a')", "line 2"),
        ("x = input()\ny = dense(x, 1/0)", "line 2: 1 / 0 is no number"),
        ("x = input()\ny = tanhh(x)", "line 2.*tanhh"),
        ("x = input()\ny = 2*x + tanh(x)", "line 2: a sum is of named layers"),
        ("x = input()\ny = __import__('os')(x)", "line 2"),
        ("y = dense(y)", "line 1: there is no layer 'y'"),
        ("", "the text holds no layers"),
        ("x = input()\ny = dens(x)", "line 2.*'dens'.*dense"),
    ],
)
def test_lines_that_are_none_are_told_by_number(lines: str, said: str) -> None:
    with pytest.raises(TpcalcError, match=said):
        parse_graph(lines)


def test_an_activation_without_a_name_has_no_text() -> None:
    with pytest.raises(StudyError, match="has no name in the catalogue"):
        graph_text(MacroLayers(3, "tanh", debias=True, shift=0.2).network())


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            lambda: Design("relu", norm="instance"),  # type: ignore[arg-type]
            "normalisation is 'instance'",
        ),
        (lambda: Design("relu", bias="span"), "in the span of weights of full rank"),
        (lambda: Design("relu", biases=-1), "variance of the biases is -1"),
        (lambda: mlp(0, Design("relu")), "depth is 0; it must be at least 1"),
    ],
)
def test_designs_that_make_no_sense(made: object, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        made()  # type: ignore[operator]
