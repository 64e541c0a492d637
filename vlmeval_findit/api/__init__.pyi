"""The door of the room: names, in the order in which a newcomer should meet them."""

from .reply_scores import (
    ReplyKind as ReplyKind,
    ReplyBoxes as ReplyBoxes,
    read as read,
    Score as Score,
    score as score,
)

from .inputs import (
    image_in_memory as image_in_memory,
    truth as truth,
)

from .custom_variants import (
    prompt as prompt,
)

from .open_models import (
    ModelAnswer as ModelAnswer,
    Model as Model,
    open_model as open_model,
)

from .dataframes import (
    load_runs as load_runs,
    load_scores as load_scores,
    open_runs as open_runs,
    compare as compare,
    row_of_run as row_of_run,
    query_rows as query_rows,
)

from .answer_drawing import (
    STROKES as STROKES,
    draw as draw,
    draw_answer as draw_answer,
    draw_boxes as draw_boxes,
)

from .rewards import (
    RewardMetric as RewardMetric,
    reward as reward,
)

from .trainers import (
    reward_function as reward_function,
    checkpoint_callback as checkpoint_callback,
)
