"""What scored runs say: errors, calibration, samples, the best format."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
