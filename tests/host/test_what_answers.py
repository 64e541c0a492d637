"""What answers is the object that VLMEvalKit passes, whatever words made it.

The runner's own loop, in this process, with the command line of another program.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from chat_server import ChatServer, completion
from few_fast import every_nth_fast
from host_runs import require_host
from host_task import run_task

from vlmeval_findit.protocol import Identity
from vlmeval_findit.storage import read_identity, read_predictions

pytestmark = pytest.mark.host

DATA = "FindIt_Demo_xyxy_json"
CLASS = {"class": "FindItObjectDetection", "dataset": DATA}
REPLY = '[{"bbox": [0, 0, 1000, 1000]}]'


@pytest.fixture(autouse=True)
def _registered(lmu: Path) -> Iterator[None]:
    require_host()
    from vlmeval_findit.host import OUTCOMES, register

    register()
    yield
    OUTCOMES.clear()


@pytest.fixture(scope="module")
def running() -> Iterator[ChatServer]:
    with ChatServer(lambda *_: completion(REPLY)) as running:
        yield running


@pytest.fixture
def server(running: ChatServer) -> ChatServer:
    """Return the server, which nobody has asked yet."""
    running.asked.clear()
    return running


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where a run without further flags is, once it was asked."""
    return tmp_path_factory.mktemp("plain")


def served(server: ChatServer, *words: str, name: str = "my-served") -> list[str]:
    url = ["--base-url", server.url] if "--base-url" not in words else []
    return ["--data", DATA, "--limit", "2", "--model", name, *url, *words]


def identity(work_dir: Path, model: str) -> Identity:
    found = read_identity(work_dir / model / f"{model}_{DATA}.json")
    assert found is not None
    return found


# --- a server -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "says"),
    every_nth_fast(
        [
            ([], ["--temperature", "0.7"], "setting temperature: recorded not set, now 0.7"),
            (["--temperature", "0"], ["--temperature=0.7"], "setting temperature: recorded 0.0"),
            ([], ["--top-p", "0.5"], "setting top_p"),
            ([], ["--top-k", "5"], "setting top_k"),
            ([], ["--repetition-penalty", "1.1"], "setting repetition_penalty"),
            ([], ["--max-tokens", "99"], "setting max_tokens: recorded 32768, now 99"),
            ([], ["--thinker"], "setting max_tokens: recorded 32768, now 65536"),
            (["--extra-body", '{"seed": 1}'], ["--extra-body", '{"seed": 2}'], "setting seed"),
            ([], ["--extra-body", '{"chat_template_kwargs": {"a": 1}}'], "chat_template_kwargs"),
            ([], ["--custom-prompt", "internvl2"], "setting custom_prompt"),
            ([], ["--local-media"], "setting local_media"),
            ([], ["--base-url", "http://127.0.0.1:9/v1"], "endpoint: recorded http://127.0.0.1:"),
        ],
        3,
    ),
)
def test_each_flag_that_changes_the_object_makes_another_run(
    before: list[str],
    now: list[str],
    says: str,
    server: ChatServer,
    plain: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FINDIT_SPACE", "grid1000")
    folder = tmp_path if before else plain
    if not any(folder.iterdir()):
        assert run_task(served(server, *before), folder) == []
        assert len(server.asked) == 2
        server.asked.clear()
    (problem,) = run_task(served(server, *now), folder)
    assert says in problem
    assert "is of another run" in problem
    assert server.asked == [], "refused before its first call"


def test_what_changes_no_answer_is_the_same_run(
    server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINDIT_SPACE", "grid1000")
    assert run_task(served(server, "--key", "sk-first-key-of-a-user"), tmp_path) == []
    words = ["--retry", "1", "--timeout", "60", "--key", "sk-other-key", "--api-nproc", "1"]
    assert run_task(served(server, *words, "--verbose"), tmp_path) == []
    assert len(server.asked) == 2
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"first-key" not in path.read_bytes(), path
    run = identity(tmp_path, "my-served")
    assert run.answering.kind == "LMDeployAPI"
    assert run.answering.endpoint == server.url
    assert run.answering.checkpoint == "my-served"


@pytest.mark.parametrize("name", ["Qwen3-VL-8B", "InternVL3-8B-hf", "FullImage", "FindIt-Nano"])
def test_a_server_cannot_take_the_name_of_our_model(
    name: str, server: ChatServer, tmp_path: Path
) -> None:
    (problem,) = run_task(served(server, name=name), tmp_path)
    assert f"{name} is FindIt's model of the class FindIt" in problem
    assert "VLMEvalKit passes a LMDeployAPI at http://127.0.0.1:" in problem
    assert f"findit run --data DATASET --model {name} --base-url URL" in problem
    assert not server.asked


def test_a_served_model_has_its_rows_space(server: ChatServer, tmp_path: Path) -> None:
    assert run_task(served(server, name="Qwen3-VL-8B-Instruct"), tmp_path) == []
    assert identity(tmp_path, "Qwen3-VL-8B-Instruct").space == {"kind": "grid1000"}
    asked = len(server.asked)
    for name in ("Qwen2.5-VL-3B-Instruct", "Qwen2.5-VL-3B-mine"):
        problems = run_task(served(server, name=name), tmp_path)
        assert problems, "within which bounds the server resizes is not known"
    assert len(server.asked) == asked


# --- a --config file ------------------------------------------------------------------------------


def configured(tmp_path: Path, model: dict[str, Any], name: str, data: Any = None) -> list[str]:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model": {name: model}, "data": data or {DATA: CLASS}}))
    return ["--config", str(path), "--limit", "2"]


def test_another_checkpoint_under_a_known_name_is_another_run(tmp_path: Path) -> None:
    from vlmeval_findit.models import local_names

    names = local_names()
    models = [
        {"class": "FindItLocalModel", "like": "FindIt-Nano", "model_path": names[name][1]}
        for name in ("FindIt-Nano", "FindIt-Nano-px")
    ]
    assert run_task(configured(tmp_path, models[0], "FindIt-Nano"), tmp_path / "o") == []
    first = identity(tmp_path / "o", "FindIt-Nano")
    (problem,) = run_task(configured(tmp_path, models[1], "FindIt-Nano"), tmp_path / "o")
    assert f"revision: recorded {first.answering.revision}, now sha256:" in problem
    (tmp_path / "other").mkdir()
    assert run_task(configured(tmp_path, models[1], "FindIt-Nano"), tmp_path / "other") == []
    assert identity(tmp_path / "other", "FindIt-Nano").answering.revision in problem


@pytest.mark.parametrize(
    ("name", "model", "says"),
    [
        ("FullImage", {"class": "FindItBaseline", "baseline": "CenterBox"}, "is the baseline"),
        ("Qwen3-VL-8B", {"class": "LMDeployAPI"}, "VLMEvalKit passes a LMDeployAPI"),
        ("Qwen3-VL-8B", {"class": "FindItServer", "model": "GLM-4.6V"}, "passes one of GLM-4.6V"),
        ("Qwen3-VL-8B-Instruct", {"class": "LMDeployAPI", "model": "GLM-4.6V"}, "one of GLM-4.6V"),
        ("GLM-4.6V", {"class": "LMDeployAPI", "model": "x/Qwen3-VL-8B-Instruct"}, "Qwen3-VL"),
    ],
)
def test_a_name_of_one_model_for_another_is_refused(
    name: str, model: dict[str, Any], says: str, server: ChatServer, tmp_path: Path
) -> None:
    address = {"FindItServer": "base_url", "LMDeployAPI": "api_base"}.get(model["class"])
    if address:
        model = {"model": name, **model, address: server.url}
    if "baseline" in model:
        from vlmeval_findit.benchmarks import baselines

        model = {**model, "baseline": next(each for each in baselines() if each != name)}
    (problem,) = run_task(configured(tmp_path, model, name), tmp_path)
    assert says in problem
    assert not server.asked


def test_users_may_name_servers_and_models(server: ChatServer, tmp_path: Path) -> None:
    model = {"class": "LMDeployAPI", "model": "Qwen3-VL-8B-Instruct", "api_base": server.url}
    model |= {"temperature": 0.7, "key": "sk-secret-of-config"}
    assert run_task(configured(tmp_path, model, "named-by-user"), tmp_path) == []
    run = read_identity(tmp_path / "named-by-user" / f"named-by-user_{DATA}.json")
    assert run is not None
    assert (run.answering.row, run.space) == ("Qwen3-VL", {"kind": "grid1000"})
    assert run.answering.sampling_note == "replies were sampled at temperature 0.7"
    assert "sk-secret" not in json.dumps(run.answering.settings)


# --- the coordinate space -------------------------------------------------------------------------


def test_the_space_of_judge_args_reaches_evaluate(server: ChatServer, tmp_path: Path) -> None:
    """VLMEvalKit does not pass it before the calls: the record is completed when it comes."""
    model = {"class": "LMDeployAPI", "model": "own", "api_base": server.url}
    words = configured(tmp_path, model, "own")
    argv = ["other", "--judge-args", '{"space": "unit"}']
    (problem,) = run_task(words, tmp_path / "none", argv)
    assert "the coordinate space of the model 'own' is not known" in problem
    words += ["--judge-args", '{"space": "grid1000"}']
    for work_dir in ("none", "stated"):
        assert run_task(words, tmp_path / work_dir, argv) == []
        assert identity(tmp_path / work_dir, "own").space == {"kind": "grid1000"}
    assert len(server.asked) == 4, "the answers of the run without a space are scored"
    assert run_task(configured(tmp_path, model, "own"), tmp_path / "stated") == []
    words[-1] = '{"space": "unit"}'
    (problem,) = run_task(words, tmp_path / "stated", argv)
    assert "coordinate space: recorded" in problem


def test_a_space_from_the_runner_is_known_before_the_calls(
    server: ChatServer, tmp_path: Path
) -> None:
    (problem,) = run_task(served(server), tmp_path)
    assert "is not known, and it is not guessed" in problem
    assert not server.asked
    words = ["--judge-args", '{"space": "grid1000"}']
    assert run_task(served(server, *words), tmp_path) == []
    assert identity(tmp_path, "my-served").space == {"kind": "grid1000"}


# --- the format of predictions --------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    every_nth_fast(
        [
            ["--data", DATA, "--model", "FullImage"],
            [f"--data={DATA}", "--model=FullImage"],
            ["--dat", DATA, "--model", "FullImage"],
            ["--config=CONFIG"],
            ["--conf", "CONFIG"],
            ["--con=CONFIG"],
        ],
        3,
    ),
)
@pytest.mark.parametrize("argv", [None, ["notebook", "-f", "kernel.json"]])
def test_predictions_are_json_whatever_the_spelling(
    words: list[str], argv: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PRED_FORMAT", raising=False)
    model = {"class": "FindItBaseline", "baseline": "FullImage"}
    config = configured(tmp_path, model, "FullImage")[1]
    spelled = [word.replace("CONFIG", config) for word in words]
    assert run_task([*spelled, "--limit", "2"], tmp_path / "o", argv) == []
    (path,) = (tmp_path / "o").rglob(f"FullImage_{DATA}.*")
    assert path.suffix == ".json"
    assert len(read_predictions(path)) == 2


def test_a_format_that_the_user_names_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRED_FORMAT", "tsv")
    words = ["--data", DATA, "--model", "FullImage", "--limit", "2"]
    assert run_task(words, tmp_path) == []
    assert (tmp_path / "FullImage" / f"FullImage_{DATA}.tsv").is_file()
    assert not (tmp_path / "FullImage" / f"FullImage_{DATA}.json").exists()


def test_other_datasets_keep_the_hosts_format(
    host: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vlmeval import run

    monkeypatch.delenv("PRED_FORMAT", raising=False)
    assert run.get_pred_file_path("w", "m", "MMBench_DEV_EN").endswith(".xlsx")
    assert run.get_pred_file_path("w", "m", DATA).endswith(f"m_{DATA}.json")
