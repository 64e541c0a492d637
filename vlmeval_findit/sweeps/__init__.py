"""Sweeps and format searches: models x tables x formats, in stages, on the engine."""
