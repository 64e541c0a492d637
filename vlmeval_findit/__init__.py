"""Where does a multimodal model put its boxes?  Benchmarks of that on VLMEvalKit, FindIt first.

Folders are rooms.  A room imports only itself and those above it (``tests/test_rooms.py``):

===============  ================================================================================
``core``         what all share: files, locks, images, replies, identity, figures, the seams
``boxes``        boxes: what their numbers mean, reading, writing, coordinate spaces, matching
``models``       who answers: one row a model; on this machine, or over HTTP
``benchmarks``   one folder a benchmark, found by the prefix of its names
``data``         downloads, datasets of one's own, the demonstration, rendered scenes
``runs``         scoring one run, the files that it leaves, reading them back
``sweep``        the engine: cells, calls, the journal; runs, sweeps and the search on it
``leaderboard``  models x datasets, only of runs that can be compared
``report``       one page with plots and every answer on its picture
``host``         the one place that touches VLMEvalKit
``cli``          the command line
===============  ================================================================================

Importing this package costs nothing: no room is imported here.
"""

__version__ = "0.2.0"
