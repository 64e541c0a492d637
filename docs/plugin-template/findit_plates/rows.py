"""The rows that this package adds to the tables of vlmeval_findit."""

from vlmeval_findit.boxes import ReplyFormat, Space, SpaceKind
from vlmeval_findit.models import ModelRow


def _of_the_longer_side(size, space):
    """The size that the numbers refer to: the longer side is 1000, and pixels stay square."""
    width, height = size
    longer = max(width, height)
    return 1000.0 * width / longer, 1000.0 * height / longer


SPACES = [SpaceKind("longer1000", "longer1000", "1/1000 of the longer side", _of_the_longer_side)]

_YXYX = ReplyFormat(output="json", representation="yxyx", key="box_2d")

MODELS = [
    # A model behind a server: its names, the space of its replies, and how it answers where a
    # prompt names no format. A model that runs here has a LocalFamily too.
    ModelRow(
        "PlateReader",
        r"(acme/)?PlateReader(-\d+B)?",
        # A function: the space is looked for when a run begins, and not while this is imported.
        space=lambda variant: Space("longer1000"),
        schemes={("json", False): _YXYX, ("json", True): _YXYX},
    ),
]
