"""All that is asked about an image goes to one server, one call first: on servers that count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from chat_server import (
    Answer,
    Asked,
    ChatServer,
    beginning,
    completion,
)
from engine_fakes import FakeBackends, demo_sweep, go

from vlmeval_findit.engine.http_backend import HttpBackend, HttpService
from vlmeval_findit.models.http.chat import chat_model
from vlmeval_findit.models.http.endpoint import Endpoint

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
        asked_there = HttpService(chat_model(name, "openrouter"), [Endpoint(server.url)])
        host = FakeBackends(None, lambda _: HttpBackend(lambda: asked_there, 4))
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
