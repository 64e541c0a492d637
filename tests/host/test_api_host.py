"""Models over an API through the real VLMEvalKit, which ask a local server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, Asked, ChatServer, completion, error, in_turn
from host_runs import RUN_FINDIT, environment, metric_values, predictions, replies, run
from perfect_answers import content, perfect_answers

from vlmeval_findit.engine import Asking, CallOptions, deployment_of
from vlmeval_findit.models import Budget, ModelEntry, to_host_message

pytestmark = pytest.mark.host

DATA = "FindIt_Demo_xyxy_json"
SHOWN = "FindIt_Demo_insdet_xywh_text"
MODEL = "GPT-5.4"
KEY = "sk-or-v1-c0ffee-SECRET"


def ask(server: ChatServer, cwd: Path, lmu: Path) -> subprocess.CompletedProcess[str]:
    """Return a run of GPT-5.4 against a server, its key looked for in everything that it leaves."""
    env = environment(lmu, OPENROUTER_API_KEY=KEY, OPENROUTER_BASE_URL=server.url)
    done = run(RUN_FINDIT, ["--model", MODEL, "--data", DATA, SHOWN], cwd, env)
    assert "SECRET" not in done.stdout
    for path in cwd.rglob("*"):
        assert not path.is_file() or b"SECRET" not in path.read_bytes(), path
    return done


# --- one process ----------------------------------------------------------------------------------


@pytest.fixture
def registered(lmu: Path) -> Any:
    from vlmeval_findit.host import register

    register()
    import vlmeval.config

    return vlmeval.config.supported_VLM


def test_names_and_classes_are_the_hosts(registered: dict[str, Any]) -> None:
    import vlmeval.api

    for name in (MODEL, "Claude-Sonnet-4.5", "Gemini-2.5-Flash", "GPT-6-Astra", "Claude-Opus-5.5"):
        assert registered[name].func is vlmeval.api.FindItOpenRouter
        assert "retry" in registered[name].keywords, "where the host puts its --retry"
    assert registered["GPT-5.4-2026-03-05"].func is not vlmeval.api.FindItOpenRouter
    assert vlmeval.api.FindItOpenRouter.is_api


def one_message() -> list[dict[str, str]]:
    from vlmeval_findit.data import load_dataset
    from vlmeval_findit.engine import prompts_of

    return to_host_message(prompts_of(load_dataset(DATA)).message(0))


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    return monkeypatch


def test_a_reply_and_a_failed_call_come_with_their_records(
    registered: dict[str, Any], keyed: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ChatServer(in_turn(completion("[]"), error(400, f"no {KEY} here"))) as server:
        keyed.setenv("OPENROUTER_BASE_URL", server.url)
        model = registered[MODEL]()
        reply, failed = (model.generate(message=one_message(), dataset=DATA) for _ in range(2))
    assert reply["prediction"] == "[]"
    assert failed["prediction"] == "Failed to obtain answer via API. HTTP 400: no *** here"
    for item, status in ((reply, 200), (failed, 400)):
        record = json.loads(item["extra_records"])["findit"]
        (image,) = record["images"]
        assert image["original"] == image["sent"] == [512, 512]
        assert record["space"] == {"kind": "openai_high"}
        assert record["call"]["status"] == status
    assert capsys.readouterr().out == ""
    assert "SECRET" not in repr((vars(model), failed))


def test_the_engine_has_a_backend_for_each_kind_of_model(
    registered: dict[str, Any], keyed: pytest.MonkeyPatch
) -> None:
    from vlmeval_findit.engine import HttpBackend, LocalBackend
    from vlmeval_findit.host import VLMEvalKitModel

    budget = Budget(1.0)
    asking = Asking(calls=CallOptions(timeout=5.0), budget=budget)
    backend = deployment_of(ModelEntry(MODEL), asking).backend()
    assert isinstance(backend, HttpBackend)
    assert (backend.service.budget, backend.service.timeout) == (budget, 5.0)
    assert isinstance(VLMEvalKitModel(ModelEntry("FullImage")).backend(), LocalBackend)
    deployment_of(ModelEntry(MODEL, {"max_new_tokens": 64})).check()
    for name, settings, why in (
        (MODEL, {"max_tokens": "64"}, "whole number"),
        (MODEL, {"n": 2}, "n: 2 replies"),
        ("FullImage", {"max_new_tokens": 64}, "max_new_tokens has no effect"),
    ):
        with pytest.raises(ValueError, match=f"line 7: .*{name}: .*{why}"):
            deployment_of(ModelEntry(name, settings, where="s.yaml, line 7: ")).check()
    # The costs of VLMEvalKit's own models are not known.
    theirs = next(n for n, maker in registered.items() if "GPT4o" in n and hasattr(maker, "func"))
    VLMEvalKitModel(ModelEntry(theirs)).check()
    with pytest.raises(ValueError, match="costs is not known"):
        VLMEvalKitModel(ModelEntry(theirs), asking).check()


# --- whole runs -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_failed_calls_are_repeated_by_the_next_run(lmu: Path, tmp_path: Path) -> None:
    answers = perfect_answers(MODEL, [DATA, SHOWN], "openrouter")
    shaky = True

    def script(asked: Asked, number: int) -> Answer:
        if shaky and number % 6 == 1:
            return error(400, "this picture is too nice")
        if shaky and number % 6 == 3:
            return error(429, "slow down", Retry_After="0")
        return completion(answers[content(asked.body)])

    with ChatServer(script) as server:
        done = ask(server, tmp_path, lmu)
        first = len(server.asked)
        path, shown = (predictions(tmp_path / "outputs", MODEL, name) for name in (DATA, SHOWN))
        failed = sum(text.startswith("Failed to obtain") for text in replies(path).values())
        assert done.returncode == 1, "some calls failed"
        # The first 400 and the first 429 are said, and no other.
        for status in ("HTTP 400", "HTTP 429"):
            assert done.stdout.count(f"/api/v1: {status}") == 2, "once a dataset"
        assert f"{MODEL} on {DATA}: {failed} calls failed" in done.stdout
        assert 2 <= failed <= 5
        provenance = json.loads(path.with_name(f"{path.stem}_provenance.json").read_text())
        assert provenance["totals"]["failed"] == failed
        assert metric_values(path)["f1"] == 100.0, "of the calls that were answered"
        shaky = False
        done = ask(server, tmp_path, lmu)
        assert done.returncode == 0, done.stdout
        again = len(server.asked) - first
    for file in (path, shown):
        assert metric_values(file)["f1"] == metric_values(file)["f1_failed_missed"] == 100.0
        records = [json.loads(row["extra_records"]) for row in json.loads(file.read_text())]
        assert {record["findit"]["call"]["cost"] for record in records} == {0.01}, "none was lost"
    assert 0 < again - failed < 3, "the other dataset's failed calls, no other"
