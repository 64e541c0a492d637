"""Boxes: representations, reading, writing, coordinate spaces, matching."""
