"""What a benchmark is: variants, queries, messages, metrics, how replies are read."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
