"""Signal propagation: layers, maps, spectra, the nonlinearity coefficient of a network.

``operations``, ``graph``, ``recursion``: layers, and the mean-field state carried through them.
``layers``, ``reading``: programs of networks as such layers; ``notation``: layers line by line.
``activations``, ``maps``: what one activation and one layer do: fixed points, edge of chaos.
``spectra``: squared singular values of weights and Jacobians.
``nonlinearity``, ``answer``: the nonlinearity coefficient; that of any function, and of networks of
finite width, has a room of its own, ``tpcalc.nonlinearity``.
"""
