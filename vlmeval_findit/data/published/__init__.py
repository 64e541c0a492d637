"""Published sets in the formats of their authors: COCO files, JSON lists, Parquet files.

``importing`` makes datasets of a set.  A further set needs a function that finds its parts in a
folder, and one row in :mod:`~..sources`.
"""
