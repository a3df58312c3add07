"""``at_depth``: a program or a training run of L blocks with a number in place of L."""

from __future__ import annotations

from dataclasses import replace
from typing import overload

from tpcalc import checks
from tpcalc.dsl import as_program
from tpcalc.errors import UsageError
from tpcalc.exponents import Ex, as_ex
from tpcalc.networks.deep import AtDepth
from tpcalc.networks.depth_powers import one_base
from tpcalc.passes import at_depth as passes
from tpcalc.passes.block import Block
from tpcalc.program.program import Program
from tpcalc.questions.depth.rates import generic_block
from tpcalc.training.training import Training


@overload
def at_depth(source: Program, depth: int | None = None, base: int | None = None) -> Program: ...
@overload
def at_depth(source: Training, depth: int, base: int | None = None) -> Training: ...
def at_depth(
    source: Program | Training, depth: int | None = None, base: int | None = None
) -> Program | Training:
    """A program or a run with its repeated block written out, L a number.

    Args:
        source: A program, or a training run of a network of L blocks.
        depth: The number that L stands for; of a program whose block has a number of its own None.
        base: A number of blocks at which all powers of L are 1: they are of L / base. None: that
            of the parameterization of a run (``"depth-mup:8"``), 1 otherwise.

    Returns:
        A program without repeats, with a family and an output for each repetition of what the block
        draws and names; or the run, learning rates with their powers of L included.

    Raises:
        ProgramError: L stands there and is given no number, or one below 1; a network that repeats
            no block.
        UsageError: A run whose start fades, as by weight decay, with matrices that are correlated
            along the depth.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, Table 1 and section 10.2 (base depth).

    Example:
        >>> import tpcalc as tp
        >>> data = tp.Samples(((1.0,),), ((1.0,),))
        >>> run = tp.Training(tp.ResNet("L", alpha=1), "mup", data, steps=1, lr_depth=0)
        >>> [str(mark.rate) for mark in at_depth(run, 4).network.marks]  # raw rates L^1 in blocks
        ['1', '4', '4', '4', '4', '1']
    """
    if isinstance(source, Training):
        blocks = checks.whole(
            depth, "depth", least=1, each=checks.PART, hint="It counts the blocks."
        )
        base = one_base(source.base, base, source.parameterization.text)
        generic, rates = generic_block(source, {}, blocks)
        _check_start(source, generic.block)
        powers = {rate.label: rate.raw.exact or Ex() for rate in rates}
        network = AtDepth(source.network, blocks, powers, base)
        width = replace(source.parameterization, deep=None)  # its powers of L are numbers now
        return source.replace(network=network, parameterization=width, lr_depth=None)
    count = None if depth is None else checks.whole(depth, "depth", least=1)
    base = checks.whole(1 if base is None else base, "base", least=1)
    return passes.at_depth(as_program(source), count, base)


def _check_start(run: Training, block: Block) -> None:
    """That a start which is correlated along the depth is kept: it is not trained."""
    marks = [family.mark for family in block.program.families.values() if family.mark]
    for mark in marks if block.correlated else ():
        path, plain = run.path(mark), ((as_ex(0), 1),)
        fades = path is not None and any(
            path([run.rate(mark, t) for t in range(s)]).start != plain
            for s in range(1, run.steps + 1)
        )
        kept = all(run.kept(mark, t) == as_ex(0) for t in range(run.steps + 1))
        if fades or not kept or (path is not None and mark.start != 1):
            name, law = next(iter(block.correlated.items()))
            raise UsageError(
                f"{name} is {law} along the depth, and training does not keep its start as it is: "
                "that is not written.",
                hint="Take an optimizer without decay, and mup or what keeps initial weights.",
            )
