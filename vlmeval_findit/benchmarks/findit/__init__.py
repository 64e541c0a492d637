"""FindIt: boxes in every format, by F1@0.5, mIoU and adherence (arXiv 2606.04282)."""

import lazy_loader

PREFIX = "FindIt_"  # How the names of FindIt's datasets begin

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
