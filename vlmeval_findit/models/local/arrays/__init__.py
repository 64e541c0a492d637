"""The small models that ship, computed by NumPy: no torch, no transformers."""
