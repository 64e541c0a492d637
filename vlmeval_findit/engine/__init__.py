"""One engine under runs, format search and sweeps: it loses nothing, and pays for nothing twice.

Only :mod:`..host.sweep_host` knows VLMEvalKit; nothing here imports it, nor torch.
"""
