"""FindIt: boxes in every format, by F1@0.5, mIoU and adherence (arXiv 2606.04282)."""

import lazy_loader

PREFIX = "FindIt_"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
