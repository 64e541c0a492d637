"""What says that numbers in words are a box, or that they are none.

A box is only where something says that it is one: a word, a tag, a place, the label asked for
in front of brackets, or the whole answer being nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum

from ...core import late_pattern
from .conventions import names_a_box
from .words import BOXES, POINTS, is_of_others, says_box, words_of

WITHIN = 200  # Characters before a box in which something may say what it is


class Says(Enum):
    """What the words before numbers say of them."""

    BOX = "a box"
    NO_BOX = "another thing, an example, or a box that is denied"
    NOTHING = "nothing"


_SENTENCE_END = late_pattern(r"[.!?。；;]\s++|(?<=[。！？])")
_BULLET = late_pattern(r"^\s*+(?:\d{1,3}[.)]|[-*•·+#]+)\s*+")
_TAG = late_pattern(r"<[|/]{0,2}[A-Za-z][^<>]{0,200}>\s*+\Z")
_TAG_NAME = late_pattern(r"[A-Za-z]\w*")
_CLOSING = late_pattern(r"\A\s*+[\])}>\"']*+\s*+(?:</[\w-]++>|<\|/?\w++\|>|<\|[\w/]+_end\|>)?")
# Tags that hold anything
_NEUTRAL_TAGS = frozenset(
    "answer tool_call response final output p b i strong em li td th tr code pre br od div span "
    "ref grounding object h1 h2 h3".split()
)
# Words behind which stands a place
_PLACES = frozenset("at located positioned situated spans covers occupies encloses 在 位于".split())
_ENDS_WITH_PLACE = late_pattern(r"(?:在|位于)\s*[:：]?\s*\Z")
_SPANS = late_pattern(
    r"\b(?:spans?|spanning|extends?|extending|stretches|occupies|covers|located|lies)\b"
    r"[^.\d]{0,30}\b(?:from|between)\W*\Z",
    re.IGNORECASE,
)
_ABOUT = frozenset("about approximately around roughly approx ca".split())
_ANSWERS = frozenset(
    """
    answer answers result results output final here response prediction detection correction
    corrected revised updated
    """.split()
)
_HERE_IT_IS = late_pattern(r"\b(?:here (?:it is|they are)|as follows)\W*\Z", re.IGNORECASE)
_OPENING = " ([{`*\"'「"
_JOINING = frozenset(
    """
    a and or the to from is are it so thus therefore json text python rather actually maybe perhaps
    probably about approximately around roughly
    """.split()
)
# A place among the arguments of a method, as cv2.rectangle(image, (1, 2)
_IN_CALL = late_pattern(
    r"\b[a-z]\w*\.(?:rectangle|crop|line|polygon|resize|draw\w*)\([(\[]*\Z"
    r"|\b[a-z]\w*\.\w+\([^()=]*,\s*[(\[]*\Z"
)
_DENIALS = frozenset("not nicht isn aren wasn no pas 不是".split())
_EXAMPLES = late_pattern(
    r"\b(?:for (?:example|instance)|e\.g\.?|example|placeholder"
    r"|examples?[ -](?:format|output|answer|reply|response)"
    r"|would (?:answer|reply|respond)(?: something)? like)\W*\Z|例如\W*\Z",
    re.IGNORECASE,
)
_VALUES = (
    r"(?:scores?|confidences?|probabilit\w+|ids?|areas?|sizes?|colou?rs?|dimensions?|widths?"
    r"|heights?|counts?|weights?|ious?|indices|numbers?)"
)
# Values of boxes: "the scores of the boxes are", "box ids:"
_OF_VALUES = late_pattern(
    rf"\b{_VALUES}(?:\s(?:of|for)\s[^\d,:;(]{{1,60}})?\s?(?:is|are|were)?\s?[:=]?\s?\Z",
    re.IGNORECASE,
)
_SHARES_OF = late_pattern(r"\b(?:of|to|by)\b[^,.:;]{0,25}\Z")
_NO_BOX = late_pattern(
    r"\b(?:no|without) (?:\w+ ){0,2}(?:box|bbox)\b|\bformat is\W*\Z"
    r"|\b(?:gps|latitude|longitude|lat|long)\b",
    re.IGNORECASE,
)
_HYPOTHETICAL = late_pattern(r"\bif\b[^.!?\n]*\bwould\b", re.IGNORECASE)
_CORRECTION = late_pattern(
    r"\b(?:no,|rather|wait|correction|corrected|actually|sorry|revised|final(?:ly)?|i meant?)\b"
    r"|更正|不对|<tool_response",
    re.IGNORECASE,
)
_IMAGE = r"(?:whole |entire |full )?(?:image|picture|photo|canvas|screen|page)"
_OF_IMAGE = late_pattern(
    rf"\b{_IMAGE}(?:'s)?[ _]"
    r"(?:itself|bounds?|border|frame|b?box|bounding[ _]box|coordinates|spans)\b"
    rf"|(?<!of )(?<!to )(?<!by )(?<!of the )(?<!to the )(?<!by the )\b{_IMAGE} size\b"
    rf"|\b(?:box|bounds|coordinates|corners?) of the {_IMAGE}\W*\w*\W*\Z|\bview ?(?:box|port)\b",
    re.IGNORECASE,
)


def clause_before(text: str, start: int, last_end: int = 0) -> str:
    """Return the words that may say what stands at ``start``: its clause, else the line above.

    >>> clause_before("I looked. Its box is: [1", 22), clause_before("Boxes:\\n1. (1", 10)
    ('Its box is: ', 'Boxes:')
    """
    piece = text[max(last_end, start - WITHIN) : start]
    if last_end > start - WITHIN:
        piece = _CLOSING.sub("", piece, count=1)
    for line in reversed(piece.split("\n")):
        words = _BULLET.sub("", line)
        if any(map(str.isalpha, words)):
            sentences = [each for each in _SENTENCE_END.split(words) if each.strip()]
            return sentences[-1] if sentences else ""
    return ""


def what_says(
    clause: str, asked: Sequence[str] = (), in_brackets: bool = True, of_points: bool = False
) -> Says:
    """Return what a clause says of the numbers behind it.

    Args:
        clause: of :func:`clause_before`.
        asked: the labels asked for.
        in_brackets: whether the numbers stand in brackets, as requested.
        of_points: whether points are asked for.

    >>> what_says("The dog is located at "), what_says("Its bounding box is not ")
    (<Says.BOX: 'a box'>, <Says.NO_BOX: 'another thing, an example, or a box that is denied'>)
    >>> what_says("The display shows "), what_says("dog: ", ["dog"])
    (<Says.NOTHING: 'nothing'>, <Says.BOX: 'a box'>)
    """
    words = words_of(clause)
    if not words:
        return Says.NOTHING
    if is_denied(clause) or _OF_IMAGE.search(clause):
        return Says.NO_BOX
    if _IN_CALL.search(clause):
        return Says.NO_BOX
    clause = clause.rstrip(_OPENING)
    tag = _TAG.search(clause)
    if tag is not None and not tag[0].startswith("</"):
        return _of_tag(tag[0], asked, of_points)
    values = _OF_VALUES.search(clause)
    # "The box in percent of width and height is": these say what its numbers are shares of.
    if values is not None and not _SHARES_OF.search(clause, 0, values.start()):
        return Says.BOX if names_a_box(clause, of_points) else Says.NO_BOX
    if of_points and not POINTS.isdisjoint(words):
        return Says.BOX
    if says_box(clause) or names_a_box(clause, of_points):
        return Says.BOX
    if _nearest(words) in _PLACES or _SPANS.search(clause) or _ENDS_WITH_PLACE.search(clause):
        return Says.BOX
    if in_brackets and _HERE_IT_IS.search(clause):
        return Says.BOX
    is_set_off = in_brackets or clause.rstrip()[-1:] in ",:|=;"
    if is_set_off and ends_with_label(words, asked):
        return Says.BOX
    if in_brackets and not _ANSWERS.isdisjoint(words[-2:]):
        return Says.BOX
    return Says.NOTHING


def _nearest(words: Sequence[str]) -> str:
    """Return the last word but "about" and the like; "" if there is none."""
    return next((word for word in reversed(words) if word not in _ABOUT), "")


def _of_tag(tag: str, asked: Sequence[str], of_points: bool) -> Says:
    name = _TAG_NAME.search(tag)
    words = words_of(name[0]) if name else []
    if of_points and not POINTS.isdisjoint(words):
        return Says.BOX
    if is_of_others(" ".join(words)) and "box" not in words:
        return Says.NO_BOX
    if says_box(tag) or ends_with_label(words, asked):
        return Says.BOX
    is_neutral = name is not None and name[0].lower() in _NEUTRAL_TAGS
    return Says.NOTHING if is_neutral else Says.NO_BOX


def is_denied(clause: str) -> bool:
    """Return whether a clause denies a box, supposes it or gives an example.

    >>> is_denied("The bounding box is not "), is_denied("The dog that is not black is at ")
    (True, False)
    """
    words = words_of(clause)
    near = words[-2:]
    return (
        not _DENIALS.isdisjoint(near)
        or _EXAMPLES.search(clause) is not None
        or _NO_BOX.search(clause) is not None
        or _HYPOTHETICAL.search(clause) is not None
    )


def is_said_to_be_absent(text: str, asked: Sequence[str]) -> bool:
    """Return whether a text says that the only thing asked for is not there.

    >>> is_said_to_be_absent("There is no dog, only a cat at (1, 2)", ["dog"])
    True
    """
    if len(asked) != 1 or not _ABSENT.search(text):
        return False
    # To compile it takes longer than all else that is read of a reply.
    name = r"\W+".join(map(re.escape, words_of(asked[0])))
    return bool(name) and re.search(rf"{_NONE}\W+{name}\b", text, re.IGNORECASE) is not None


_NONE = (
    r"\b(?:no|not see|not find|cannot see|cannot find|can't see|can't find|don't see|couldn't find"
    r"|isn't|without)(?:\W+(?:a|an|any|the|clear|visible))?"
)
_ABSENT = late_pattern(rf"{_NONE}\W", re.IGNORECASE)


_WITHDRAWN = late_pattern(
    r"\b(?:ignore|disregard|forget|scratch|strike) (?:that|this|it|the (?:above|previous|box))\b",
    re.IGNORECASE,
)


def is_withdrawn(behind: str) -> bool:
    """Return whether the words behind the last box withdraw it.

    >>> is_withdrawn(" Sorry, scratch that."), is_withdrawn(" I ignored the shadow.")
    (True, False)
    """
    return _WITHDRAWN.search(behind[:WITHIN]) is not None


_MARGINS = frozenset(("padding", "paddings", "margin", "margins", "inset", "insets"))


def is_of_margins(clause: str) -> bool:
    """Return whether four sides behind a clause are the widths of margins.

    >>> is_of_margins("letterbox padding ("), is_of_margins("The box without its margin is at ")
    (True, False)
    """
    return not _MARGINS.isdisjoint(words_of(clause)[-1:])


def is_corrected(between: str) -> bool:
    """Return whether words between two boxes say that the second replaces the first.

    >>> is_corrected(". No, rather: "), is_corrected(" and ")
    (True, False)
    """
    return _CORRECTION.search(between[-WITHIN:]) is not None


def ends_with_label(words: Sequence[str], asked: Iterable[str]) -> bool:
    """Return whether words are one of the labels asked for, behind an article at most.

    >>> ends_with_label(["the", "dogs"], ["dog"])
    True
    """
    last = [word.removesuffix("s") for word in words]
    for label in asked:
        wanted = [word.removesuffix("s") for word in words_of(label)]
        first = len(last) - len(wanted)
        if wanted and last[first:] == wanted:
            return _BEFORE_LABELS.issuperset(words[: max(0, first)])
    return False


_BEFORE_LABELS = frozenset(
    """
    a an the this that and also one two three four five six several object label class target
    there is are i can see found here following visible detected objects
    """.split()
)
_NO_WORDS = late_pattern(
    r"<[|/]{0,2}[A-Za-z][^<>]{0,200}>|<｜[^<>]{0,60}>|```\w*|\\\w+|<\|[^<>]{0,60}\|>"
)


def is_whole_answer(text: str, spans: Iterable[tuple[int, int]]) -> bool:
    """Return whether a text is nothing but what stands at some places, and marks.

    >>> is_whole_answer("(1, 2, 3, 4) and (5, 6, 7, 8).", [(0, 12), (17, 29)])
    True
    """
    end = 0
    rest: list[str] = []
    for start, stop in spans:
        rest.append(text[end:start])
        end = max(end, stop)
    rest.append(text[end:])
    words = words_of(_NO_WORDS.sub(" ", " ".join(rest)))
    allowed = _JOINING | _ANSWERS | BOXES
    return all(word in allowed or word.isdecimal() for word in words)
