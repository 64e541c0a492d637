"""Published sets in the formats in which they are published, one reader a module.

``coco_sets`` (COCO val2017, ODinW-13, RF100-VL), ``screenspot_pro``, ``refspatial``,
``groundingme`` and ``refcoco_m``, the last two by ``shards``: Parquet files with images in them.
``importing`` makes datasets of a set.  A set more is a module with a ``read(folder)`` here, and
one row in :mod:`~..sources`.
"""
