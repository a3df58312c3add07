"""Numbers for limits: by closed forms and quadrature, else by particles, and how sure they are."""
