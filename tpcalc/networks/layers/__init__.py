"""Layers to write networks with (``tp.layers``): classes that keep trained maps, and functions.

Classes take the tracer of the network first and are called in its forward pass:
``self.mix = tp.layers.Attention(t, heads=4)``, then ``self.mix(x)``. All of them are short ways to
write nodes of the language.

``dense``, ``gated``, ``low_rank``: maps, with activations, of low rank.
``norms``, ``batch_norm``, ``dropout``.
``attention``, ``convolution``, ``pooling``, ``windows``, ``recurrent``: along finite axes.
``embedding``: of tokens and positions. ``combine``: layers made of layers.
"""

from tpcalc.arguments import all_public as _all_public
from tpcalc.networks.layers.attention import Attention as Attention
from tpcalc.networks.layers.attention import attention as attention
from tpcalc.networks.layers.attention import causal_softmax as causal_softmax
from tpcalc.networks.layers.batch_norm import BatchNorm as BatchNorm
from tpcalc.networks.layers.batch_norm import batch_norm as batch_norm
from tpcalc.networks.layers.combine import parallel as parallel
from tpcalc.networks.layers.combine import residual as residual
from tpcalc.networks.layers.combine import serial as serial
from tpcalc.networks.layers.convolution import Conv as Conv
from tpcalc.networks.layers.dense import Dense as Dense
from tpcalc.networks.layers.dropout import Dropout as Dropout
from tpcalc.networks.layers.embedding import Embedding as Embedding
from tpcalc.networks.layers.embedding import Positions as Positions
from tpcalc.networks.layers.gated import GEGLU as GEGLU
from tpcalc.networks.layers.gated import GLU as GLU
from tpcalc.networks.layers.gated import SwiGLU as SwiGLU
from tpcalc.networks.layers.low_rank import LowRank as LowRank
from tpcalc.networks.layers.norms import LayerNorm as LayerNorm
from tpcalc.networks.layers.norms import RMSNorm as RMSNorm
from tpcalc.networks.layers.norms import layer_norm as layer_norm
from tpcalc.networks.layers.norms import rms_norm as rms_norm
from tpcalc.networks.layers.pooling import average_pool as average_pool
from tpcalc.networks.layers.pooling import max_pool as max_pool
from tpcalc.networks.layers.recurrent import GRU as GRU
from tpcalc.networks.layers.recurrent import LSTM as LSTM
from tpcalc.networks.layers.recurrent import recur as recur
from tpcalc.networks.layers.windows import windows as windows

__all__ = [
    "GEGLU",
    "GLU",
    "GRU",
    "LSTM",
    "Attention",
    "BatchNorm",
    "Conv",
    "Dense",
    "Dropout",
    "Embedding",
    "LayerNorm",
    "LowRank",
    "Positions",
    "RMSNorm",
    "SwiGLU",
    "attention",
    "average_pool",
    "batch_norm",
    "causal_softmax",
    "layer_norm",
    "max_pool",
    "parallel",
    "recur",
    "residual",
    "rms_norm",
    "serial",
    "windows",
]

_all_public(globals())
