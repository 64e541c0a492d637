"""Scenes that are rendered from seeds, with exact boxes: a benchmark that needs no download.

``drawing`` → ``scene`` → ``questions``, ``pairs`` → the tables.
"""
