"""What is known of a batch; ``services`` are asked, and answer within a day at half the price."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from enum import Enum
from typing import IO, Any, NamedTuple

from ..call_errors import CallError
from ..response_verdict import object_in

BATCH_PRICE = 0.5  # of the price of single calls, at OpenAI and Anthropic

_ID = re.compile(rb'"custom_id"\s*:\s*"([^"\\]+)"')


class BatchKind(Enum):
    """Who takes batches."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"

    @property
    def is_plain(self) -> bool:
        """Whether it gives no log-probabilities and supports no schemas."""
        return self is BatchKind.ANTHROPIC


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A batch, noted before it is created."""

    name: str  # ours
    options: Mapping[str, Any]  # kind, server, model, logprobs: shared by its calls
    at: float  # when it was noted, in seconds since 1970
    keys: frozenset[str]  # of its calls, and ids of its requests
    open: frozenset[str]  # keys without collected results
    uploaded: str = ""  # the service's id of the request file
    uploaded_at: float = 0.0  # by the service's clock, in seconds since 1970 (0: not stated)
    id: str = ""  # the service's id; empty if not known to exist

    def __str__(self) -> str:
        kind = self.options["kind"]
        server = self.options["server"]
        return f"the batch {self.id or self.name} ({kind} at {server})"


class BatchStatus(NamedTuple):
    """The state of a batch."""

    word: str  # the service's status word
    done: int  # finished requests
    results: tuple[str, ...] | None = None  # paths at the service, once it ended
    refused: str = ""  # why nothing was answered
    may_pass: bool = False  # the same batch may be taken later, or a smaller one
    paid: int = 0  # results that were paid for, and must come
    paid_path: str = ""  # where they are; empty: the service has not named it yet


class BatchLine(NamedTuple):
    """One result of a batch."""

    result: Mapping[str, Any]
    place: str  # as "line 7 of files/abc/content"


class OddLine(NamedTuple):
    """A line that cannot be read, or names no request."""

    path: str
    place: str  # as "line 7 of files/abc/content"
    why: str = ""  # it cannot be read

    def __str__(self) -> str:
        return f"{self.place}: {self.why}"


class _Place(NamedTuple):
    file: IO[bytes]
    start: int  # bytes
    size: int  # bytes
    name: str


class BatchResults:
    """The results of a batch, in files on the disk; only that which is wanted is parsed."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self.unread: list[str] = []  # lines and files that cannot be read, and why
        self.unnamed: list[OddLine] = []  # that name no request
        self.damaged: dict[str, OddLine] = {}  # by the ids of their requests
        self.repeated: list[str] = []  # places of results of requests that have one
        self.lost: dict[str, CallError] = {}  # by path

    @property
    def keys(self) -> Set[str]:
        """Ids of requests that have a result."""
        return self._places.keys()

    def keys_of(self, path: str) -> set[str]:
        """Return the ids of requests that have a result in a file."""
        return {key for key, place in self._places.items() if _is_of(place.name, path)}

    def damaged_of(self, path: str) -> set[str]:
        """Return the ids of requests whose results in a file cannot be read."""
        return {key for key, line in self.damaged.items() if line.path == path}

    def unnamed_of(self, path: str) -> list[OddLine]:
        """Return the lines of a file that name no request."""
        return [line for line in self.unnamed if line.path == path]

    def places_of_others(self, keys: Set[str]) -> list[str]:
        """Return the places of results that are of none of these requests, or do not say of which.

        They answer nothing: which request they were for is never guessed.
        """
        others = [place.name for key, place in self._places.items() if key not in keys]
        return [line.place for line in self.unnamed] + others

    def line(self, key: str) -> BatchLine | None:
        """Read the result of a request; None if there is none."""
        place = self._places.get(key)
        if place is None:
            return None
        place.file.seek(place.start)
        return BatchLine(object_in(place.file.read(place.size)), place.name)

    def take(
        self,
        path: str,
        file: IO[bytes],
        longest: int,
        is_answer: Callable[[Mapping[str, Any]], bool],
    ) -> None:
        """Add the lines of a file; an answer stays, whatever else its request has."""
        number = 0
        file.seek(0)
        while True:
            start = file.tell()
            line = file.readline(longest + 1)
            if not line:
                return
            number += 1
            name = f"line {number} of {path}"
            if len(line) > longest:
                last = line
                while not last.endswith(b"\n") and (more := file.readline(longest)):
                    last = more
                why = f"it is longer than {longest / (1 << 20):.3g} MiB"
                self._skip(name, path, why, line, is_whole=last.endswith(b"\n"))
                continue
            if line.strip():
                self._take_line(_Place(file, start, len(line), name), line, path, is_answer)

    def _take_line(
        self,
        place: _Place,
        line: bytes,
        path: str,
        is_answer: Callable[[Mapping[str, Any]], bool],
    ) -> None:
        try:
            result = object_in(line)
        except CallError as error:
            self._skip(place.name, path, str(error), line, is_whole=line.endswith(b"\n"))
            return
        key = result.get("custom_id")
        if not isinstance(key, str):
            self.unnamed.append(OddLine(path, place.name))
            return
        known = self.line(key)
        place.file.seek(place.start + place.size)
        if known is None:
            self._places[key] = place
            return
        self.repeated.append(f"{place.name} after {known.place}")
        if is_answer(result) > is_answer(known.result):
            self._places[key] = place

    def _skip(self, name: str, path: str, why: str, line: bytes, *, is_whole: bool) -> None:
        """Note a line that cannot be read.

        It is the result of the request that it names. One that names none, or is cut off, may come
        whole later: it stands for no result.
        """
        odd = OddLine(path, name, why if is_whole else "it is cut off")
        self.unread.append(str(odd))
        ids = {*_ID.findall(line)} if is_whole else set()
        if len(ids) == 1:
            self.damaged[ids.pop().decode("utf-8", "replace")] = odd
        else:
            self.unnamed.append(odd)

    def lose(self, path: str, error: CallError) -> None:
        """Note a file that cannot be had."""
        self.lost[path] = error
        self.unread.append(f"{path}: {error}")


def _is_of(place: str, path: str) -> bool:
    return place.endswith(f" of {path}")
