"""What layers do: operations, each with its row of the mean-field table."""

from tpcalc.meanfield.operations.activation import Activation as Activation
from tpcalc.meanfield.operations.norms import BatchNorm as BatchNorm
from tpcalc.meanfield.operations.norms import LayerNorm as LayerNorm
from tpcalc.meanfield.operations.operation import Addition as Addition
from tpcalc.meanfield.operations.operation import Bias as Bias
from tpcalc.meanfield.operations.operation import Dense as Dense
from tpcalc.meanfield.operations.operation import Gain as Gain
from tpcalc.meanfield.operations.operation import Input as Input
from tpcalc.meanfield.operations.operation import Number as Number
from tpcalc.meanfield.operations.operation import Operation as Operation
from tpcalc.meanfield.operations.operation import Product as Product
from tpcalc.meanfield.operations.operation import SharedBias as SharedBias
