"""Scenes that are rendered from seeds, with exact boxes: a benchmark that needs no download.

``drawing`` → ``scene``, ``pairs`` → the tables, some of them shipped.
"""
