"""``probe``: the program that questions about a training run are asked of.

The network is trained on its data, and watched at one more input that is no training sample: what
moves there is learned, not memorised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tpcalc.analyses.generic import QUERY, far_query, generic
from tpcalc.catalog.architecture import checked
from tpcalc.catalog.architectures.rnn import RNN
from tpcalc.catalog.parameterizations import Parameterization
from tpcalc.catalog.training import Rate, train
from tpcalc.errors import UsageError
from tpcalc.functions import Fn, Par
from tpcalc.networks.network import Architecture
from tpcalc.program.nodes import Kind, LinComb, Nonlin
from tpcalc.program.program import Builder, Program
from tpcalc.results import Samples, checks

__all__ = ["Probe", "probe"]

DIFFERENCE = Fn(Par(0) - Par(1), 0, 2)


@dataclass(frozen=True)
class Probe:
    """A training run with the changes that decide a verdict.

    Args:
        program: Outputs ``f[t,i]``, ``h[l,t,i]``, ``x``, ``dh``, ``dx``, ``dW_x``, ``dB``, and the
            changes ``f[t,q]-f[0,q]`` and ``x[l,t,q]-x[l,0,q]`` at the query q.
        depth: Number of hidden layers L.
        steps: Number of updates T.
        query: The input q that is watched: its number after the samples of a batch.
        outputs: Number of outputs K.
    """

    program: Program
    depth: int
    steps: int
    query: int
    outputs: int

    def f(self, step: int) -> tuple[str, ...]:
        """The names of the outputs at the query.

        Args:
            step: The step t.
        """
        if self.outputs == 1:
            return (f"f[{step},{self.query}]",)
        return tuple(f"f[{step},{self.query},{k}]" for k in range(self.outputs))

    @property
    def read(self) -> str:
        """What activations read: ``"h"``, or ``"hhat"`` where preactivations are normalised."""
        return "hhat" if f"hhat[1,0,{self.query}]" in self.program.output else "h"

    def preactivations(self, step: int) -> tuple[str, ...]:
        """What the activations of the layers 1..L read at the query.

        Args:
            step: The step t.
        """
        return tuple(f"{self.read}[{k},{step},{self.query}]" for k in range(1, self.depth + 1))

    def levels(self, step: int) -> tuple[str, ...]:
        """What must not grow: what activations read, and the outputs.

        Args:
            step: The step t.
        """
        return (*self.preactivations(step), *self.f(step))

    def asked(self, step: int) -> tuple[str, ...]:
        """All that a verdict asks of a step.

        Args:
            step: The step t.
        """
        if not step:
            return self.levels(0)
        return (*self.levels(step), *self.changes(step), self.features(self.depth, step))

    def changes(self, step: int) -> tuple[str, ...]:
        """The names of the changes of the outputs since the start.

        Args:
            step: The step t, from 1.
        """
        return tuple(f"{now}-{then}" for now, then in zip(self.f(step), self.f(0), strict=True))

    def features(self, layer: int, step: int) -> str:
        """The name of the change of the features of a layer since the start.

        Args:
            layer: The layer l, from 1 to L.
            step: The step t, from 1.
        """
        return f"x[{layer},{step},{self.query}]-x[{layer},0,{self.query}]"


def probe(
    architecture: Architecture,
    parameterization: Parameterization | str,
    data: Samples | None = None,
    *,
    steps: int = 3,
    lr: Rate = Fraction(1),
    loss: str = "mse",
    batch: int = 1,
    optimizer: str = "sgd",
    query: Sequence[float] | None = None,
    watch: Sequence[str] = ("h", "x", "dh", "dx", "dW_x", "dB"),
) -> Probe:
    """Write out a training run with the changes of outputs and features.

    Args:
        architecture: The network.
        parameterization: A catalogue name or a parameterization.
        data: Training data; None: generic data.
        steps: Number of updates.
        lr: The factor of the learning rate, as in ``train``.
        loss: Catalogue name.
        batch: Samples in a step.
        optimizer: Catalogue name.
        query: The input that is watched; None: one that is no sample, whatever the number of steps.
        watch: Which vectors are outputs.

    Returns:
        The program and the names in it.

    Raises:
        StudyError: Numbers that make no sense, targets that do not fit the loss.
        UsageError: The data are no samples; a network that shares weights between layers.

    Example:
        >>> from tpcalc.catalog.architectures.mlp import MLP
        >>> found = probe(MLP(2, "relu"), "mup", steps=1)
        >>> found.changes(1), found.features(2, 1)
        (('f[1,1]-f[0,1]',), 'x[2,1,1]-x[2,0,1]')
    """
    layered(architecture)
    if data is None:
        steps = checks.whole(steps, "steps", least=0, hint="It counts updates.")
        batch = checks.whole(batch, "batch", least=1, hint="It counts the samples of a step.")
        data = generic(loss, (steps + 1) * batch)
        query = QUERY if query is None else query
    if not isinstance(data, Samples):
        raise UsageError(
            f"the data are of type {type(data).__name__}, not Samples.",
            hint="Give tp.Samples(inputs, targets), or none for generic data.",
        )
    if query is None:
        query = far_query(data)
    if "h" in watch and getattr(architecture, "norm", "none") == "layer":
        watch = (*watch, "hhat")
    program = train(
        architecture,
        parameterization,
        data,
        steps=steps,
        optimizer=optimizer,
        lr=lr,
        loss=loss,
        batch=batch,
        queries=[query],
        watch=watch,
    )
    found = Probe(program, architecture.hidden, steps, batch, data.outputs)
    pairs = []
    for step in range(1, steps + 1):
        pairs += list(zip(found.f(step), found.f(0), strict=True))
        if "x" in watch:
            pairs += [
                (f"x[{layer},{step},{batch}]", f"x[{layer},0,{batch}]")
                for layer in range(1, architecture.hidden + 1)
            ]
    return Probe(_with_changes(program, pairs), architecture.hidden, steps, batch, data.outputs)


def layered(architecture: Architecture) -> None:
    """Refuse a network whose weights belong to no one layer.

    Args:
        architecture: The network.

    Raises:
        UsageError: It is recurrent.
    """
    if isinstance(checked(architecture), RNN):
        raise UsageError(
            "an rnn has one layer of weights for all tokens; this question is about layers with "
            "weights of their own, and what their updates contribute.",
            hint="tp.orders(tp.train(network, ...)) tells how large everything is.",
        )


def _with_changes(program: Program, pairs: Sequence[tuple[str, str]]) -> Program:
    builder = Builder.copy(program)
    for now, then in pairs:
        refs = program.ref(now), program.ref(then)
        if program.types[refs[0]].kind is Kind.SCALAR:
            change = builder.add(Nonlin(DIFFERENCE, (), refs))
        else:
            change = builder.add(LinComb((Fraction(1), Fraction(-1)), (None, None), refs))
        builder.output(f"{now}-{then}", change)
    return builder.finish(keep_unused=False)
