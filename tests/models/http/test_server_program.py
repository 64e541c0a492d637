"""Which program answers behind a base URL, as far as it says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from asking import KEY
from chat_server import BREAKS_OFF, NEVER_SHOWN, NO_CHOICES, ChatServer, in_turn
from real_servers import llama_cpp

from vlmeval_findit.engine import run_sync
from vlmeval_findit.models import Endpoint, HttpClient, RunningProgram, running_program
from vlmeval_findit.models.http import server_program


def pages_server(pages: Mapping[str, Any]) -> ChatServer:
    """Return a server that shows pages by path, and never chats."""
    return ChatServer(in_turn(NO_CHOICES), pages)


def root_of(server: ChatServer) -> str:
    return server.url.removesuffix(server.path)


def looked(server: ChatServer) -> list[str]:
    return [each.path for each in server.looked]


def asked(url: str, served: str = "", **options: Any) -> RunningProgram | None:
    async def ask() -> RunningProgram | None:
        async with HttpClient(30.0) as client:
            return await running_program(client, Endpoint(url, KEY, **options), served)

    return run_sync(ask())


def program_of(
    pages: Mapping[str, Any], base: str = "/v1", served: str = ""
) -> RunningProgram | None:
    with pages_server(pages) as server:
        return asked(f"{root_of(server)}{base}", served)


def models(owner: str, id: str = "mine", **more: Any) -> dict[str, Any]:
    card = {"id": id, "object": "model", "created": 1, "owned_by": owner, **more}
    return {"object": "list", "data": [card]}


QWEN = "Qwen/Qwen3-VL-8B-Instruct"
SHA = "0123456789abcdef0123456789abcdef01234567"

VLLM = {
    "/v1/models": models("vllm", root=QWEN, parent=None, max_model_len=32768),
    "/version": {"version": "0.11.0"},
}
SGLANG = {
    "/v1/models": models("sglang", root="mine"),
    "/server_info": {
        "model_path": QWEN,
        "revision": None,
        "api_key": "theirs",
        "internal_states": [{}],
        "version": "0.5.15.post1",
    },
}
LLAMA_CPP = {
    "/v1/models": models("llamacpp", meta={"n_ctx_train": 262144}),
    "/props": {
        "total_slots": 4,
        "model_path": "/home/someone/models/Qwen3VL-8B-Q4_K_M.gguf",
        "modalities": {"vision": True, "audio": False},
        "build_info": "b6887-d261223d2",
    },
}
OLLAMA = {
    "/v1/models": models("library", id="qwen3-vl:8b"),
    "/": b"Ollama is running",
    "/api/version": {"version": "0.12.7"},
}
LM_STUDIO = {
    "/v1/models": models("organization_owner", id="qwen/qwen3-vl-8b"),
    "/api/v0/models": {
        "data": [
            {"id": "other", "type": "llm", "compatibility_type": "gguf", "quantization": "Q8_0"},
            {
                "id": "qwen/qwen3-vl-8b",
                "type": "vlm",
                "compatibility_type": "mlx",
                "quantization": "4bit",
                "state": "loaded",
            },
        ]
    },
}
LM_STUDIO_WITHOUT_NAMES = {
    "/v1/models": None,
    "/api/v0/models": {"data": [{"compatibility_type": "gguf", "quantization": "Q8_0"}]},
}
TGI = {
    "/v1/models": models(QWEN, id=QWEN),
    "/info": {"model_id": QWEN, "model_sha": SHA, "version": "3.3.6", "router": "tgi"},
}


@pytest.mark.parametrize(
    ("pages", "program"),
    [
        (VLLM, RunningProgram("vllm", "0.11.0", QWEN)),
        (SGLANG, RunningProgram("sglang", "0.5.15.post1", QWEN)),
        (
            {**SGLANG, "/server_info": None, "/get_server_info": SGLANG["/server_info"]},
            RunningProgram("sglang", "0.5.15.post1", QWEN),
        ),
        (LLAMA_CPP, RunningProgram("llama.cpp", "b6887-d261223d2", "Qwen3VL-8B-Q4_K_M.gguf")),
        (OLLAMA, RunningProgram("ollama", "0.12.7", "qwen3-vl:8b")),
        (LM_STUDIO, RunningProgram("LM Studio", "", "qwen/qwen3-vl-8b 4bit")),
        (
            {**LM_STUDIO, "/v1/models": models("organization_owner")},
            RunningProgram("LM Studio", "", "mine"),
        ),
        (LM_STUDIO_WITHOUT_NAMES, RunningProgram("LM Studio")),
        (TGI, RunningProgram("TGI", "3.3.6", QWEN, SHA)),
        ({"/v1/models": models("lmdeploy")}, RunningProgram("lmdeploy")),
    ],
)
def test_programs_that_say_what_they_are(pages: Mapping[str, Any], program: RunningProgram) -> None:
    assert program_of(pages) == program


@pytest.mark.parametrize(
    "pages",
    [
        {},
        # A gateway with a version
        {"/v1/models": models("openai"), "/version": {"version": "1.80.0"}},
        {"/v1/models": models("openai"), "/api/version": {"version": "0.6.30"}},
        {"/v1/models": models("openai"), "/info": {"version": "2", "model_id": "mine"}},
        {"/v1/models": {"data": "none"}, "/info": [1], "/api/v0/models": {"data": [1, {}]}},
        {"/v1/models": b"<html>", "/": b"<html>Ollama is running somewhere</html>"},
        {"/v1/models": models(["vllm"])},  # type: ignore[arg-type]
    ],
)
def test_what_is_not_told_is_not_known(pages: Mapping[str, Any]) -> None:
    assert program_of(pages) is None


@pytest.mark.parametrize(
    "page", [None, {"version": 11}, {"version": None}, b"0.11.0", b'{"version"', b"[" * 9999]
)
def test_a_program_may_not_tell_its_version(page: object) -> None:
    program = program_of({**VLLM, "/version": page})
    assert program == RunningProgram("vllm", "", QWEN)
    assert program.words == "vllm"


@pytest.mark.parametrize(
    ("root", "checkpoint", "revision"),
    [
        ("/data/someone/checkpoint-400", "checkpoint-400", ""),
        ("/data/someone/checkpoint-400/", "checkpoint-400", ""),
        ("./out/mine", "mine", ""),
        (r"C:\models\mine", "mine", ""),
        (f"/home/me/.cache/hub/models--Qwen--Qwen3-VL-8B/snapshots/{SHA}", "Qwen/Qwen3-VL-8B", SHA),
        # The first two dashes part owner and name; a name may have such of its own.
        (f"/hub/models--me--mine--2/snapshots/{SHA}/", "me/mine--2", SHA),
        (7, "", ""),
    ],
)
def test_folders_of_a_server_are_not_told(root: object, checkpoint: str, revision: str) -> None:
    pages = {**VLLM, "/v1/models": models("vllm", root=root)}
    assert program_of(pages) == RunningProgram("vllm", "0.11.0", checkpoint, revision)


def test_the_asked_model_is_looked_up() -> None:
    both = [*models("vllm", root="a/first")["data"], *models("vllm", "it", root="b/it")["data"]]
    pages = {"/v1/models": {"data": both}}
    for served, checkpoint in (("it", "b/it"), ("mine", "a/first"), ("", "a/first")):
        assert program_of(pages, served=served) == RunningProgram("vllm", "", checkpoint)


@pytest.mark.parametrize("base", ["/v1", "/v1/", "/proxy/v1", ""])
def test_places_are_below_the_root_of_the_address(base: str) -> None:
    root = base.rstrip("/").removesuffix("/v1")
    models_at = f"{base.rstrip('/')}/models"
    pages = {models_at: VLLM["/v1/models"], f"{root}/version": VLLM["/version"]}
    assert program_of(pages, base) == RunningProgram("vllm", "0.11.0", QWEN)


def test_requests_have_the_key_and_the_headers_of_calls() -> None:
    with pages_server(VLLM) as server:
        assert asked(f"{root_of(server)}/v1?tenant=7", headers={"X-Team": "boxes"}) is None
        assert looked(server)[0] == "/v1/models?tenant=7"
        assert "/api/version?tenant=7" not in looked(server)
    for each in server.looked:
        assert each.headers["authorization"] == f"Bearer {KEY}"
        assert each.headers["x-team"] == "boxes"


def test_each_place_is_asked_once() -> None:
    with pages_server(SGLANG) as server:
        asked(f"{root_of(server)}/v1")
        assert looked(server) == ["/v1/models", "/server_info"]


def test_a_provider_is_not_asked() -> None:
    with pages_server(VLLM) as server:
        assert asked(f"{root_of(server)}/v1", provider="openai") is None
        assert looked(server) == []


def test_nobody_listens() -> None:
    with pages_server({}) as server:
        url = root_of(server)
    assert asked(f"{url}/v1") is None


def test_a_silent_server_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_program, "_SECONDS", 0.05)
    with pages_server({"/v1/models": NEVER_SHOWN}) as server:
        assert asked(f"{root_of(server)}/v1") is None
        assert looked(server) == ["/v1/models"]


def test_what_was_learnt_stays_when_a_place_breaks_off() -> None:
    assert program_of({**VLLM, "/version": BREAKS_OFF}) == RunningProgram("vllm", "", QWEN)
    with pages_server({"/v1/models": BREAKS_OFF}) as server:
        assert asked(f"{root_of(server)}/v1") is None
        # aiohttp asks a second time where a connection broke.
        assert {*looked(server)} == {"/v1/models"}


@pytest.mark.slow
def test_a_real_llama_cpp_says_its_build(tmp_path: Path) -> None:
    with llama_cpp(tmp_path, 512, vision=False) as url:
        program = asked(url)
    assert program is not None
    assert program.name == "llama.cpp"
    assert program.checkpoint.endswith(".gguf")
    assert "/" not in program.checkpoint
