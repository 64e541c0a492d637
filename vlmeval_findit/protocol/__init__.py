"""What a benchmark is: variants, queries, messages, metrics, replies, their costs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
