"""The start of training: sizes of gradients, first steps, and what they move."""
