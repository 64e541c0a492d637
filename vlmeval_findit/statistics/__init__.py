"""Influences, intervals and tests: arrays in, numbers out.

Also average precision, the reliability of confidences and their best threshold.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
