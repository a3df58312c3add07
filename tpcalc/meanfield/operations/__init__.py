"""What layers do: one file for each operation, with its row of the mean-field table."""

from tpcalc.meanfield.operations.activation import Activation
from tpcalc.meanfield.operations.addition import Addition
from tpcalc.meanfield.operations.batch_norm import BatchNorm
from tpcalc.meanfield.operations.bias import Bias
from tpcalc.meanfield.operations.dense import Dense
from tpcalc.meanfield.operations.gain import Gain
from tpcalc.meanfield.operations.input import Input
from tpcalc.meanfield.operations.layer_norm import LayerNorm
from tpcalc.meanfield.operations.operation import Number, Operation
from tpcalc.meanfield.operations.product import Product
from tpcalc.meanfield.operations.shared_bias import SharedBias

__all__ = [
    "Activation",
    "Addition",
    "BatchNorm",
    "Bias",
    "Dense",
    "Gain",
    "Input",
    "LayerNorm",
    "Number",
    "Operation",
    "Product",
    "SharedBias",
]
