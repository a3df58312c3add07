"""A network of tpcalc beside a function of torch with the same draws: values, gradients, steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy_run import draw, run

import tpcalc as tp
from tpcalc.networks.network import Architecture, written
from tpcalc.networks.own import as_network
from tpcalc.passes.backward import backward
from tpcalc.program.family import Family, Mark
from tpcalc.program.nodes import Data
from tpcalc.program.program import Builder, Program
from tpcalc.training.parameterizations import lookup
from tpcalc.training.written import template_of

Twin = Callable[[Mapping[str, Any], Any], Any]
Parts = Callable[[Mapping[str, Any], Mapping[str, Any], Any], Mapping[str, Any]]
RATE = 0.5


@dataclass
class Twins:
    """The two networks.

    Args:
        source: The network of tpcalc.
        twin: The outputs as a function of the parameters by name, with finite axes before widths,
            and of an input with the axes of the network.
        dimension: The number of numbers of an input.
        outputs: The number of outputs of a readout.
        parameterization: Its name.
        width: n.
    """

    source: Any
    twin: Twin
    dimension: int
    outputs: int = 1
    parameterization: str = "ntk"
    width: int = 6

    def __post_init__(self) -> None:
        self.network: Architecture = as_network(self.source)
        self.program = written(self.network, self.dimension, self.outputs)
        found = lookup(self.parameterization)
        self.template = template_of(self.network, found, self.dimension, self.outputs)
        self.table = found.exponents(self.network.hidden, 0)

    @property
    def families(self) -> Iterator[tuple[Family, Mark]]:
        for family in self.program.families.values():
            if family.mark is not None:
                yield family, family.mark

    def power(self, mark: Mark) -> float:
        """The power of n in front of a parameter, with its sign."""
        row = self.table.bias_a if mark.bias else self.table.a
        return -float(row[mark.layer - 1].constant or 0) if mark.trained else 0.0

    def rate(self, mark: Mark) -> float:
        """The learning rate of a parameter."""
        row = self.table.bias_c if mark.bias else self.table.c
        power = -float(row[mark.layer - 1].constant or 0)
        return float(mark.rate) * RATE * self.width**power

    def array(self, family: Family, draws: Mapping[str, Any], tag: str = "") -> Any:
        """The draws of a family as one array."""
        name, sizes = f"{family.name}{tag}", [size for _, size in family.axes]
        if len(family.width) == 1:
            rows = [draws[f"{name}[{cell}]"] for cell in range(family.size)]
        elif family.axes:
            rows = [draws[replace(family, name=name).cell_name(i)] for i in range(family.size)]
        else:
            return np.array(draws[name])
        return np.array(rows).reshape(*sizes, *np.shape(rows[0]))

    def shaped(self, row: Any) -> Any:
        import torch

        sizes = tuple(self.network.axes.values())
        return torch.tensor(np.array(row, dtype=float).reshape(*sizes, -1))

    def _scaled(self, leaves: Mapping[str, Any]) -> dict[str, Any]:
        return {
            family.name: self.width ** self.power(mark) * leaves[family.name]
            for family, mark in self.families
            if family.name in leaves
        }

    def outputs_of(self, leaves: Mapping[str, Any], row: Any) -> Any:
        return self.twin(self._scaled(leaves), self.shaped(row)).reshape(-1)

    def check_gradients(self, seed: int = 0) -> None:
        """Outputs and the gradient of a combination of them by every parameter."""
        import torch

        rng = np.random.default_rng(seed)
        row, slots = rng.standard_normal(self.dimension), self.template.inputs.items()
        filled = {ref: Data(self.template.slots[k], (float(row[k]),)) for k, ref in slots}
        nodes = tuple(filled.get(ref, n) for ref, n in enumerate(self.template.bare.nodes))
        builder = Builder.copy(replace(self.template.bare, nodes=nodes, outputs=()))
        factors = rng.standard_normal(len(self.template.outputs))
        pairs = [
            (ref, builder.add(Data(f"factor{k}", (float(factors[k]),))))
            for k, ref in enumerate(self.template.outputs)
        ]
        found = backward(builder, pairs, list(self.template.parameters))
        for k, ref in enumerate(self.template.outputs):
            builder.output(f"f{k}", ref)
        for ref, items in found.matrices.items():
            for k, (left, right) in enumerate(items):
                builder.output(f"r{ref},{k}", left)
                builder.output(f"c{ref},{k}", right)
        for ref in self.template.parameters:
            if ref in found.adjoints:
                builder.output(f"d{ref}", found.adjoints[ref])
        program = builder.finish()
        draws = draw(self.template.bare, self.width, rng)
        values = run(program, self.width, draws)
        leaves = {
            family.name: torch.tensor(self.array(family, draws), requires_grad=mark.trained)
            for family, mark in self.families
        }
        f = self.outputs_of(leaves, row)
        ours = [values[f"f{k}"] for k in range(len(factors))]
        np.testing.assert_allclose(ours, f.detach().numpy(), rtol=1e-12, atol=1e-12)
        (f @ torch.tensor(factors)).backward()
        gradients = {}
        for ref in self.template.parameters:
            name = self.template.bare.nodes[ref].name  # type: ignore[union-attr]
            outers = (
                np.outer(values[f"r{ref},{k}"], values[f"c{ref},{k}"])
                for k in range(len(found.matrices.get(ref, ())))
            )
            gradients[name] = sum(outers, start=values.get(f"d{ref}", 0.0))
        self._compare(gradients, leaves)

    def _compare(self, gradients: Mapping[str, Any], leaves: Mapping[str, Any]) -> None:
        """Gradients as those of torch, cell by cell."""
        for family, mark in self.families:
            if mark.trained:
                wanted = leaves[family.name].grad.numpy()
                cells = wanted.reshape(-1, *wanted.shape[len(family.axes) :])
                for cell in range(family.size):
                    own = gradients[family.cell_name(cell) if family.axes else family.name]
                    np.testing.assert_allclose(
                        own, cells[cell], rtol=1e-12, atol=1e-12, err_msg=f"{family.name} {cell}"
                    )

    def check_training(
        self, steps: int = 2, batch: int = 2, seed: int = 0, parts: Parts | None = None
    ) -> Program:
        """Outputs of every step of the unrolled program against gradient descent of torch.

        Args:
            steps: The number of steps.
            batch: The number of samples of one.
            seed: Of draws.
            parts: Of the parameters, their last changes and an input: by the name of a map what
                its change adds to what it writes, cell by cell.
        """
        import torch

        rng = np.random.default_rng(seed)
        rows = rng.standard_normal((3, self.dimension))
        targets = rng.standard_normal((3, len(self.template.outputs)))
        data = tp.Samples(tuple(map(tuple, rows.tolist())), tuple(map(tuple, targets.tolist())))
        program = tp.train(
            self.source, self.parameterization, data, steps=steps, lr=RATE, batch=batch,
            watch=("dW_x",) if parts else (),
        )  # fmt: skip
        before: dict[str, Any] = {}
        draws = draw(program, self.width, rng)
        leaves = {
            family.name: self._start(family, mark, draws, rng)
            for family, mark in self.families
            if mark.trained
        }
        noises = [family for family, mark in self.families if not mark.trained]
        values = run(program, self.width, draws)
        for step in range(steps + 1):
            loss = torch.zeros((), dtype=torch.float64)
            for index in range(batch):
                row = (step * batch + index) % 3
                here = dict(leaves)
                for family in noises:
                    tag = f"@{step},{index}"
                    here[family.name] = torch.tensor(self.array(family, draws, tag))
                f = self.outputs_of(here, rows[row])
                several = len(f) > 1
                names = [f"f[{step},{index}{f',{k}' if several else ''}]" for k in range(len(f))]
                ours = [values[name] for name in names]
                np.testing.assert_allclose(ours, f.detach().numpy(), rtol=1e-9, atol=1e-11)
                if parts and before:
                    now = self._scaled(leaves)
                    change = {name: now[name] - old for name, old in self._scaled(before).items()}
                    for label, cells in parts(now, change, self.shaped(rows[row])).items():
                        for cell, wanted in enumerate(cells.detach().numpy()):
                            name = f"dW_x[{label},{step},{index},{cell}]"
                            np.testing.assert_allclose(values[name], wanted, 1e-8, 1e-11)
                loss = loss + ((f - torch.tensor(targets[row])) ** 2).sum() / 2 / batch
            loss.backward()
            before = {name: leaf.detach().clone() for name, leaf in leaves.items()}
            with torch.no_grad():
                for family, mark in self.families:
                    if mark.trained:
                        leaf = leaves[family.name]
                        leaf -= self.rate(mark) * leaf.grad
                        leaf.grad = None
        return program

    def _start(self, family: Family, mark: Mark, draws: Mapping[str, Any], rng: Any) -> Any:
        import torch

        if mark.at_zero:
            array = np.zeros((*(size for _, size in family.axes), self._size(family)))
        else:
            array = self.array(family, draws)
        return torch.tensor(array, requires_grad=True)

    def _size(self, family: Family) -> int:
        (dim,) = family.width
        return round(self.program.dim[dim].ratio * self.width)
