"""The questions: what a limit, a simulation and both together say."""
