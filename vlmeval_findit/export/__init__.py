"""Runs for the hub, trackers, FiftyOne and COCO.

What leaves a machine goes through :mod:`.private` first.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
