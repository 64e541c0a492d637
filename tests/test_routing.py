"""All that is asked about an image goes to one server, one call first: on servers that count."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from caching_server import IMAGE_TOKENS, CachingServer, beginning
from chat_server import Answer, Asked, ChatServer, completion, error
from engine_fakes import FakeHost, Silent, answered_keys, demo_sweep, files, go

from vlmeval_findit.engine.config import Inference
from vlmeval_findit.engine.http_backend import HttpBackend, Service
from vlmeval_findit.engine.servers import ServersHost
from vlmeval_findit.models.http.chat import openrouter_model, server_model
from vlmeval_findit.models.http.endpoint import Endpoint

# --- searches over servers ------------------------------------------------------------------------

GRID = "models: Qwen3-VL\ndatasets: Demo\nrepresentations: all\noutputs: json\nlimit: 12"


def run(folder: Path, servers: Sequence[CachingServer], threads: int = 4) -> Silent:
    watcher = Silent()
    host = ServersHost([server.url for server in servers], Inference(threads=threads))
    go(demo_sweep(folder, GRID), host, watcher=watcher)
    assert not any(answer.error for answer in watcher.answers)
    return watcher


def pictures_at(server: CachingServer) -> set[str]:
    return {start for start, _ in server.answered}


def test_each_picture_is_read_once(tmp_path: Path) -> None:
    with CachingServer() as a, CachingServer() as b:
        watcher = run(tmp_path, (a, b))
        pictures = pictures_at(a) | pictures_at(b)
        assert len(pictures) <= a.read + b.read <= len(pictures) + 2, "two at the end at most"
        tokens: Counter[str] = Counter()
        for answer in watcher.answers:
            tokens.update(answer.record["tokens"])
    assert tokens["cached"] == IMAGE_TOKENS * (a.cached + b.cached)
    assert tokens["cached"] > 0.8 * tokens["prompt"] * 0.8
    assert set(watcher.at_once) == {a.url, b.url}
    assert max(watcher.at_once.values()) <= 4


def test_a_server_dies_in_the_middle(tmp_path: Path) -> None:
    with CachingServer() as alone:
        run(tmp_path / "alone", (alone,))
    with CachingServer(dies_at=20) as dying, CachingServer() as other:
        run(tmp_path, (dying, other))
        assert len(dying.answered) <= 20
        assert len(other.answered) > len(dying.answered)
        once = len(pictures_at(dying) | pictures_at(other))
        # What the dead one had is read once more, by each of the calls that were on their way.
        assert dying.read + other.read <= 2 * once + 4
    mine, theirs = files(tmp_path / "out"), files(tmp_path / "alone" / "out")
    assert set(mine) == set(theirs)


def test_a_server_that_takes_three_at_a_time_is_asked_so(tmp_path: Path) -> None:
    small_one = CachingServer(takes=3, writes=0.05, retry_after="0.05")
    with small_one as small, CachingServer(writes=0.05) as large:
        watcher = run(tmp_path, (small, large), threads=8)
        assert small.most == 3
        assert watcher.at_once[small.url] < 8 <= watcher.at_once[large.url] + 1
        assert small.refused < 0.2 * len(watcher.answers)
        assert len(small.answered) > 10, "and is not left out for it"


def test_two_sweeps_at_once_agree_without_a_word(tmp_path: Path) -> None:
    with CachingServer(keeps=16) as a, CachingServer(keeps=16) as b:
        folders = [tmp_path / "one", tmp_path / "two"]
        threads = [
            threading.Thread(target=run, args=(folder, servers))
            for folder, servers in zip(folders, ((a, b), (b, a)), strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all((folder / "calls.jsonl").is_file() for folder in folders)
        pictures = pictures_at(a) | pictures_at(b)
        # Both may be the first to show a picture, and a call that waits too long goes elsewhere;
        # without a rule that both keep, it would be four times.
        assert a.read + b.read <= 3 * len(pictures)
        assert len(a.answered) + len(b.answered) == 2 * len(
            answered_keys(folders[0] / "calls.jsonl")
        )


# --- providers ------------------------------------------------------------------------------------


def test_what_a_provider_should_keep_is_marked_at_the_last_picture(tmp_path: Path) -> None:
    """Where others are asked about it too; OpenAI and Google find it out themselves."""
    asked: list[Asked] = []

    def script(one: Asked, number: int) -> Answer:
        asked.append(one)
        usage = {
            "prompt_tokens": 3000,
            "completion_tokens": 9,
            "cost": 0.01,
            "prompt_tokens_details": {"cached_tokens": 2000 * (number > 0)},
            "cache_creation_input_tokens": 2000 * (number == 0),
        }
        return completion("[]", usage=usage, cache_discount=-0.0015 if number == 0 else 0.0054)

    def sweep(name: str, rows: int, outputs: str) -> list[Any]:
        asked.clear()
        text = f"models: {name}\ndatasets: Demo_insdet\nrepresentations: xyxy\noutputs: {outputs}"
        asked_there = Service(openrouter_model(name), [Endpoint(server.url)])
        host = FakeHost(None, lambda _: HttpBackend(lambda: asked_there, 4))
        folder = tmp_path / f"{name}-{rows}-{outputs}"
        go(demo_sweep(folder, text, limit=rows), host)
        lines = (folder / "calls.jsonl").read_text().splitlines()
        return [json.loads(json.loads(line)["extra_records"])["findit"] for line in lines]

    def marks() -> list[list[bool]]:
        contents = [one.body["messages"][0]["content"] for one in asked]
        return [["cache_control" in part for part in content] for content in contents]

    with ChatServer(script) as server:
        first, second = sweep("Claude-Opus-5.5", 1, "[text, json]")
        for one, content in zip(marks(), asked, strict=True):
            _, pictures, _ = beginning(content.body)
            assert pictures > 1, "support shots and a scene"
            assert one.index(True) == len(one) - 2, "the last picture, before the words"
            assert sum(one) == 1
        assert first["tokens"] == {
            "prompt": 3000, "cached": 0, "cache_write": 2000, "completion": 9
        }  # fmt: skip
        assert second["tokens"]["cached"] == 2000
        assert (first["call"]["cache_discount"], second["call"]["cache_discount"]) == (
            -0.0015,
            0.0054,
        )
        sweep("Claude-Opus-5.5", 1, "json")
        assert not any(map(any, marks())), "to write what nobody reads costs more"
        sweep("GPT-5.4", 1, "[text, json]")
        assert not any(map(any, marks()))


def test_a_first_call_that_fails_does_not_hold_up_its_siblings(tmp_path: Path) -> None:
    def script(asked: Asked, number: int) -> Answer:
        return error(400, "no") if number == 0 else completion("[]")

    with ChatServer(script) as server:
        asked_there = Service(server_model("Qwen3-VL"), [Endpoint(server.url)])
        host = FakeHost(None, lambda _: HttpBackend(lambda: asked_there, 4))
        watcher = Silent()
        go(demo_sweep(tmp_path, GRID, limit=1), host, watcher=watcher)
        assert [bool(answer.error) for answer in watcher.answers].count(True) == 1
        assert len(server.asked) == len(watcher.answers) > 5
