"""Sweeps and searches: models x tables x formats, in stages, on the engine.

=============  ===================================================================
``config``     what a sweep or a search is, and its YAML file, refused with reasons
``run``        a whole sweep, from its file to scores
``racing``     formats race each other
``dry_run``    what a run would do, counted
``counting``   calls counted by cell and image, not one by one
=============  ===================================================================
"""
