"""Who answers: a row a model, on this machine or over HTTP.

:mod:`.model_table` has one row per model. A model gets a message and gives a reply with its record;
who runs it is not known here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
