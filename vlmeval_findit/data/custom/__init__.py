"""Custom datasets: annotations of common formats in, tables out.

``coco``, ``yolo``, ``voc``, ``csv_file`` and ``jsonl`` read :class:`~..samples.Samples` (with
``text`` and ``masks``).  ``checks`` refuses what cannot be used, ``images`` converts boxes to the
pixels of stored images, ``build`` writes the tables.
"""
