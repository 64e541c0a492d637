"""Scenes that are rendered from seeds, with exact boxes: a benchmark that needs no download.

``drawing`` → ``scene`` → the tables, which are shipped without their images.
"""
