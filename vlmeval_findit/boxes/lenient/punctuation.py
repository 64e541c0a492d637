"""Punctuation of Chinese and Japanese input methods, one character for one of ASCII."""

from __future__ import annotations

# Each with the ASCII character that it stands for
FULL_WIDTH = {
    **dict.fromkeys("，、､،", ","),
    **dict.fromkeys("：︰", ":"),
    "；": ";",
    "（": "(",
    "）": ")",
    **dict.fromkeys("［【", "["),
    **dict.fromkeys("］】", "]"),
    "｛": "{",
    "｝": "}",
}
DOUBLE_QUOTES = "“”„‟＂"
SINGLE_QUOTES = "‘’‚‛＇"
# Blanks that are none to Python's patterns
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"

_TO_ASCII = str.maketrans(
    {
        **FULL_WIDTH,
        **dict.fromkeys(DOUBLE_QUOTES, '"'),
        **dict.fromkeys(SINGLE_QUOTES, "'"),
        **dict.fromkeys(INVISIBLE, " "),
        **{
            "。": ".",
            "＝": "=",
            "＜": "<",
            "＞": ">",
            "．": ".",
            "－": "-",
            "−": "-",
            "～": "~",
            "％": "%",
            **dict(zip("₀₁₂₃₄", "01234", strict=True)),
        },
    }
)
_OTHERS = frozenset(map(chr, _TO_ASCII))


def in_ascii(text: str) -> str:
    """Return a text of the same length with ASCII punctuation.

    >>> in_ascii("狗：［1，2］")
    '狗:[1,2]'
    """
    # For speed: most texts have none of these, in any language
    if text.isascii() or _OTHERS.isdisjoint(text):
        return text
    return text.translate(_TO_ASCII)
