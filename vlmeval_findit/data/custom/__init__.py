"""Custom datasets: annotations of common formats in, tables out.

``coco``, ``yolo``, ``voc``, ``listing`` and ``jsonl`` read (with ``text`` and ``masks``), all of
them :class:`~..samples.Samples`.  ``checks`` says what can be used, ``images`` brings boxes to the
pixels of stored images, ``build`` writes the tables.
"""
