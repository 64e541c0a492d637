"""Who answers calls and when, the journal, the files of a cell.

No finished call is lost or paid for twice. Nothing here imports torch or VLMEvalKit, which only
:mod:`..host.vlmevalkit_backends` knows.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
