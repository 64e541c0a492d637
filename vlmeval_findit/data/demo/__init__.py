"""The dataset Demo, of photographs that other packages ship.

``shipped`` has the tables, annotated by hand (each box was read off an enlarged copy and checked by
drawing it back; a hidden part of an object counts only as far as it can be seen), and
``parts.json``, what part of which photograph an image is.
"""
