"""The engine: straight-line scripts run on sampled coordinates; a random matrix is never formed."""
