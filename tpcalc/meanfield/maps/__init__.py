"""Length and correlation maps of one kind of layer: fixed points, phases, scales, curves."""
