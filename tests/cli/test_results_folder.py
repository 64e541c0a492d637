"""Where results of ``run`` go: one rule with VLMEvalKit's runner and without it."""

from __future__ import annotations

import os
import shlex
from contextlib import chdir
from pathlib import Path
from types import SimpleNamespace

import pytest
from chat_server import ChatServer, completion
from host_runs import RUN_FINDIT, environment, require_host, run

from vlmeval_findit.cli import main
from vlmeval_findit.core import Runner, program, read_env_file

DATA = "FindIt_Scenes_mini_xyxy_json"

RULES = [
    ({}, "", "outputs"),
    ({}, "--work-dir typed", "typed"),
    ({"MMEVAL_ROOT": ""}, "", "outputs"),
    ({"MMEVAL_ROOT": "named"}, "", "named"),
    ({"MMEVAL_ROOT": "named"}, "--work-dir named", "named"),
    ({"MMEVAL_ROOT": "named"}, "--work-dir typed", "typed"),
]
"""Variables, a flag, and the folder of the results."""

OF_FOLDERS = ("MMEVAL_ROOT", "LMUData", "PRED_FORMAT")
OF_THE_HUB = ("HF_HOME", "HF_HUB_CACHE", "HF_ENDPOINT")


@pytest.fixture
def env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the ``.env`` of a VLMEvalKit; its variables end with the test."""
    pytest.importorskip("dotenv", reason="VLMEvalKit brings python-dotenv: pip install '.[run]'")
    for name in OF_FOLDERS:
        monkeypatch.setenv(name, os.environ.get(name, ""))
    for name in (*OF_THE_HUB, "HF_TOKEN"):
        # Empty is a folder to the hub's library; so what the file sets is taken away by a patch.
        monkeypatch.setenv(name, "none")
        monkeypatch.delenv(name)
    folder = tmp_path / "clone" / "vlmeval"
    folder.mkdir(parents=True)
    monkeypatch.setattr("vlmeval_findit.core.vlmevalkit.package_folder", lambda: folder)
    (folder.parent / "run.py").touch()
    return folder.parent / ".env"


def check_folder_of_results(model: str, folder: str, printed: str, following: str) -> None:
    assert (Path(folder) / model / f"{model}_{DATA}.json").is_file()
    assert f"FindIt: answers and scores in {Path(folder) / model}\n" in printed
    assert f"Next: {following} {folder}\n" in printed
    others = {"outputs", "typed", "named"} - {folder}
    assert not any(Path(other).exists() for other in others)


def run_at_a_server(flags: str) -> None:
    with ChatServer(lambda asked, number: completion("[]")) as server:
        command = f"run --data {DATA} --model Mine --space unit --limit 1 --base-url {server.url}"
        assert main([*command.split(), *shlex.split(flags)]) == 0


@pytest.mark.parametrize(("variables", "flags", "folder"), RULES)
def test_results_of_servers_are_where_the_rule_says(
    variables: dict[str, str],
    flags: str,
    folder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    run_at_a_server(flags)
    printed = capsys.readouterr().err
    check_folder_of_results("Mine", folder, printed, f"{program()} report")
    assert ("MMEVAL_ROOT=named is not used: --work-dir typed" in printed) == (
        variables.get("MMEVAL_ROOT") == "named" and folder == "typed"
    )


@pytest.mark.host
@pytest.mark.slow
@pytest.mark.parametrize(("variables", "flags", "folder"), RULES)
def test_results_of_the_runner_are_where_the_rule_says(
    variables: dict[str, str],
    flags: str,
    folder: str,
    lmu_data: Path,
    tmp_path: Path,
) -> None:
    require_host()
    command = f"run --data {DATA} --model FullImage --limit 1 --mode infer {flags}"
    done = run(RUN_FINDIT, command.split(), tmp_path, environment(lmu_data, **variables))
    assert done.returncode == 0, done.stdout
    with chdir(tmp_path):
        check_folder_of_results("FullImage", folder, done.stdout, f"python {RUN_FINDIT[0]} score")


def test_a_typed_folder_overrides_the_file_of_the_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    require_host()
    from vlmeval_findit.host import registration, run_host

    seen = []
    monkeypatch.setattr("sys.argv", ["findit"])
    monkeypatch.setenv("MMEVAL_ROOT", "before")
    runner = SimpleNamespace(
        load_env=lambda: os.environ.update(MMEVAL_ROOT="named"),
        main=lambda: seen.append(os.environ["MMEVAL_ROOT"]),
    )
    monkeypatch.setattr(registration, "_module", lambda _: runner)
    run_host(Runner(Path("run.py"), ""), [], Path("typed"))
    assert seen == ["typed"]


@pytest.mark.parametrize(("flags", "folder"), [("", "named"), ("--work-dir typed", "typed")])
def test_the_file_of_vlmevalkit_names_a_folder(
    flags: str,
    folder: str,
    env_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    env_file.write_text("MMEVAL_ROOT=named\n", encoding="utf-8")
    run_at_a_server(flags)
    check_folder_of_results("Mine", folder, capsys.readouterr().err, f"{program()} report")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        *((name, "{name}=before is not used: {file} says after") for name in OF_FOLDERS),
        *((name, "{name}=before is not used: {file} says after") for name in OF_THE_HUB),
        ("HF_TOKEN", "{name} is not used: {file} has another"),
    ],
)
def test_the_file_overrides_a_variable_and_says_so(
    name: str, line: str, env_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "before")
    assert read_env_file() == []
    env_file.write_text(f"{name}=\nOPENAI_API_KEY=sk\n", encoding="utf-8")
    assert read_env_file() == []
    assert os.environ[name] == "before"
    env_file.write_text(f"{name}=after\nOPENAI_API_KEY=sk\n", encoding="utf-8")
    assert read_env_file() == [line.format(name=name, file=env_file)]
    assert os.environ[name] == "after"
    assert os.environ.get("OPENAI_API_KEY") != "sk"
    assert read_env_file() == []
