"""What layers do: one file for each operation, with its row of the mean-field table."""

from tpcalc.meanfield.operations.activation import Activation as Activation
from tpcalc.meanfield.operations.addition import Addition as Addition
from tpcalc.meanfield.operations.batch_norm import BatchNorm as BatchNorm
from tpcalc.meanfield.operations.bias import Bias as Bias
from tpcalc.meanfield.operations.dense import Dense as Dense
from tpcalc.meanfield.operations.gain import Gain as Gain
from tpcalc.meanfield.operations.input import Input as Input
from tpcalc.meanfield.operations.layer_norm import LayerNorm as LayerNorm
from tpcalc.meanfield.operations.operation import Number as Number
from tpcalc.meanfield.operations.operation import Operation as Operation
from tpcalc.meanfield.operations.product import Product as Product
from tpcalc.meanfield.operations.shared_bias import SharedBias as SharedBias
