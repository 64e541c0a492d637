"""The one place that touches VLMEvalKit: datasets and models as the host wants them.

:func:`register` makes them known to a host that is imported by it; the start-up hook
(:mod:`.._autoload`) calls its parts when the host's modules are imported by somebody else.
"""

# First: whoever imports one of our modules here imports the host before it.  They subclass the
# host's, and the start-up hook asks for them as soon as it is loaded.
import vlmeval.dataset  # noqa: F401

from .registration import asks_us as asks_us
from .registration import register as register
from .registration import register_datasets as register_datasets
from .registration import register_inference as register_inference
from .registration import register_models as register_models
