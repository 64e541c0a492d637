"""Ref-L4 (arXiv 2406.16866): long referring expressions, one box each, strict IoU thresholds."""

import lazy_loader

PREFIX = "FindIt_RefL4Full_"  # How the names of Ref-L4's datasets begin

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
