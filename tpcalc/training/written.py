"""A network with its parameterization written out, as a program and as a template of training."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.errors import StudyError
from tpcalc.exponents import Ex
from tpcalc.networks.network import Architecture, slots, written
from tpcalc.passes.parameterize import parameterized
from tpcalc.passes.split import split
from tpcalc.passes.starts import started_along
from tpcalc.passes.template import Template
from tpcalc.program.family import Mark
from tpcalc.program.program import Program
from tpcalc.training.parameterizations import Parameterization


def template_of(
    architecture: Architecture,
    parameterization: Parameterization,
    dimension: int,
    outputs: int,
) -> Template:
    """A network with its parameterization written out, as a template of training and kernels."""
    program = network_program(architecture, parameterization, dimension, outputs)
    return Template(split(program), slots(architecture, dimension))


def network_program(
    architecture: Architecture,
    parameterization: Parameterization,
    dimension: int,
    outputs: int,
    *,
    between: bool = False,
) -> Program:
    """A network with its parameterization written out."""
    depth = architecture.hidden
    table = parameterization.exponents(depth, 0)
    if table.mean and (len(table.mean) != depth + 1 or table.mean[0] != 0):
        raise StudyError(
            f"the means of the initial weights are {', '.join(map(str, table.mean))}; a "
            f"network of depth {depth} has {depth + 1} layers, the first one centred.",
            where=architecture.name,
            hint="Give 0 for the first layer and one mean for each layer after it.",
        )

    def power(mark: Mark) -> Ex:
        return parameterization.power(mark, table)

    def mean(mark: Mark) -> Fraction | float:
        return table.mean[mark.layer - 1] if table.mean and not mark.bias else 0

    program = parameterized(written(architecture, dimension, outputs, between=between), power, mean)
    return started_along(program, architecture.along_depth)
