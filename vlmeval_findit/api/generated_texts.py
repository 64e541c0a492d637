"""Replies as trainers have them: a part of a decoded text, with tokens that end it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isnan
from threading import Lock
from typing import Any

from ..core import quoted_value
from ..protocol import has_meaning

# --- ends -----------------------------------------------------------------------------------------

# Tokens have no digits, or they may be places: <loc0512>
_LAST_TOKEN = re.compile(r"(?:<\|[^\W\d]+\|>|<[^\W\d]+\|?>|</s>|<｜[^<>｜\d]+｜>|\[[A-Z_]{3,}\])\Z")


@dataclass(frozen=True, slots=True)
class EndMarks:
    """Texts that end a reply and are no part of it."""

    named: tuple[str, ...] = ()

    def without_end(self, text: str) -> str:
        """Take the named texts off the end.

        >>> EndMarks(("DONE",)).without_end("[1, 2, 3, 4] DONE DONE")
        '[1, 2, 3, 4]'
        """
        return _cut(text, self._start_of_named) if self.named else text

    def without_any_end(self, text: str) -> str:
        """Take named texts off the end, and tokens that mark no box, thought or answer.

        >>> EndMarks().without_any_end("[1, 2, 3, 4]<|box_end|><end_of_utterance><pad>\\n")
        '[1, 2, 3, 4]<|box_end|>'
        """
        return _cut(text, self._start_of_any)

    def _start_of_named(self, text: str, end: int) -> int | None:
        """Return where the named text begins that ends at a place; None if there is none."""
        found = [mark for mark in self.named if text.endswith(mark, 0, end)]
        return end - max(map(len, found)) if found else None

    def _start_of_any(self, text: str, end: int) -> int | None:
        """Return where the text or token begins that ends at a place; None if there is none."""
        start = self._start_of_named(text, end)
        if start is not None:
            return start
        token = _LAST_TOKEN.search(text, max(0, end - _LONGEST_TOKEN), end)
        return token.start() if token and _is_end(token[0]) else None


def _cut(text: str, start_of: Callable[[str, int], int | None]) -> str:
    """Take marks off the end of a text, with the blanks around them.

    There may be thousands of marks, so the text is cut once.
    """
    end = _end_of_words(text, len(text))
    while (start := start_of(text, end)) is not None:
        end = _end_of_words(text, start)
    return text[:end]


def _end_of_words(text: str, end: int) -> int:
    """Return a place without the blanks before it."""
    while end and text[end - 1].isspace():
        end -= 1
    return end


_LONGEST_TOKEN = 60  # Characters


@lru_cache(maxsize=1024)
def _is_end(token: str) -> bool:
    return not has_meaning(token)


def marks_of_ends(value: Any) -> EndMarks:
    """Return the texts that a user names: a text, several, or the special tokens of a tokenizer.

    Raises:
        ValueError: it is none of them.
    """
    special = getattr(value, "all_special_tokens", None)
    if special is not None:
        return EndMarks(tuple(mark for mark in map(str, special) if not has_meaning(mark)))
    named = (value,) if isinstance(value, str) else tuple(value)
    if all(isinstance(mark, str) and mark.strip() for mark in named):
        return EndMarks(tuple(mark.strip() for mark in named))
    raise ValueError(f"end_marks: {value!r} should be texts, as ['<|im_end|>'], or a tokenizer")


# --- prompts --------------------------------------------------------------------------------------

_PROMPT_END = 40  # Characters


def reply_in(query: str, prompt: str) -> str:
    """Return the reply in a query, which is prompt and reply, decoded.

    A decoded prompt may differ from the prompt, for images are many tokens, but not at its end.

    Raises:
        ValueError: the query does not have the end of the prompt.
    """
    end = prompt if query.startswith(prompt) else prompt[-_PROMPT_END:]
    times = prompt.count(end)
    parts = query.split(end, times)
    if not prompt or len(parts) <= times:
        raise ValueError(
            f"the prompt does not end in its query: {end!r} is not in {quoted_value(query, 200)}"
        )
    return parts[-1]


# --- the first rewards ----------------------------------------------------------------------------

_FIRST = 200  # Replies
_SHARED_END = 3  # Characters


class FirstRewards:
    """Looks at the first replies of a training, in any thread: do all earn 0 for one reason?"""

    def __init__(self) -> None:
        self._lock = Lock()
        self._reasons: set[str] = set()
        self._count = 0
        self._is_over = False

    def seen(
        self, replies: Sequence[Any], values: Iterable[float], reasons: Iterable[str]
    ) -> list[str]:
        """Take rewards of replies, and return the warnings: at most one, and only once.

        ``reasons`` say why replies are not in their format; "": they are.
        """
        if self._is_over:
            return []
        with self._lock:
            self._is_over = self._is_over or any(value > 0 or isnan(value) for value in values)
            self._reasons.update(reasons)
            self._count += len(replies)
            if self._is_over or len(self._reasons) > 1:
                self._is_over = True
                return []
            if self._count < _FIRST:
                return []
            self._is_over = True
            (reason,) = self._reasons
        return [_warning(self._count, reason, [each for each in replies if isinstance(each, str)])]


def _warning(count: int, reason: str, texts: Sequence[str]) -> str:
    why = (
        f"none is in its format ({reason})"
        if reason
        else "all are in their format, but no box hits: are space and size right?"
    )
    example = f" The last: {quoted_value(texts[-1], 200)}." if texts else ""
    return f"the first {count} replies earned 0: {why}.{example}{_advice(texts)}"


_AROUND_ANSWERS = ("<answer> </answer>", r"\boxed{ }")


def _advice(texts: Sequence[str]) -> str:
    """Say which argument takes off what stands around all answers; "" if nothing does."""
    end = _shared_end(texts)
    for marks in _AROUND_ANSWERS:
        opening = marks.split()[0]
        if texts and all(opening in text for text in texts):
            return f" All have {opening}: reward_function(…, answer_marks={marks!r})."
    return f" All end in {end!r}: reward_function(…, end_marks=[{end!r}])." if end else ""


def _shared_end(texts: Sequence[str]) -> str:
    """Return how all texts end, from the last blank or bracket on; "" if they share no mark."""
    ends = [re.split(r"[\s\]})]", text.rstrip())[-1] for text in texts]
    shared = set(ends)
    end = shared.pop() if len(shared) == 1 and len(texts) > 1 else ""
    return end if len(end) >= _SHARED_END else ""
