"""The door of the package: its names, in the order in which a newcomer should meet them."""

from .api import (
    read as read,
    ReplyBoxes as ReplyBoxes,
    ReplyKind as ReplyKind,
    score as score,
    Score as Score,
    truth as truth,
)
from .boxes import (
    Truth as Truth,
    Ignored as Ignored,
)
from .api import (
    prompt as prompt,
)
from .benchmarks.findit import (
    Family as Family,
)
from .api import (
    draw as draw,
    open_model as open_model,
    Model as Model,
    ModelAnswer as ModelAnswer,
    load_runs as load_runs,
    open_runs as open_runs,
    load_scores as load_scores,
    compare as compare,
    draw_answer as draw_answer,
    reward as reward,
    reward_function as reward_function,
    checkpoint_callback as checkpoint_callback,
)

__version__: str
