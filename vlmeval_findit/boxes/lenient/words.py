"""What words say: a box, another thing, a label, a frame.

Words are compared as words, never as joined letters: ``boxy white`` names no order, ``bbox_2d``
and ``BoundingBox`` name a box.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from ...core import late_pattern
from .languages import are_signs, pattern_of, words_for
from .number_names import joined_names
from .remembered import Remembered

_JOINT = late_pattern(r"(?<=[a-z])(?=[A-Z])|(?<=[^\W\d_][^\W\d_])(?=\d)|(?<=\d)(?=[A-Z][a-z])")
_WORD = late_pattern(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """Return the words of a text or a key, in lower case.

    >>> words_of("BoundingBox"), words_of("bbox_2d"), words_of("norm1000"), words_of("x1, y1")
    (['bounding', 'box'], ['bbox', '2d'], ['norm', '1000'], ['x1', 'y1'])
    """
    return _WORD.findall(_JOINT.sub(" ", text).lower())


def ends_with_one_of(key: str, names: tuple[str, ...]) -> bool:
    """Return whether a key ends with one of some names, of which signs may stand within a word.

    >>> [ends_with_one_of(key, ("unit", "単位")) for key in ("boxUnit", "座標単位", "community")]
    [True, True, False]
    """
    words = f" {' '.join(words_of(key))}"
    signs = tuple(filter(are_signs, names))
    return words.endswith(tuple(f" {name}" for name in names)) or key.lower().endswith(signs)


@Remembered
def plain(key: str) -> str:
    """Return a key without case and punctuation: keys are equal, whatever the style.

    >>> plain("frame_idx"), plain("Frame-Idx")
    ('frameidx', 'frameidx')
    """
    return "".join(_WORD.findall(key.lower()))


# --- boxes ----------------------------------------------------------------------------------------

# Words that say that numbers are a box
_FOREIGN = words_for("box") + words_for("coordinates")
BOXES = frozenset(
    """
    bounding box boxes bbox bboxes bbx bndbox boundingbox boundingboxes rect rects rectangle
    rectangles coordinate coordinates coord coords location locations loc position positions region
    regions det roi aabb bb hbb bounds bound quad corners
    """.split()
).union(word for word in _FOREIGN if not are_signs(word))
# The same in scripts without blanks between words, and names of several words
_BOXES_IN_SIGNS = late_pattern(
    pattern_of([word for word in _FOREIGN if are_signs(word) or " " in word])
)
# With one of these, a key or tag is of another thing than the object that was asked about
_OF_OTHERS = frozenset(
    """
    image img picture photo canvas screen page crop cropped previous prev old former earlier 3d view
    viewport
    rejected anchor reference padding margin start end
    confidence confidences score scores prob probs id ids color colors colour colours count counts
    area areas size sizes format mode iou ious
    """.split()
)
POINTS = frozenset("point points click xy keypoint center centre middle".split())
_KEY_OF_POINTS = POINTS - {"keypoint"}


def says_box(text: str) -> bool:
    """Return whether words say that numbers are a box: by name, or by an order such as xyxy.

    >>> says_box("Its bounding box is"), says_box("The boxy van has the sizes")
    (True, False)
    """
    words = words_of(text)
    if not BOXES.isdisjoint(words):
        return True
    if not text.isascii() and _BOXES_IN_SIGNS.search(text):
        return True
    return any(len(joined_names(word)) >= 4 for word in words)


class KeySays(Enum):
    """What a key says of what stands under it."""

    BOX = "a box, or a point, of the object"
    OTHER = "another thing"
    NOTHING = "nothing"


@Remembered
def what_key_says(key: str, of_points: bool = False) -> KeySays:
    """Return what a key says of what stands under it.

    >>> [what_key_says(key).name for key in ("bbox_2d", "image_bbox", "padding", "dog")]
    ['BOX', 'OTHER', 'OTHER', 'NOTHING']
    """
    key = key.split("(")[0] or key  # Brackets say how, not what: "bbox (centre, size)"
    if is_of_others(key):
        return KeySays.OTHER
    if says_box(key) or (of_points and not _KEY_OF_POINTS.isdisjoint(words_of(key))):
        return KeySays.BOX
    return KeySays.NOTHING


@Remembered
def is_of_others(text: str) -> bool:
    """Return whether words are of another thing than the object that was asked about."""
    return not _OF_OTHERS.isdisjoint(words_of(text))


@Remembered
def is_one_letter_off(key: str, asked: str) -> bool:
    """Return whether a key is the requested one with a letter too many, too few or another.

    >>> is_one_letter_off("coordinatesx", "coordinates"), is_one_letter_off("bvox", "bbox")
    (True, True)
    >>> is_one_letter_off("label", "bbox")
    False
    """
    if key[:1] != asked[:1] or min(len(key), len(asked)) < 4:  # "rbox" is a rotated one
        return False
    same = 0
    while same < min(len(key), len(asked)) and key[same] == asked[same]:
        same += 1
    rest = key[same:]
    of_asked = asked[same:]
    return rest[1:] == of_asked or rest == of_asked[1:] or rest[1:] == of_asked[1:]


# --- labels ---------------------------------------------------------------------------------------

# Words in keys of labels, the likeliest first
_LABELS = tuple(
    frozenset(words.split())
    for words in (
        "label labels sublabel rótulo etiqueta 标签 標籤 ラベル",
        "class classes classname classnames category categories categoryname cls 类别 類別 类",
        "name names objectname 名称 名稱",
        "caption phrase ref mention title tag 描述",
        "object objects entity item target 物体 目标",
        "description desc",
        "text content transcription",
        "type kind",
    )
)
_NUMBERED = frozenset(("id", "ids", "index", "idx", "number", "score", "scores", "confidence"))
# Keys around lists of objects; none is a label
CONTAINERS = frozenset(
    """
    objects detections detection detectedobjects results result predictions annotations annotation
    answer answers output response items instances data object found list arguments parameters
    input function boxes frames
    """.split()
)


@Remembered
def rank_of_label(key: str) -> int | None:
    """Return how likely a key is that of a label, 0 first; None if it names none.

    >>> rank_of_label("class_label"), rank_of_label("labelName"), rank_of_label("class_id")
    (0, 0, None)
    """
    words = set(words_of(key))
    if not _NUMBERED.isdisjoint(words):
        return None
    # "coords_type" is no type of thing.
    if (
        len(words) > 1
        and not words.isdisjoint(("type", "kind", "text", "mode"))
        and "object" not in words
    ):
        words -= {"type", "kind"}
    ranks = (rank for rank, names in enumerate(_LABELS) if not names.isdisjoint(words))
    return next(ranks, None)


def is_numbered(key: str) -> bool:
    """Return whether a key is of a number, as an id or a score."""
    return not _NUMBERED.isdisjoint(words_of(key))


def asked_label(text: str, asked: Sequence[str]) -> str:
    """Return the only label asked for that is among the words of a text; "" if none or several.

    >>> asked_label("a cardboard box 12:", ["box", "cardboard box 12"])
    'cardboard box 12'
    """
    words = f" {' '.join(words_of(text))} "
    found: list[str] = []
    for label in sorted(asked, key=len, reverse=True):
        pattern = f" {' '.join(words_of(label))} "
        if len(pattern) > 2 and pattern in words:
            found.append(label)
            words = words.replace(pattern, " | ")
    return found[0] if len(found) == 1 else ""


def is_asked(key: str, asked: Sequence[str]) -> bool:
    """Return whether a key is one of the labels asked for.

    >>> is_asked("Traffic_Light", ["traffic light"]), is_asked("values", ["car"])
    (True, False)
    """
    words = words_of(key)
    return bool(words) and any(words == words_of(label) for label in asked)


# --- frames ---------------------------------------------------------------------------------------

FRAMES = ("frame", "frameindex", "frameid", "framenumber", "frameno", "image", "imageindex")


def first_of(keys: Iterable[str], words: Sequence[str]) -> str | None:
    """Return the key that is the earliest of some words; of equal keys the first."""
    by_word: dict[str, str] = {}
    for key in keys:
        by_word.setdefault(plain(key), key)
    return next((by_word[word] for word in words if word in by_word), None)
