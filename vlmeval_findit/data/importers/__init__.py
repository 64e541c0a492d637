"""Published sets in the formats in which they are published.

``importer`` says what a row is, ``table`` has the rows, ``bringing`` makes datasets of a set.  The
rest reads: ``coco_sets`` (COCO val2017, ODinW-13, RF100-VL), ``screenspot_pro``, ``refspatial``,
``groundingme`` and ``refcoco_m``, the last two by ``shards``: Parquet files with pictures in them.

A set more is one module with a ``read(folder)`` and one row in ``table``.
"""
