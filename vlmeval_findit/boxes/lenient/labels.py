"""Labels in text: the words before or behind a box, without tags, bullets and other marks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...core import late_pattern
from .words import BOXES, plain, words_of

WITHIN = 200  # Characters before or behind a box that are searched for its label and frame

# Of grounding models: <ref>, </box>, <|ref|>, <|/det|>, <|object_ref_start|>, <OD>, <seg012>
TAG = late_pattern(r"<[|/]{0,2}[A-Za-z][\w-]{0,30}(?:\s[^<>]{0,200}+)?+[|/]{0,2}>")
# A number as a token that states no unit: <|coord_100|>
TOKEN_WITHOUT_UNIT = r"<\|(?!LOC)[A-Za-z]{1,20}_(\d{1,4})\|>"
# What lies between two things is the label of neither
_RELATION = late_pattern(r"<(pred|relation)>[^<>]{0,200}</\1>")
_NAMED_BY_TAG = late_pattern(
    r"<\|?(?:ref|p|phrase|object_ref_start|obj|label|class|category|name)\|?>([^<>]{1,200})<"
)
# <point_box mention="dog">, <box label="dog" …>, <class_Title>
_NAMED_BY_ATTRIBUTE = late_pattern(
    r"<\w[\w-]{0,30}\s(?:[^<>]{0,200}?\s)??(?:data-)?(?:mention|alt|label)\s?=\s?\"([^\"<>]{1,200})\""
    r"|<class_([\w ]{1,100})>"
)
_NAMED_BY_KEY = late_pattern(
    r"(?<!\w)(?:label|class|class_?name|category|object|name)\W{0,3}\d{0,3}[\"'*`]{0,3}\s{0,4}[:=]"
    r"[ \t]{0,4}([^\n,;:{}\[\]()|]{1,200})",
    re.IGNORECASE,
)
FRAME = late_pattern(r"frame\W{0,4}(\d{1,9})|^\s*+<?\s*+(\d{1,9})\s*+[>:.)]", re.I | re.M)

_MARKS = " \t\r\n:;,.*-–—=>#\"'`([{)]}<|•·→：；，。、「」『』“”‘’《》（）【】［］｛｝"
_BULLET = late_pattern(r"^\s*+(?:\d{1,3}[.)]|[-*•·+])\s++")

# What a strict reading took for a label and no model means as one
_LOST = late_pattern(r"[{}\[\]\"<>\n“”「」]|\*\*|^\s*+(?:\d{1,3}[.)]|[-*•])\s|^\s*+$")


def is_lost(label: str) -> bool:
    """Return whether a label holds punctuation of JSON, tags or bullets, or nothing.

    >>> is_lost('"dog"}, {"bbox_2d"'), is_lost("1. **dog**"), is_lost("traffic light")
    (True, True, False)
    """
    return _LOST.search(label) is not None or plain(label) in BOXES


def without_tags(text: str) -> str:
    """Return the words between tags, else the words without them.

    >>> without_tags("<ref>dog</ref>"), without_tags("<b> poster")
    ('dog', '<b> poster')
    """
    named = _NAMED_BY_TAG.search(text)
    if named:
        return named[1].strip()
    # A tag in the middle is part of the label.
    stripped = text.strip()
    is_enclosed = stripped.startswith("<") and stripped.endswith(">")
    if not is_enclosed:
        return stripped
    # "<Auto part>": nothing but a tag is its name.
    return TAG.sub(" ", stripped).strip() or stripped.strip("<|/> ")


# --- labels before or behind a box ----------------------------------------------------------------

_OF_CORNER = late_pattern(r"\bcorner of ([^\d,;:.()\n]{1,60}?) (?:is|at|:)", re.IGNORECASE)

# Words between a label and its box, and words before a label in a sentence
_JOINING = frozenset(
    """
    is are was at in on by from with of has have as located found positioned situated visible
    detected seen spans bounding bbox bboxes bbox2d box boxes box2d coordinate its coordinates
    coords location position region area approximately be can which that around about the a an
    within between following their points corner corners rect rectangle starting top-left
    topleft upper-left
    """.split()
)
_LEADING = frozenset(
    """
    a an the and also then there here is are another one i we can see found detected have of for
    so sure with bounding box bbox boxes bboxes coordinates location position object label class
    category it this that finally
    """.split()
)
# With one of these left, words are a sentence and no label.
_OF_SENTENCES = frozenset(
    """
    is are was were i we you it can image picture photo bounding coordinates located following
    detected shown answer
    """.split()
)
_SENTENCE_END = late_pattern(r"[.!?]\s++")
# A sentence that goes on behind a box, and what its last article belongs to
_GOES_ON = late_pattern(r"[\])>]*+ [a-z][^\n,;]*+")
_LAST_NOUN = late_pattern(r".*\b(?:an?|the|another|his|her|its|their)\s+(.+)", re.DOTALL)
_CONJUNCTION = late_pattern(r"\A(?:and|also|then)\s+(?=\S)", re.IGNORECASE)
_ARTICLE = late_pattern(r"\A(?:[Aa]n?|[Tt]he)\s+(?=[^\WA-Z])")


def is_joining(word: str) -> bool:
    """Return whether a word may stand between a label and its box, or between two boxes."""
    return word in _JOINING or word in BOXES or word in ("and", "or")


def has_words(text: str) -> bool:
    """Return whether a text between two boxes has other words than those that join them.

    >>> has_words(" and the box "), has_words(", a cat: ")
    (False, True)
    """
    words = words_of(FRAME.sub(" ", TAG.sub(" ", text)))
    return not all(is_joining(word) or word.isdecimal() for word in words)


def label_before(text: str) -> str:
    """Return the label that the text before a box ends with; "" if there is none.

    >>> label_before("<ref>dog</ref><box>"), label_before("There is a dog at ")
    ('dog', 'dog')
    >>> label_before("1. **dog**: "), label_before("- label: dog\\n  bbox: ")
    ('dog', 'dog')
    """
    stated = _stated(text)
    if stated is not None:
        return stated
    for line in reversed(TAG.sub(" ", _RELATION.sub(" ", text)).split("\n")):
        label = _words_before(line)
        if label is not None:
            return label
    return ""


def label_behind(text: str) -> str:
    """Return the label that the text behind a box begins with; "" if there is none.

    >>> label_behind(" dog ; "), label_behind("\\n  label: cat\\n- bbox: ")
    ('dog', 'cat')
    """
    stated = _stated(text)
    if stated is not None:
        return stated
    lines = TAG.sub(" ", text).split("\n")
    first_line = next((line for line in lines if line.strip(_MARKS)), "")
    first_part = re.split(r"[;,]|[.!?](?:\s|$)", first_line.strip(_MARKS))[0]
    words = first_part.strip(_MARKS).split()
    return _unless_sentence(_after_leading_words(words))


def label_within(text: str) -> str:
    """Return the label in the sentence that states a box; "" if there is none.

    >>> label_within("top-left corner of the dog is at (1, 2), bottom-right corner at (3, 4)")
    'dog'
    """
    named = _OF_CORNER.search(text)
    if named is None:
        return ""
    return _unless_sentence(_after_leading_words(named[1].split()))


def labels_of_boxes(before: Sequence[str], tail: str) -> list[str]:
    """Return the labels of boxes from the texts before each and behind the last.

    Labels stand behind their boxes if nothing else fits: none before the first, one behind all.

    >>> labels_of_boxes(["", "dog ; "], "cat"), labels_of_boxes(["dog ", ", cat "], ".")
    (['dog', 'cat'], ['dog', 'cat'])
    """
    if not label_before(before[0]):
        behind = [label_behind(text) for text in (*before[1:], tail)]
        if all(behind):
            return behind
    return [label_before(before[0]), *map(_label_between, before[1:])]


def _label_between(text: str) -> str:
    """Return the label before a box, in the text since the box before it.

    >>> _label_between(" sits by the cat"), _label_between(", man in a red shirt")
    ('cat', 'man in a red shirt')
    """
    if _GOES_ON.fullmatch(text) is None or _stated(text) is not None:
        return label_before(text)
    noun = _LAST_NOUN.search(text)
    return label_before(noun[1] if noun else text)


def _stated(text: str) -> str | None:
    """Return the label that a tag or a key states; None if there is none."""
    attributes = ["".join(groups) for groups in _NAMED_BY_ATTRIBUTE.findall(text)]
    for named in (_NAMED_BY_TAG.findall(text), attributes, _NAMED_BY_KEY.findall(text)):
        label = named[-1].strip(_MARKS) if named else ""
        if label:
            return label
    return None


def _words_before(line: str) -> str | None:
    """Return the label at the end of a line; "" if it is a sentence; None: nothing but marks."""
    without_frame = FRAME.sub("", line.rstrip(_MARKS))
    last_sentence = _SENTENCE_END.split(_BULLET.sub("", without_frame))[-1]
    label = last_sentence.strip(_MARKS)
    words = label.split()
    count = len(words)
    while words and (_is_joint(plain(words[-1])) or _is_number_of_box(words)):
        words.pop()
    if not words:
        return None
    if len(words) < count:
        # A sentence about the label: "In the middle, the dog is at".
        after_comma = " ".join(words).rpartition(",")[2]
        return _unless_sentence(_after_leading_words(after_comma.split()))
    if not _after_leading_words(words):
        return ""
    label = _ARTICLE.sub("", _CONJUNCTION.sub("", label))
    return _unless_sentence(label.split(" "))


def _is_joint(word: str) -> bool:
    return not word or word in _JOINING or word in BOXES


def _is_number_of_box(words: Sequence[str]) -> bool:
    """Return whether words end as "box 2" does."""
    return len(words) > 1 and words[-1].isdecimal() and plain(words[-2]) in BOXES


def _after_leading_words(words: list[str]) -> list[str]:
    start = 0
    while start < len(words) and plain(words[start]) in _LEADING | {""}:
        start += 1
    return words[start:]


def _unless_sentence(words: Sequence[str]) -> str:
    """Return words as a label, without signs such as 🐶 around it; "" if they are a sentence."""
    words = list(words)
    for end in (0, -1):
        while words and not plain(words[end]):
            words.pop(end)
    if any(plain(word) in _OF_SENTENCES for word in words):
        return ""
    return " ".join(words).strip(_MARKS)
