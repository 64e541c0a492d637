"""Scenes that are rendered from seeds, with exact boxes: a benchmark that needs no download.

``scene_drawing`` → ``scene`` → the tables, which are shipped without their images.
"""
