"""What layers do: one file for each operation, with its row of the mean-field table."""

from tpcalc.signal.operations.activation import Activation
from tpcalc.signal.operations.addition import Addition
from tpcalc.signal.operations.batch_norm import BatchNorm
from tpcalc.signal.operations.bias import Bias
from tpcalc.signal.operations.dense import Dense
from tpcalc.signal.operations.gain import Gain
from tpcalc.signal.operations.input import Input
from tpcalc.signal.operations.layer_norm import LayerNorm
from tpcalc.signal.operations.operation import Number, Operation
from tpcalc.signal.operations.product import Product
from tpcalc.signal.operations.shared_bias import SharedBias

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
