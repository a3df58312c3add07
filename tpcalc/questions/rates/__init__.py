"""Learning rates as unknown powers of the width and the depth, solved so that layers learn."""
