"""The dataset Demo, of photographs that other packages ship.

The files in ``shipped`` are written by ``training.demo``: tables, and what part of which photograph
an image is.
"""
