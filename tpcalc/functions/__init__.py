"""Coordinatewise functions: expressions, atoms with declared facts, derivatives, evaluation."""

from tpcalc.functions.atoms import Atom as Atom
from tpcalc.functions.atoms import Call as Call
from tpcalc.functions.atoms import Facts as Facts
from tpcalc.functions.atoms import in_sympy as in_sympy
from tpcalc.functions.expr import Const as Const
from tpcalc.functions.expr import Expr as Expr
from tpcalc.functions.expr import Par as Par
from tpcalc.functions.expr import Var as Var
from tpcalc.functions.expr import const as const
from tpcalc.functions.fn import Fn as Fn
from tpcalc.functions.fn import derivative as derivative
