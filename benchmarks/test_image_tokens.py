"""What a search over 19 formats costs in image tokens on two servers that keep what they read."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from chat_server import Answer, ChatServer, completion
from engine_fakes import Silent, go

from vlmeval_findit.benchmarks.findit.grid import all_tables
from vlmeval_findit.engine import http_backend
from vlmeval_findit.engine.backend import CallOptions
from vlmeval_findit.engine.plan import WorkItem
from vlmeval_findit.engine.server_backends import ServerBackends
from vlmeval_findit.models.entry import ModelEntry
from vlmeval_findit.sweeps.format_search import search_sweep

PICTURES, THREADS = 50, 8
READS, WRITES = 0.1, 0.02
"""Seconds for a picture that a server does not have, and for an answer."""


IMAGE_TOKENS = 250
"""Of every picture that a caching server reads."""


class CachingServer(ChatServer):
    """Keeps what it read of pictures, as vLLM and providers do: the beginnings of so many prompts.

    ``reads`` and ``writes`` are the seconds for a picture that it does not have and for an answer;
    what is asked while a picture is still being read is read once more.
    """

    def __init__(self, keeps: int = 4, reads: float = 0.05, writes: float = 0.01) -> None:
        super().__init__(lambda asked, number: self._answer(asked.body))
        self.read = self.cached = 0
        self.pictures: set[str] = set()
        self._keeps, self._reads, self._writes = keeps, reads, writes
        self._kept: OrderedDict[str, None] = OrderedDict()

    def _answer(self, body: Any) -> Answer:
        start, pictures, words = beginning(body)
        with self._lock:
            known = start in self._kept
            if known:
                self._kept.move_to_end(start)
        if not known:
            time.sleep(self._reads)
        with self._lock:
            self._kept[start] = None
            while len(self._kept) > self._keeps:
                self._kept.popitem(last=False)
            self.read += 0 if known else pictures
            self.cached += pictures if known else 0
            self.pictures.add(start)
        time.sleep(self._writes)
        tokens = IMAGE_TOKENS * pictures
        return completion(
            "[10, 20, 300, 900]",
            usage={
                "prompt_tokens": tokens + len(words) // 4,
                "completion_tokens": 12,
                "prompt_tokens_details": {"cached_tokens": tokens if known else 0},
            },
        )


def beginning(body: Any) -> tuple[str, int, str]:
    """Of a request: its content up to the last picture, how many there are, and the words after."""
    content = body["messages"][0]["content"]
    places = [at for at, part in enumerate(content) if part["type"] == "image_url"]
    cut = places[-1] + 1 if places else 0
    return json.dumps(content[:cut]), len(places), json.dumps(content[cut:])


class Cost(NamedTuple):
    """Of a search: calls, tokens of pictures that were read, and seconds."""

    calls: int
    tokens: int
    seconds: float


def search(folder: Path, pictures: int, keeps: int) -> Cost:
    """A search on two servers, each of which keeps so many pictures."""
    entry = ModelEntry("Qwen3-VL")
    places = (folder / "search", folder / "calls.jsonl")
    sweep = search_sweep(entry, all_tables()["Scenes_mini"], pictures, places)
    watcher = Silent()
    with ExitStack() as stack:
        pair = [CachingServer(keeps=keeps, reads=READS, writes=WRITES) for _ in range(2)]
        servers = [stack.enter_context(server) for server in pair]
        host = ServerBackends([server.url for server in servers], CallOptions(threads=THREADS))
        start = time.perf_counter()
        go(sweep, host, watcher=watcher)
        seconds = time.perf_counter() - start
        assert not any(answer.error for answer in watcher.answers)
        tokens = IMAGE_TOKENS * sum(server.read for server in servers)
    return Cost(len(watcher.answers), tokens, seconds)


def nameless(item: WorkItem) -> str:
    """As it was: nobody knows which calls are over the same picture."""
    return ""


@pytest.mark.parametrize("keeps", [8, 16, 64])
def test_a_search_reads_each_picture_once_a_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measures: bool, keeps: int
) -> None:
    if not measures:
        pytest.skip("measures only with --benchmark-enable")
    routed = search(tmp_path / "routed", PICTURES, keeps)
    monkeypatch.setattr(http_backend, "image_name", nameless)
    in_turn = search(tmp_path / "in turn", PICTURES, keeps)
    assert routed.calls == in_turn.calls == 19 * PICTURES
    print(
        f"\n{routed.calls} calls over {PICTURES} pictures, 2 servers that keep {keeps} each: image "
        f"tokens {in_turn.tokens:,} in turn ({in_turn.seconds:.1f} s), {routed.tokens:,} by the "
        f"picture ({routed.seconds:.1f} s): {in_turn.tokens / routed.tokens:.1f} times fewer"
    )
    # Two stages; at the end of each, what one server is late with is read by the other too.
    stages = 1 if keeps >= PICTURES else 2
    assert routed.tokens <= 1.1 * stages * PICTURES * IMAGE_TOKENS
