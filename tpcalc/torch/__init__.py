"""PyTorch modules: read as networks, with their inits, and their optimizers as texts."""

from __future__ import annotations

from tpcalc.arguments import all_public as _all_public
from tpcalc.torch.groups import init_ as init_
from tpcalc.torch.groups import param_groups as param_groups
from tpcalc.torch.numbers import samples as samples
from tpcalc.torch.rules import rule as rule
from tpcalc.torch.training import network as network
from tpcalc.torch.training import training as training

__all__ = ["init_", "network", "param_groups", "rule", "samples", "training"]

_all_public(globals())
