"""The canonical text of a program: one line for each dimension class, group, node and output.

::

    tpcalc program 1
    dim n 1
    group x on n mean 0 cov 1
    %0 = vector x 0
    %1 = matrix W n n gaussian
    %2 = matmul %1 %0
    %3 = scale %2 n^(-1/2) L^(0)
    %4 = nonlin {tanh(x0)} (%3)
    %5 = moment {x0**2} (%4)
    output "second moment" %5

``parse`` reads it back exactly. Source lines (``Program.where``) are not printed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tpcalc.errors import ProgramError
from tpcalc.functions import Atom, Call, Fn
from tpcalc.functions.expr import walk
from tpcalc.functions.numbers import Number, number_text
from tpcalc.program.nodes import (
    Dim,
    Group,
    InputMatrix,
    InputScalar,
    InputVector,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    OuterNonlin,
    Ref,
    ScalarFn,
    Scale,
)
from tpcalc.program.rules import Rules, interpret

if TYPE_CHECKING:
    from tpcalc.program.program import Program

__all__ = ["HEADER", "SCHEMA", "TEXT_RULES", "FunctionNames", "to_text"]

SCHEMA = 1
HEADER = "tpcalc program"

# A name of these letters stands for itself; any other is quoted as in JSON.
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*(\[[A-Za-z0-9_.,-]*\])?")


def to_text(program: Program) -> str:
    """The canonical text of a program.

    Args:
        program: The program.

    Returns:
        Lines that end in a newline; equal programs with the same numbers print the same.

    Raises:
        ProgramError: Two different functions have one name, so the text could not be read back.

    Example:
        >>> from tpcalc.program.program import Builder
        >>> print(to_text(Builder().finish()), end="")
        tpcalc program 1
        dim n 1
    """
    lines = [f"{HEADER} {SCHEMA}"]
    lines.extend(_dim(dim) for dim in program.dims)
    lines.extend(_group(group) for group in program.groups)
    nodes = interpret(program, TEXT_RULES, FunctionNames())
    lines.extend(f"%{ref} = {node}" for ref, node in enumerate(nodes))
    lines.extend(f"output {_name(name)} %{ref}" for name, ref in program.outputs)
    return "\n".join(lines) + "\n"


class FunctionNames:
    """Checks, while a program is written, that a name stands for one function."""

    def __init__(self) -> None:
        self._atoms: dict[str, Atom] = {}
        self._seen: dict[int, Fn] = {}  # the functions are kept, so that their ids stay theirs

    def text(self, fn: Fn) -> str:
        """The text of a function.

        Raises:
            ProgramError: An atom in it has the name of another one.
        """
        if id(fn) not in self._seen:
            self._seen[id(fn)] = fn
            for part in walk(fn.expr):
                if isinstance(part, Call):
                    self._check(part.atom)
        return fn.text

    def _check(self, atom: Atom) -> None:
        if self._atoms.setdefault(atom.text, atom) != atom:
            raise ProgramError(
                f"two different functions are called {atom.text!r}; the text of the program could "
                "not tell them apart.",
                hint="Give one of them another name.",
            )


def _name(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)


def _dim(dim: Dim) -> str:
    return f"dim {_name(dim.name)} {number_text(dim.ratio)}"


def _group(group: Group) -> str:
    line = f"group {_name(group.name)} on {_name(group.dim)} mean {_numbers(group.mean)}"
    if group.cov is None:
        return line
    return f"{line} cov {'; '.join(_numbers(row) for row in group.cov)}"


def _numbers(values: Iterable[Number]) -> str:
    return ", ".join(number_text(value) for value in values)


def _refs(refs: Iterable[Ref]) -> str:
    return ", ".join(f"%{ref}" for ref in refs)


def _arguments(vectors: tuple[Ref, ...], scalars: tuple[Ref, ...]) -> str:
    return f"({_refs(vectors)}; {_refs(scalars)})" if scalars else f"({_refs(vectors)})"


def _input_vector(node: InputVector, ref: Ref, values: list[str], names: FunctionNames) -> str:
    return f"vector {_name(node.group)} {node.index}"


def _input_matrix(node: InputMatrix, ref: Ref, values: list[str], names: FunctionNames) -> str:
    return f"matrix {_name(node.name)} {_name(node.rows)} {_name(node.cols)} {node.law}"


def _input_scalar(node: InputScalar, ref: Ref, values: list[str], names: FunctionNames) -> str:
    return f"scalar {_name(node.name)} {number_text(node.value)} std {number_text(node.std)}"


def _matmul(node: MatMul, ref: Ref, values: list[str], names: FunctionNames) -> str:
    return f"matmul %{node.matrix}{'.T' if node.transpose else ''} %{node.vector}"


def _nonlin(node: Nonlin, ref: Ref, values: list[str], names: FunctionNames) -> str:
    return f"nonlin {{{names.text(node.fn)}}} {_arguments(node.vectors, node.scalars)}"


def _lincomb(node: LinComb, ref: Ref, values: list[str], names: FunctionNames) -> str:
    terms = [
        f"{number_text(number)}*{'' if scalar is None else f'%{scalar}*'}%{vector}"
        for number, scalar, vector in zip(node.numbers, node.scalars, node.vectors, strict=True)
    ]
    return f"lincomb {' + '.join(terms)}"


def _moment(node: Moment, ref: Ref, values: list[str], names: FunctionNames) -> str:
    return f"moment {{{names.text(node.fn)}}} {_arguments(node.vectors, node.scalars)}"


def _outer(node: OuterNonlin, ref: Ref, values: list[str], names: FunctionNames) -> str:
    arguments = "; ".join(_refs(refs) for refs in (node.rows, node.cols, node.scalars))
    return f"outer {{{names.text(node.fn)}}} ({arguments}) %{node.vector}"


def _scalar_fn(node: ScalarFn, ref: Ref, values: list[str], names: FunctionNames) -> str:
    return f"scalarfn {{{names.text(node.fn)}}} ({_refs(node.scalars)})"


def _scale(node: Scale, ref: Ref, values: list[str], names: FunctionNames) -> str:
    return f"scale %{node.of} n^({node.n_power}) L^({node.depth_power})"


TEXT_RULES: Rules[str, FunctionNames] = Rules(
    "text",
    {
        InputVector: _input_vector,
        InputMatrix: _input_matrix,
        InputScalar: _input_scalar,
        MatMul: _matmul,
        Nonlin: _nonlin,
        LinComb: _lincomb,
        Moment: _moment,
        OuterNonlin: _outer,
        ScalarFn: _scalar_fn,
        Scale: _scale,
    },
)
