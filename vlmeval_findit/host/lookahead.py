"""Batches under a host that asks one query at a time.

VLMEvalKit hands a local model a bound method of the dataset it is about to run
(``set_dump_image``), and then asks row by row.  The dataset behind that method says which rows come
next, so a model can answer a window of them together and give the others out when they are asked
for.  Answers are kept in memory only: what the host has stored is its own, and a run that goes on
after a crash simply asks from where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
HostMessage = Sequence[Mapping[str, Any]]


def message_key(message: HostMessage) -> str:
    """What a message is recognised by: everything in it, in order."""
    return "\x00".join(f"{part['type']}:{part['value']}" for part in message)


class LookAhead(Generic[Result]):
    """Answers a window of a dataset's rows when the first of them is asked for.

    Rows that the host skips (it has their replies from an earlier run) would be answered in vain,
    so the window is one row after such a waste, and doubles while everything in it is asked for.

    Args:
        messages: the messages of all rows that this process will ask for, in the host's order.
        answer: the replies to a window of messages.
        most: the greatest window.
    """

    def __init__(
        self,
        messages: Sequence[HostMessage],
        answer: Callable[[Sequence[HostMessage]], Sequence[Result]],
        most: int,
    ) -> None:
        self._messages = messages
        self._answer = answer
        self._most = most
        self._window = most
        self._place: dict[str, int] = {}
        for at, message in enumerate(messages):
            self._place.setdefault(message_key(message), at)
        self._ahead: dict[str, Result] = {}
        self._asked: set[str] = set()

    def reply(self, message: HostMessage) -> Result:
        """The reply to a message, from the window or with a new one."""
        key = message_key(message)
        if key not in self._ahead:
            self._look_ahead(key, message)
        self._asked.add(key)
        return self._ahead[key]

    def _look_ahead(self, key: str, message: HostMessage) -> None:
        if self._ahead:
            wasted = len(self._asked) < len(self._ahead)
            self._window = 1 if wasted else min(2 * self._window, self._most)
        window = self._following(key, message)
        self._asked = set()
        self._ahead = dict(zip(map(message_key, window), self._answer(window), strict=True))

    def _following(self, key: str, message: HostMessage) -> list[HostMessage]:
        """The message and those after it, each once."""
        at = self._place.get(key)
        if at is None:
            return [message]
        window = self._messages[at : at + self._window]
        return list({message_key(one): one for one in window}.values())
