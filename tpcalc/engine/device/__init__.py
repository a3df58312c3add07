"""The engine on torch tensors: the same scripts on a GPU, or wherever torch computes."""
