"""Starts model servers on this machine.

``programs``: what can be started, by which command; ``server_process``: start and stop, each server
below a ``guard``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
