"""``tpcalc nlc``: the nonlinearity coefficient of a network, layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tpcalc.cli.exits import clean
from tpcalc.cli.flags import AsJson

if TYPE_CHECKING:
    from tpcalc.results.nonlinearity import Nonlinearity
    from tpcalc.signal.graph import LayerGraph
    from tpcalc.signal.measured import Sampling

__all__ = ["nlc"]

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="mlp, resnet, or a file with one layer a line: a = dense(x, 1.5).",
        show_default=False,
    ),
]
Depth = Annotated[int, typer.Option("--depth", help="Number of activations.")]
Act = Annotated[str, typer.Option("--act", metavar="NAME", help="The activation.")]
Weights = Annotated[
    float, typer.Option("--weights", metavar="S2", help="Variance of the weights times fan-in.")
]
Biases = Annotated[float, typer.Option("--biases", metavar="S2", help="Variance of the biases.")]
Norm = Annotated[
    str, typer.Option("--norm", metavar="none|layer|batch", help="Before each activation.")
]
Batch = Annotated[
    int | None,
    typer.Option("--batch", help="Inputs of a batch; infinite by default.", show_default=False),
]
Family = Annotated[
    str,
    typer.Option(
        "--family",
        metavar="NAME",
        help="Weights: gaussian, orthogonal, gaussian-gaussian or padded.",
    ),
]
Rank = Annotated[
    float | None,
    typer.Option("--rank", help="Rank over width; full by default.", show_default=False),
]
Bias = Annotated[
    str,
    typer.Option(
        "--bias",
        metavar="independent|span|shared",
        help="Biases of all coordinates, or in the span of low-rank weights.",
    ),
]
Skip = Annotated[float, typer.Option("--skip", help="Weight of the skip connections of resnet.")]
Branch = Annotated[float, typer.Option("--branch", help="Weight of the branches of resnet.")]
Square = Annotated[float, typer.Option("--q", help="Second moment of the inputs.")]
Comean = Annotated[float, typer.Option("--c", help="Second moment of two inputs.")]
Widths = Annotated[
    str,
    typer.Option(
        "--widths",
        metavar="N,N,...",
        help="Widths of networks to measure beside the limit; none by default.",
        show_default=False,
    ),
]
Seeds = Annotated[int, typer.Option("--seeds", help="Networks of each width.")]
Inputs = Annotated[int, typer.Option("--inputs", help="Random inputs of each network.")]
Seed = Annotated[int, typer.Option("--seed", help="The first seed.")]
Device = Annotated[str, typer.Option("--device", metavar="cpu|cuda|auto", help="For networks.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write a report here: .html (one page with plots) or .md.",
        show_default=False,
    ),
]


@clean
def nlc(
    model: Model,
    depth: Depth = 10,
    act: Act = "relu",
    weights: Weights = 1.0,
    biases: Biases = 0.0,
    norm: Norm = "none",
    batch: Batch = None,
    family: Family = "gaussian",
    rank: Rank = None,
    bias: Bias = "independent",
    skip: Skip = 1.0,
    branch: Branch = 1.0,
    q: Square = 1.0,
    c: Comean = 0.0,
    widths: Widths = "",
    seeds: Seeds = 4,
    inputs: Inputs = 500,
    seed: Seed = 0,
    device: Device = "cpu",
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """The nonlinearity coefficient: the limit of every layer, and networks of finite width."""
    from tpcalc.cli.places import check_place
    from tpcalc.signal.architectures import Design
    from tpcalc.signal.measured import Sampling

    if out is not None:
        check_place("--out", out, (".html", ".md"), "a report")
    word: Any = norm
    kind: Any = bias
    design = Design(act, weights, biases, word, family, rank, kind, batch)
    graph, title = _graph(model, depth, design, (q, c), (skip, branch))
    sampling = (
        Sampling(_numbers(widths), seeds, inputs, seed=seed, device=device) if widths else None
    )
    found = _computed(graph, title, sampling, seed)
    _show(found, title, out, as_json)


def _graph(
    model: str,
    depth: int,
    design: Any,
    moments: tuple[float, float],
    weights: tuple[float, float],
) -> tuple[LayerGraph, str]:
    from tpcalc.errors import UsageError
    from tpcalc.signal.architectures import mlp, resnet
    from tpcalc.signal.notation import parse_graph
    from tpcalc.signal.operations import Input

    start = Input(*moments)
    words = f"depth {depth}, {design.tau.name}"
    if design.norm != "none":
        words += f", {design.norm} norm"
    if model == "mlp":
        return mlp(depth, design, start), f"mlp, {words}"
    if model == "resnet":
        return resnet(depth, design, start, *weights), f"resnet, {words}"
    place = Path(model)
    if not place.is_file():
        raise UsageError(
            f"{model!r} is neither mlp nor resnet, nor a file.",
            hint="Write one layer a line into a file: x = input(1, 0), then a = dense(x, 1.5).",
        )
    try:
        text = place.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{model} cannot be read: {error}.") from error
    return parse_graph(text), place.name


def _numbers(text: str) -> tuple[int, ...]:
    from tpcalc.errors import UsageError

    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(
            f"--widths: {text!r} is no list of whole numbers.", hint="Write 64,256,1024."
        ) from None


def _computed(graph: LayerGraph, title: str, sampling: Sampling | None, seed: int) -> Nonlinearity:
    from tpcalc.cli.progress import progress_bar
    from tpcalc.signal.answer import nonlinearity

    with progress_bar("networks") as progress:
        return nonlinearity(graph, title, sampling, seed, progress)


def _show(found: Nonlinearity, title: str, out: Path | None, as_json: bool) -> None:
    from tpcalc.cli import payload
    from tpcalc.cli.show import put, put_table

    if out is not None:
        from tpcalc.report.page import write
        from tpcalc.report.record import ReportInput

        heading = title[0].upper() + title[1:]
        write(ReportInput(heading, nonlinearity=found, program_text=found.text), out)
    if as_json:
        made = payload.provenance(found.provenance)
        put(payload.document("nlc", {"model": found.model}, payload.record(found), made))
        return
    from tpcalc.report.terminal import nonlinearity_group

    put_table(nonlinearity_group(found), title)
    if out is not None:
        put(str(out))
