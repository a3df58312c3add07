"""What a user writes: programs, vectors, matrices, scalars, powers of n, activations."""

from tpcalc.dsl.elementwise import Elementwise as Elementwise
from tpcalc.dsl.elementwise import elementwise as elementwise
from tpcalc.dsl.function import function as function
from tpcalc.dsl.handles import Scalar as Scalar
from tpcalc.dsl.matrices import Matrix as Matrix
from tpcalc.dsl.powers import L as L
from tpcalc.dsl.powers import Power as Power
from tpcalc.dsl.powers import n as n
from tpcalc.dsl.powers import symbol as symbol
from tpcalc.dsl.trace import Traced as Traced
from tpcalc.dsl.trace import as_program as as_program
from tpcalc.dsl.trace import extend as extend
from tpcalc.dsl.trace import filled as filled
from tpcalc.dsl.trace import program as program
from tpcalc.dsl.tracer import Tracer as Tracer
from tpcalc.dsl.tracer import mean as mean
from tpcalc.dsl.vectors import Vector as Vector
