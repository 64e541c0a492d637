"""`run` at servers: FindIt asks by itself, and VLMEvalKit is not imported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, Asked, ChatServer, completion, error
from host_runs import STOCK, environment, require_host, run

from vlmeval_findit.cli import main
from vlmeval_findit.cli import run as run_command
from vlmeval_findit.core import vlmevalkit
from vlmeval_findit.engine import calls
from vlmeval_findit.protocol import FORCE_VARIABLE, LOGPROBS_VARIABLE

DATA = "FindIt_Demo_xyxy_json"
MODEL = "Qwen3-VL"
REPLY = '[{"bbox": [0, 0, 1000, 1000]}]'

IN_A_PROCESS = """
import sys
from vlmeval_findit.cli import main
from vlmeval_findit.core import vlmevalkit
status = main(sys.argv[1:])
for name in ("vlmeval", "torch", "vlmeval_findit.benchmarks.vpbench.benchmark", "numpy.ma"):
    assert name not in sys.modules, f"{name} was imported"
sys.exit(status)
"""


@pytest.fixture(autouse=True)
def _no_settings_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags become variables of the process; here they end with their test."""
    for name in (FORCE_VARIABLE, LOGPROBS_VARIABLE, "FINDIT_SKIP_MISSING"):
        monkeypatch.setenv(name, "")


def right(asked: Asked, number: int) -> Answer:
    return completion(REPLY)


def words(server: ChatServer, *more: str, data: tuple[str, ...] = (DATA,)) -> list[str]:
    return ["run", "--data", *data, "--base-url", server.url, "--limit", "4", *more]


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Return the files that both ways write alike; a provenance says when it was written."""
    endings = (f"{DATA}.json", "_identity.json", "_details.jsonl", "_score.csv")
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if path.name.endswith(endings)
    }


def in_a_process(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", IN_A_PROCESS, *arguments]
    env = environment(folder / "lmu")
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_a_run_at_a_server_imports_only_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_host()
    with ChatServer(right) as server:
        command = words(server, "--model", MODEL, "--retry", "2", "--work-dir", str(tmp_path / "o"))
        done = in_a_process(command, tmp_path)
        assert done.returncode == 0, done.stderr
        monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
        monkeypatch.chdir(tmp_path)
        assert main(command) == 0
        assert len(server.asked) == 4, "nothing is asked twice"
    assert f"{DATA}  {MODEL}" in done.stdout
    folder = tmp_path / "o" / MODEL
    stem = f"{MODEL}_{DATA}"
    endings = ("", "_identity", "_provenance")
    expected = {f"{stem}{ending}.json" for ending in endings}
    expected |= {f"{stem}_calls.jsonl", f"{stem}_details.jsonl", f"{stem}_score.csv"}
    expected.add(f"{stem}_sums.msgpack")
    assert {path.name for path in folder.iterdir()} == expected


@pytest.mark.slow
@pytest.mark.host
def test_it_goes_on_from_a_run_under_vlmevalkit(tmp_path: Path) -> None:
    require_host()
    with ChatServer(right) as server:
        model = {"class": "FindItServer", "model": MODEL, "base_url": server.url}
        config = {
            "model": {MODEL: model},
            "data": {DATA: {"class": "FindItObjectDetection", "dataset": DATA}},
        }
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config))
        out = str(tmp_path / "o")
        host = ["--config", str(path), "--work-dir", out]
        done = run(STOCK, [*host, "--limit", "2"], tmp_path, environment(tmp_path / "lmu"))
        assert done.returncode == 0, done.stdout
        assert len(server.asked) == 2
        ours = words(server, "--model", MODEL, "--work-dir", out)
        assert in_a_process(ours, tmp_path).returncode == 0
        assert len(server.asked) == 4, "only what has no answer is asked"
        before = bytes_of(tmp_path / "o" / MODEL)
        done = run(STOCK, [*host, "--limit", "4"], tmp_path, environment(tmp_path / "lmu"))
        assert done.returncode == 0, done.stdout
        assert len(server.asked) == 4
    assert len(before) == 4
    assert bytes_of(tmp_path / "o" / MODEL) == before


def test_tables_and_headers_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    for function in (calls.load_dataset, calls.rows_to_leave_out):

        def noted(*given: Any, function: Any = function) -> Any:
            read.append(function.__name__)
            return function(*given)

        monkeypatch.setattr(calls, function.__name__, noted)
    with ChatServer(right) as server:
        assert main(words(server, "--model", MODEL, "--work-dir", str(tmp_path))) == 0
    assert sorted(read) == ["load_dataset", "rows_to_leave_out"]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (REPLY, None),
        ("[]", None),
        ("I see it.", None),
        ('[{"box": [0, 0, 9, 9]}]', None),  # It hits nothing: no value changes
        ('[{"box": [0, 0, 1000, 1000]}]', "another key 4"),
        ("[0, 0, 1000, 1000]", "4 of 4 replies that do not adhere"),
        ("It is at (0, 0, 1000, 1000).", "4 of 4 replies that do not adhere"),
    ],
)
def test_a_run_says_of_replies_what_score_says(
    reply: str, said: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Asked now, taken from the journal, scored again: the same lines."""
    out = str(tmp_path)
    told = []
    with ChatServer(lambda asked, number: completion(reply)) as server:
        command = words(server, "--model", MODEL, "--work-dir", out)
        for arguments in (command, command, ["score", out]):
            assert main(arguments) == 0
            lines = capsys.readouterr().out.splitlines()
            told.append([line for line in lines if "lenient parsing would" in line])
    assert told[0] == told[1] == told[2]
    assert len(told[0]) == (said is not None)
    assert said is None or said in told[0][0]


def test_a_reply_that_quotes_a_key_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    key = "sk-c0ffee-SECRET"
    monkeypatch.setenv("MY_API_KEY", key)
    with ChatServer(lambda asked, number: completion(f"{REPLY} {key}")) as server:
        assert main(words(server, "--model", MODEL, "--work-dir", str(tmp_path))) == 1
    assert "4 calls failed" in caplog.text
    assert "the reply quotes a credential (the value of MY_API_KEY)" in caplog.text
    assert key not in caplog.text
    files = [path for path in (tmp_path / MODEL).iterdir() if path.is_file()]
    assert len(files) == 7
    assert [path for path in files if key.encode() in path.read_bytes()] == []


def test_files_have_the_name_that_was_typed(tmp_path: Path) -> None:
    typed = f"{DATA}_bbox"
    with ChatServer(right) as server:
        out = ["--work-dir", str(tmp_path)]
        assert main(words(server, "--model", MODEL, *out, data=(typed,))) == 0
        assert main(words(server, "--model", MODEL, *out, data=(DATA,))) == 0
    for name in (typed, DATA):
        path = tmp_path / MODEL / f"{MODEL}_{name}_score.csv"
        assert f"{MODEL},{name}," in path.read_text().splitlines()[1]


def test_failed_calls_are_status_1_and_asked_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def script(asked: Asked, number: int) -> Answer:
        return error(400, "this picture is too odd") if number == 1 else completion(REPLY)

    with ChatServer(script) as server:
        command = words(server, "--model", MODEL, "--work-dir", str(tmp_path), "--api-nproc", "1")
        assert main(command) == 1
        reason = "1 call failed; the first: HTTP 400: this picture is too odd"
        assert f"{MODEL} on {DATA}: {reason}" in caplog.text
        assert main(command) == 0
        assert len(server.asked) == 5


def test_what_answered_nothing_is_an_error_and_binds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its error comes before its row of scores; another server may be asked the same."""
    monkeypatch.chdir(tmp_path)
    model = ["--model", f"{MODEL}=stored-under-this"]
    with ChatServer(lambda asked, number: error(400, "this picture is too odd")) as odd:
        assert main([*words(odd, "--limit", "2"), *model]) == 1
    said = capsys.readouterr()
    assert said.err.index("error: ") < said.err.index("2 calls failed")
    assert "no call was answered" in said.err
    assert "no call was answered" in said.out
    assert " 0.0" not in said.out
    with ChatServer(right) as server:
        assert main([*words(server, "--limit", "2", "--temperature", "0.5"), *model]) == 0
    with ChatServer(right) as server:
        assert main([*words(server, "--limit", "2"), *model]) == 2
    assert "is of another run" in capsys.readouterr().err


def test_a_model_that_is_refused_leaves_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def script(asked: Asked, number: int) -> Answer:
        denied = asked.body["model"] == "closed"
        return error(401, "no such key") if denied else completion(REPLY)

    with ChatServer(script) as server:
        names = ["--model", "Closed=closed", "Open=open", "--like", MODEL]
        command = words(server, *names, "--work-dir", str(tmp_path), data=(DATA, f"{DATA}_bbox_2d"))
        assert main(command) == 1
    shown = capsys.readouterr()
    assert "no such key" in shown.err
    scored = list(tmp_path.rglob("*_score.csv"))
    assert len(scored) == 2
    assert {path.parent.name for path in scored} == {"Open"}
    assert "Closed" not in shown.out


@pytest.mark.sees("run --force")
def test_another_setting_is_another_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ChatServer(right) as server:
        command = words(server, "--model", MODEL, "--work-dir", str(tmp_path))
        assert main(command) == 0
        assert main([*command, "--temperature", "0.7"]) == 2
        assert "setting temperature: recorded " in capsys.readouterr().err
        assert len(server.asked) == 4, "refused before the first call"
        assert main([*command, "--temperature", "0.7", "--force"]) == 0
        assert len(server.asked) == 8


def test_ctrl_c_stores_what_is_answered(tmp_path: Path) -> None:
    def script(asked: Asked, number: int) -> Answer:
        if number == 0:
            os.kill(os.getpid(), signal.SIGINT)
        return completion(REPLY)

    with ChatServer(script) as server:
        command = words(server, "--model", MODEL, "--work-dir", str(tmp_path), "--api-nproc", "1")
        assert main(command) == 130
        asked = len(server.asked)
        assert 1 <= asked < 4
        assert main(command) == 0
        assert len(server.asked) == 4


@pytest.mark.parametrize(
    ("more", "variables", "why"),
    [
        (["--mode", "infer"], {}, "--mode infer needs VLMEvalKit's runner (findit score scores"),
        (["--mode", "eval"], {}, "--mode eval needs VLMEvalKit's runner"),
        (["--verbose", "--use-vllm"], {}, "--use-vllm: other flags than FindIt's need"),
        (["--retries=3"], {}, "--retries: other flags than FindIt's need VLMEvalKit's runner"),
        ([], {"PRED_FORMAT": "tsv"}, "PRED_FORMAT=tsv: other tables than JSON need"),
        ([], {"WORLD_SIZE": "2"}, "a run among the processes of torchrun needs"),
    ],
)
def test_without_vlmevalkit_what_it_does_is_refused(
    more: list[str],
    variables: dict[str, str],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def nowhere() -> Any:
        return None

    monkeypatch.setattr(run_command, "package_folder", nowhere)
    monkeypatch.setattr("vlmeval_findit.core.package_folder", nowhere)
    monkeypatch.setattr("vlmeval_findit.core.vlmevalkit.package_folder", nowhere)
    with ChatServer(right) as server:
        command = words(server, "--model", MODEL, "--work-dir", str(tmp_path))
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            assert main([*command, *more]) == 2
        error = capsys.readouterr().err
        assert why in error
        assert "and VLMEvalKit is not installed: pip install " in error
        assert not server.asked
        assert main(command) == 0


def test_a_vlmevalkit_without_a_runner_is_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As pip installs upstream's."""
    package = tmp_path / "site" / "vlmeval"
    package.mkdir(parents=True)
    for place in ("cli.run", "core.vlmevalkit", "engine.deployment_kinds"):
        monkeypatch.setattr(f"vlmeval_findit.{place}.package_folder", lambda: package)
    vlmevalkit._text.cache_clear()
    vlmevalkit.host_version.cache_clear()
    here = ["run", "--data", DATA, "--limit", "1", "--work-dir", str(tmp_path)]
    with ChatServer(right) as server:
        assert main(words(server, "--model", MODEL, "--work-dir", str(tmp_path))) == 0
        assert main([*here, "--model", "FullImage"]) == 0
        capsys.readouterr()
        for more in (["--mode", "infer"], ["--use-vllm"]):
            assert main([*here, "--model", "FullImage", *more]) == 2
            error = capsys.readouterr().err
            assert f"and the VLMEvalKit in {package} has no runner" in error
            assert "In a clone of it, type:\n  python run.py " in error
    vlmevalkit._text.cache_clear()
    vlmevalkit.host_version.cache_clear()


@pytest.mark.host  # Its runner takes --retry
@pytest.mark.parametrize("failed", [False, True])
def test_a_dry_run_subtracts_what_is_stored(
    failed: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of each model and dataset, also if a run ended early; failed calls are asked again."""
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    monkeypatch.chdir(tmp_path)
    other = DATA.replace("xyxy", "xywh")
    line = ["--space", "grid1000", "--retry", "1"]

    def answer(asked: Asked, number: int) -> Answer:
        return error(500, "no") if failed and number == 1 else completion(REPLY)

    with ChatServer(answer) as server:
        asked = words(server, *line, "--model", MODEL, data=(DATA, other))
        main([*asked, "--limit", "2"])
        path = tmp_path / "outputs" / MODEL / f"{MODEL}_{other}_calls.jsonl"
        path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])  # as after a kill
        capsys.readouterr()
        command = [*asked, "Mine", "--dry-run"]
        assert main(command) == 0
    counts = {line.split()[0]: line.split()[-2:] for line in capsys.readouterr().out.splitlines()
              if line.startswith((MODEL, "Mine")) and "over" not in line}  # fmt: skip
    assert counts == {MODEL: ["8", "2" if failed else "3"], "Mine": ["8", "0"]}
