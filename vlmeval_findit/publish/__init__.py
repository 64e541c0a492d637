"""Where results go: one exporter a target (:mod:`.targets`), over the same runs and tables.

What leaves a machine goes through :mod:`.private` first.
"""
