"""Reuse of activation values: tanh'(h) = 1 - tanh(h)^2 reads x = tanh(h) instead of h."""

from __future__ import annotations

from dataclasses import replace

from tpcalc.engine.instructions import Instruction, Map, Mean, Script
from tpcalc.functions import Atom, Call, Expr, Fn, Var
from tpcalc.functions.expr import substitute, walk


def share_values(script: Script) -> Script:
    """Replace an atom of a vector by the register that holds its value already.

    Derivatives of many activations are written with the activation itself; its values were computed
    in the forward pass. The vector itself is then often needed no longer.
    """
    values: dict[tuple[Atom, int], int] = {}
    out: list[Instruction] = []
    for step in script.instructions:
        if isinstance(step, Map | Mean):
            step = _shared(step, values)
            expr = step.fn.expr
            if isinstance(step, Map) and isinstance(expr, Call) and expr.arg == Var(0):
                values.setdefault((expr.atom, step.vectors[0]), step.out)
        out.append(step)
    return replace(script, instructions=tuple(out))


def _shared(step: Map | Mean, values: dict[tuple[Atom, int], int]) -> Map | Mean:
    registers = list(step.vectors)
    names: dict[Expr, Expr] = {}
    for part in walk(step.fn.expr):
        if isinstance(part, Call) and isinstance(part.arg, Var) and part not in names:
            value = values.get((part.atom, step.vectors[part.arg.index]))
            if value is not None:
                names[part] = Var(len(registers))
                registers.append(value)
    if not names:
        return step
    expr = substitute(step.fn.expr, names)
    fn, vectors, scalars = Fn(expr, len(registers), step.fn.scalars).compact()
    return replace(
        step,
        fn=fn,
        vectors=tuple(registers[i] for i in vectors),
        scalars=tuple(step.scalars[i] for i in scalars),
    )
