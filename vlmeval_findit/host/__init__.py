"""The only room that touches VLMEvalKit.

:func:`register` makes them known to a host that is imported by it; the start-up hook
(:mod:`.._autoload`) calls its parts when other code imports VLMEvalKit.
"""

import lazy_loader

# First: VLMEvalKit must be imported before any module of this room. They subclass its classes,
# and the start-up hook asks for them as soon as it is loaded.
import vlmeval.dataset  # noqa: F401

from .model_registration import register_models as register_models
from .registration import register as register
from .registration import register_datasets as register_datasets
from .registration import register_inference as register_inference

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
