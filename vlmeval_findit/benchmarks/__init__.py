"""A folder a benchmark; the prefix of a dataset's name says which."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
