"""Finished calls: appended, never changed, and the single source of all results.

A file of JSON lines, which ``jq`` reads.

===========  ======================================================================================
``lines``    one line of it; ``errors``: why replies cannot be kept
``index``    where the line of each call is
``packed``   the same lines compressed, when a run is complete
``reading``  how others read it while somebody writes; ``tail``: how they follow it
``lookup``   a call by its key, for whoever does not write
``writer``   the one that does
===========  ======================================================================================
"""
