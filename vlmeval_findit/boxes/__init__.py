"""Boxes as a library of its own: what they mean, reading, writing, spaces, matching."""
