"""Datasets of one's own: annotations of common formats in, boxes as COCO results out.

``annotations`` is what formats of boxes are read into; ``coco_in``, ``yolo``, ``voc`` and
``box_list`` read them.  ``asked`` is what everything is read into, one record a query; ``jsonl``
reads such queries themselves, a line each.  ``checks`` says what can be used,
``pictures`` (with ``exif``) brings boxes to the pixels of stored pictures, ``build`` writes the
tables.
"""
