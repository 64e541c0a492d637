"""Datasets of one's own: annotations of common formats in, boxes as COCO results out.

``annotations`` is what all formats are read into, ``coco_in``, ``yolo``, ``voc`` and ``listing``
read them, ``pictures`` (with ``exif``) brings boxes to the pixels of stored pictures, ``build``
checks them and makes the tables, ``coco_out`` writes a run's boxes.
"""
