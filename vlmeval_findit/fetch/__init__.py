"""Getting the data: annotations, and only those images that the queries name.

``sources`` says where everything comes from, ``plan`` what is wanted and what of it is there,
``download`` and ``archives`` bring it, ``store`` looks at every file before it counts as there,
``frames`` cuts frames out of videos.  Only ``download`` imports a network library.
"""
