"""The door of the room: names, in the order in which a newcomer should meet them."""

from .benchmark import (
    PROMPTS_NAME as PROMPTS_NAME,
    message as message,
    describe_scenes as describe_scenes,
    BASELINES as BASELINES,
    BENCHMARK as BENCHMARK,
)

from .image_pairs import (
    PairSide as PairSide,
    PerSide as PerSide,
    ImagePair as ImagePair,
    PAIR_SETS as PAIR_SETS,
    parse as parse,
    write_table as write_table,
    PAIR_COUNT as PAIR_COUNT,
)

from .caption_reading import (
    missing_reason as missing_reason,
    read_captions as read_captions,
    replies_of as replies_of,
    as_replies as as_replies,
)

from .caption_scoring import (
    ZeroLengthError as ZeroLengthError,
    similarities as similarities,
    is_right as is_right,
)

from . import (
    image_pairs as image_pairs,
)

PREFIX: str
