"""VP-Bench (arXiv 2511.11438): questions about marks drawn into images, answered by a letter.

``stage1_release`` reads stage 1, ``stage2_…`` asks stage 2 (about a region, by a mark or in words)
with the marks that each model sees best (``mark_choices``).
"""

import lazy_loader

PREFIX = "VPBench_"  # How the names of VP-Bench's datasets begin

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
