"""The network that a theorem is asked about, with what is derived of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tpcalc import checks
from tpcalc.errors import LimitError, ScaleError
from tpcalc.functions import Fn, Par
from tpcalc.functions.tape import evaluate
from tpcalc.networks.architectures.mlp import MLP, biased_layers
from tpcalc.networks.network import Architecture
from tpcalc.program.program import Program
from tpcalc.questions.check import width_check
from tpcalc.results import Samples, Verdict
from tpcalc.theorems.integrable.predicates.assumptions import Assumptions, assumptions
from tpcalc.training.generic import far_query, generic
from tpcalc.training.parameterizations import Exponents, Parameterization
from tpcalc.training.training import Routine, Training, as_training

ASKED = 3  # training inputs that a hypothesis is about


@dataclass(frozen=True)
class Case:
    """A network with its training routine, as theorems are asked about it."""

    run: Training  # the run; where something is derived its steps are followed
    derive: bool  # whether claims are derived from the program besides
    given: Verdict | None = None  # what ``check`` has found already

    @property
    def depth(self) -> int:
        """The number of hidden layers L."""
        return self.run.network.hidden

    @property
    def plain(self) -> bool:
        """Whether it is the fully connected network of equation (2.1), trained by plain SGD."""
        net = self.run.network
        fully_connected = isinstance(net, MLP) and net.norm == "none" and net.complete
        return fully_connected and self.run.plain

    @property
    def bias(self) -> str:
        """Which layers have a bias."""
        return self.run.network.bias if isinstance(self.run.network, MLP) else "none"

    @property
    def biased(self) -> range:
        """The layers that have a bias."""
        return biased_layers(self.bias, self.depth)

    def trained(self, steps: int, watch: Sequence[str] = ()) -> Program:
        """The program of some of its steps, with a query that is far from the data."""
        return self.on_samples.replace(steps=steps, watch=watch).program

    @property
    def on_samples(self) -> Training:
        """The run on the data or generic ones, watched at an input that is far from them."""
        samples = self.samples
        return self.run.replace(data=samples, batch=1, queries=[far_query(samples)], watch=())

    @cached_property
    def samples(self) -> Samples:
        """The data, or generic ones."""
        rows = max(self.run.steps + 1, ASKED) * self.run.batch
        return generic(self.run.loss, rows) if self.run.data is None else self.run.data

    @cached_property
    def activation(self) -> Assumptions:
        """What the theorems ask of the activation."""
        assert isinstance(self.run.network, MLP)  # theorems about others are not asked so far
        return assumptions(self.run.network.activation)

    @cached_property
    def verdict(self) -> Verdict | None:
        """What is derived from the program; None where it is not asked or there is nothing to."""
        if self.given is not None:
            return self.given
        if not self.derive:
            return None
        try:
            return self.checked()
        except (ScaleError, LimitError):
            return None

    def checked(self) -> Verdict:
        """What ``check`` finds of the network."""
        return width_check(self.run)

    @property
    def limits(self) -> bool:
        """Whether limits may be computed too, and not only exponents read off."""
        return self.derive and self.given is None and self.plain

    def exponents(self, step: int) -> Exponents:
        """The exponents of a step."""
        return self.run.parameterization.exponents(self.depth, step)

    def slope(self, output: float, step: int = 0) -> float:
        """The derivative of the loss at an output, for the first sample of a step."""
        target = self.samples.targets[step * self.run.batch % len(self.samples)][0]
        (chi,) = self.run.loss.chi([Par(0)], [Par(1)])
        return float(evaluate(Fn(chi, 0, 2), [], [output, target]))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of every answer about this network."""
        found = []
        if isinstance(self.run.network, MLP) and set(self.run.network.weight_variances) != {1}:
            found.append(
                "the initial variances of the weights are not 1, as in the statement: constant "
                "factors of the layers, which change no exponent"
            )
        rates = self.run.network.rates if isinstance(self.run.network, MLP) else ()
        if any(rate != 1 for pair in rates for rate in pair):
            found.append(
                "layers have factors of their own in front of the learning rate of the statement"
            )
        return tuple(found)


def asked(
    architecture: Architecture | Training,
    parameterization: Parameterization | str | None,
    data: Samples | None,
    settings: Routine,
    *,
    derive: bool = True,
    given: Verdict | None = None,
) -> Case:
    """The network that a theorem is asked about, its arguments checked.

    Example:
        >>> case = asked(MLP(3), "mup", None, {"steps": 2}, derive=False)
        >>> case.depth, case.verdict
        (3, None)
    """
    checks.flag(derive, "derive")
    run = as_training(architecture, parameterization, data, settings, steps=2)
    run.parameterization.layered()
    steps = run.steps if given is None else given.steps
    steps = checks.whole(steps, "steps", least=1, hint="It counts updates.")
    return Case(run if steps == run.steps else run.replace(steps=steps), derive, given)
