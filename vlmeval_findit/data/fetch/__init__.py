"""Getting the data: annotations, and only those images that the queries name.

``sources`` says where everything comes from, ``annotations`` what is wanted,
``download`` and ``archives`` bring it, ``store`` looks at every file before it counts as there,
``frames`` cuts frames out of videos.  Only ``download`` imports a network library.
"""
