"""How nonlinear a function is under its inputs: formulas, code and data.

``tensors``: functions of torch tensors, and networks layer by layer.
"""
