"""The questions: sizes, verdicts, rates, kernels, dependences, the depth, comparisons."""
