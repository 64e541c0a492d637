"""D3 self-retrieval (arXiv 2409.15125): captions that tell two similar images apart.

A model captions two images; a dual encoder then tells whether each caption is nearer to its image.
FindIt's dataset ``D3`` is D-cube.
"""

import lazy_loader

PREFIX = "SelfRetrieval"  # How the names of self-retrieval's datasets begin

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
