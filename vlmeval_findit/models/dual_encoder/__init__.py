"""Dual encoders: a picture and a caption as two vectors, whose angle says how well they match.

``encoder`` says what one is, ``table`` which there are by name, ``loading`` loads any of them, and
``kept`` keeps features on disk.
"""
