"""Who may state what numbers mean, and who goes first: every setting, at every door.

Doors ask a server whose replies are right in thousandths, or score predictions of another program.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, Asked, ChatServer, completion
from every_pair import every_pair
from few_fast import few_fast
from host_runs import RUN_FINDIT, STOCK, environment, require_host, run
from PIL import Image

import vlmeval_findit as findit
from vlmeval_findit.benchmarks.vpbench import mark_choices
from vlmeval_findit.boxes import space_from
from vlmeval_findit.cli import main
from vlmeval_findit.models import MODELS, settings_of_model
from vlmeval_findit.protocol import (
    FORCE_VARIABLE,
    SETTINGS,
    Known,
    OfUnknown,
    Settings,
    ThoughtMarks,
    choose_value,
    say_once,
    settings_from,
)
from vlmeval_findit.scoring import score_file
from vlmeval_findit.storage import read_identity

DATA = "FindIt_Demo_xyxy_json"
REPLY = '[{"bbox": [0, 0, 1000, 1000]}]'
KNOWN, UNKNOWN = "Qwen3-VL", "Mystery-7B"  # the first answers in thousandths
LETTERBOX = {"kind": "letterbox", "side": 777}
VARIABLES = ["unit", "no_rescale", json.dumps(LETTERBOX), "pixels"]


@pytest.fixture(autouse=True)
def _settings_and_remarks_end_with_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORCE_VARIABLE, "")  # --force sets it for the process
    say_once.cache_clear()


@pytest.fixture
def server() -> Iterator[ChatServer]:
    def right(asked: Asked, number: int) -> Answer:
        return completion(REPLY)

    with ChatServer(right) as started:
        yield started


# --- the rule -------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda each: each.variable)
@pytest.mark.parametrize("has_variable", [True, False])
@pytest.mark.parametrize("has_known", [True, False])
@pytest.mark.parametrize("has_stated", [True, False])
@pytest.mark.parametrize("has_record", [True, False])
def test_who_goes_first(
    setting: Any, has_record: bool, has_stated: bool, has_known: bool, has_variable: bool
) -> None:
    choice = choose_value(
        setting,
        "M",
        recorded="R1" if has_record else None,
        stated="S1" if has_stated else None,
        known=Known("K1", "model table: Row") if has_known else None,
        variable="V1" if has_variable else None,
    )
    by_rank = {
        "R1": (has_record, "recorded by the run"),
        "S1": (has_stated, "setting"),
        "K1": (has_known, "model table: Row"),
        "V1": (has_variable, setting.variable),
    }
    first = next((value for value, (is_said, _) in by_rank.items() if is_said), None)
    assert choice.value == first
    assert choice.source.startswith(by_rank[first][1] if first else "")
    is_in_place = first == "S1" and has_known
    assert ("in place of K1 (model table: Row)" in choice.source) is is_in_place
    assert bool(choice.remark) is (is_in_place or has_variable)
    if has_variable and not is_in_place:
        assert setting.variable in choice.remark
        assert "V1" in choice.remark
        assert str(first) in choice.remark


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda each: each.variable)
def test_a_variable_that_says_the_same_is_not_told(setting: Any) -> None:
    known = Known("c", "model table: Row")
    assert choose_value(setting, "M", known=known, variable="c").remark == ""
    assert choose_value(setting, "M", stated="c", known=known).source == "setting"


# --- doors ----------------------------------------------------------------------------------------


def _asked_by_run(server: ChatServer, model: str, flags: list[str]) -> Path:
    at = ["--model", model, "--base-url", server.url, "--limit", "2", "--work-dir", "out"]
    assert main(["run", "--data", DATA, *at, *flags]) == 0
    return Path("out", model, f"{model}_{DATA}.json")


def _asked_by_sweep(server: ChatServer, model: str, flags: list[str]) -> Path:
    Path("sweep.yaml").write_text(f"models: [{{name: {model}}}]\ndatasets: [{DATA}]\n")
    at = ["--base-url", server.url, "--limit", "2", "--work-dir", "out"]
    assert main(["sweep", "sweep.yaml", *at, *flags]) == 0
    return Path("out", model, f"{model}_{DATA}.json")


def _asked_by_probe(server: ChatServer, model: str, flags: list[str]) -> Path:
    main(["probe", "--model", model, "--base-url", server.url, "--limit", "20", *flags])
    (path,) = Path("outputs/probe").glob(f"*/20/{model}/{model}_FindIt_Probe_xyxy_json.json")
    return path


def _asked_by_search(server: ChatServer, model: str, flags: list[str]) -> Path:
    data = ["--data", "Scenes_mini", "--limit", "1", "--work-dir", "out", "--out", "best.yaml"]
    assert main(["search", *data, "--model", model, "--base-url", server.url, *flags]) == 0
    return Path("out", model, f"{model}_FindIt_Scenes_mini_xyxy_json.json")


Door = Callable[[ChatServer, str, list[str]], Path]
DOORS: list[Door] = [_asked_by_run, _asked_by_sweep, _asked_by_probe]
each_door = pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)


@pytest.mark.sees("FINDIT_SPACE")
@every_pair("door, model, variable", DOORS, list(product((KNOWN, UNKNOWN), VARIABLES)), fast=6)
def test_a_variable_is_for_models_whose_space_is_not_known(
    door: Door,
    model: str,
    variable: str,
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINDIT_SPACE", variable)
    path = door(server, model, [])
    identity = read_identity(path)
    assert identity is not None
    assert identity.space is not None
    said = [each for each in caplog.messages if "FINDIT_SPACE" in each]
    stated = space_from(settings_from({"space": variable}).space or "")
    if model == KNOWN:
        assert identity.space == {"kind": "grid1000"}
        assert identity.space_source == "model table: Qwen3-VL"
        assert len(said) == 1
        assert "grid1000" in said[0]
        assert stated.kind in said[0]
    else:
        assert identity.space == stated.as_dict()
        assert identity.space_source == "FINDIT_SPACE"
        assert len(said) == 1
        assert f"{UNKNOWN}: coordinate space {stated.kind}" in said[0]


@pytest.mark.slow
@pytest.mark.parametrize("model", [KNOWN, UNKNOWN])
def test_a_search_asks_the_same_rule(
    model: str, server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINDIT_SPACE", "unit")
    identity = read_identity(_asked_by_search(server, model, []))
    assert identity is not None
    assert identity.space == {"kind": "grid1000" if model == KNOWN else "unit"}


@each_door
def test_a_stated_space_is_told_with_the_known_one(
    door: Door,
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    identity = read_identity(door(server, KNOWN, ["--space", json.dumps(LETTERBOX)]))
    assert identity is not None
    assert identity.space == LETTERBOX
    in_place = "in place of grid1000 (model table: Qwen3-VL)"
    assert identity.space_source == f"setting, {in_place}"
    said = f"{KNOWN}: coordinate space letterbox side=777, as stated, {in_place}"
    assert caplog.messages.count(said) == 1


def test_result_and_board_name_a_space_that_was_stated(
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    note = "read in unit, as stated, in place of grid1000 (model table: Qwen3-VL)"

    def printed() -> str:
        return " ".join(capsys.readouterr().out.split())

    path = _asked_by_run(server, KNOWN, ["--space", "unit"])
    assert note in printed()
    assert main(["score", str(path)]) == 0
    assert note in printed()
    assert main(["leaderboard", "out"]) == 0
    assert f"Stated by the user: {KNOWN} on {DATA}: {note}" in printed()
    # Nothing is overridden where the stated space is the known one.
    _asked_by_run(server, "Qwen3-VL-8B", ["--space", "grid1000", "--work-dir", "same"])
    assert "as stated" not in printed()


@pytest.mark.parametrize("command", ["run", "sweep", "search"])
def test_a_dry_run_tells_a_stated_space_too(
    command: str,
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sweep.yaml").write_text(f"models: [{{name: {KNOWN}}}]\ndatasets: [{DATA}]\n")
    words = {
        "run": ["--data", DATA, "--model", KNOWN],
        "sweep": ["sweep.yaml"],
        "search": ["--data", "Scenes_mini", "--model", KNOWN],
    }
    at = ["--base-url", server.url, "--limit", "2", "--dry-run", "--space", "unit"]
    assert main([command, *words[command], *at]) == 0
    in_place = "in place of grid1000 (model table: Qwen3-VL)"
    said = f"{KNOWN}: coordinate space unit, as stated, {in_place}"
    assert caplog.messages.count(said) == 1
    assert not server.asked


@pytest.mark.parametrize("flags", [[], ["--force"]], ids=["", "forced"])
def test_scoring_tells_a_stated_space_with_the_known_one(
    flags: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    for model in (KNOWN, UNKNOWN):
        path = Path("out", f"{model}_{DATA}.json")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps([{"index": 0, "prediction": REPLY}]))
    in_place = "in place of grid1000 (model table: Qwen3-VL)"
    for command in ("coords", "score"):
        caplog.clear()
        say_once.cache_clear()
        assert main([command, "out", "--space", "unit", *flags]) in (0, 1)
        told = [each for each in caplog.messages if "as stated" in each]
        assert told == [f"{KNOWN}: coordinate space unit, as stated, {in_place}"]
    for again in (["score", "out"], ["leaderboard", "out"]):
        printed = " ".join(capsys.readouterr().out.split())
        assert printed.count(f"{KNOWN} {DATA}: read in unit, as stated, {in_place}") == 1
        assert main(again) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{KNOWN} on {DATA}: read in unit, as stated, {in_place}" in printed


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("recorded", [None, "unit", "openai_high"])
@pytest.mark.parametrize("model", [KNOWN, UNKNOWN])
def test_scoring_asks_the_same_rule(
    model: str,
    recorded: str | None,
    variable: str,
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / f"{model}_{DATA}.json"
    record = {"space": {"kind": recorded}} if recorded else {}
    row = {"index": 0, "prediction": "[]", "extra_records": json.dumps({"findit": record})}
    path.write_text(json.dumps([row]))
    monkeypatch.setenv("FINDIT_SPACE", variable)
    stated = space_from(settings_from({"space": variable}).space or "").as_dict()
    (in_force,) = score_file(path).spaces
    said = [each for each in caplog.messages if "FINDIT_SPACE" in each]
    source = in_force["source"]
    if recorded:
        assert (in_force["kind"], source) == (recorded, "recorded by the run")
        assert len(said) == (stated != {"kind": recorded})
    elif model == KNOWN:
        assert (in_force["kind"], source) == ("grid1000", "model table: Qwen3-VL")
        assert len(said) == 1
    else:
        assert in_force == {**stated, "source": "FINDIT_SPACE"}
        assert len(said) == 1


def test_a_record_of_an_unknown_model_is_not_gone_over(
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINDIT_SPACE", "unit")
    _asked_by_run(server, UNKNOWN, [])
    asked = len(server.asked)
    monkeypatch.setenv("FINDIT_SPACE", "pixels")
    for flags in ([], ["--force"]):
        with suppress(AssertionError):
            _asked_by_run(server, UNKNOWN, flags)
            pytest.fail("it went over the record")
        assert "An environment variable does not override" in capsys.readouterr().err
    assert len(server.asked) == asked


def test_bounds_that_only_a_server_knows_may_come_by_variable(
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    bounds = {"kind": "smart_resize", "min_pixels": 784, "max_pixels": 99_999}
    monkeypatch.setenv("FINDIT_SPACE", json.dumps(bounds))
    identity = read_identity(_asked_by_run(server, "Qwen2.5-VL", []))
    assert identity is not None
    assert (identity.space, identity.space_source) == (bounds, "FINDIT_SPACE")
    # But no other space than that of its row.
    monkeypatch.setenv("FINDIT_SPACE", "grid1000")
    at = ["--model", "Qwen2.5-VL-7B=x", "--base-url", server.url, "--work-dir", "other"]
    asked = len(server.asked)
    assert main(["run", "--data", DATA, *at]) == 2
    assert "whose bounds are the server's. State them" in capsys.readouterr().err
    assert len(server.asked) == asked


@pytest.mark.slow
@pytest.mark.host
@pytest.mark.parametrize("program", [RUN_FINDIT, STOCK], ids=["ours", "VLMEvalKit's"])
def test_vlmevalkits_runner_asks_the_same_rule(program: list[str], tmp_path: Path) -> None:
    require_host()
    pytest.importorskip("torch")
    data = "FindIt_Scenes_mini_xywh_text"
    models = ["FindIt-Nano-px", "FullImage"]
    words = ["--data", data, "--model", *models, "--limit", "2", "--work-dir", "out"]
    env = environment(tmp_path / "lmu", FINDIT_SPACE="unit")
    done = run(program, words, tmp_path, env)
    assert done.returncode == 0, done.stdout
    kinds = {"FindIt-Nano-px": "smart_resize", "FullImage": "grid1000"}
    for model, kind in kinds.items():
        (path,) = (tmp_path / "out" / model).glob("*_identity.json")
        values = json.loads(path.read_text())
        assert values["space"]["kind"] == kind
        assert f"FINDIT_SPACE=unit is not used for {model}" in done.stdout


# --- one flag over several models -----------------------------------------------------------------


MODELS_OF_SWEEP = """
models:
- {name: A, like: Qwen3-VL, system: one.txt, prompt_template: one.j2, temperature: 0.5,
   settings: {top_k: 3}, batch_size: 3}
- {name: B, space: pixels}
datasets: [FindIt_Demo_xyxy_json]
"""


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--space", "pixels"], "A has grid1000 (model table: Qwen3-VL)"),
        (["--space", "grid1000"], "B has pixels (its entry)"),
        (["--space", json.dumps(LETTERBOX)], "--space letterbox side=777 is said of 2 models"),
        (["--like", "GPT-5.4"], "A has Qwen3-VL (its entry)"),
        (["--system", "two.txt"], "A has one.txt (its entry)"),
        (["--prompt-template", "two.j2"], "A has one.j2 (its entry)"),
        (["--temperature", "0.25"], "A has temperature=0.5 (its entry)"),
        (["--batch-size", "4"], "A has batch_size=3 (its entry)"),
        (["--extra-body", '{"top_k": null}'], "A has top_k=3 (its entry)"),
        (["--extra-body", '{"temperature": null}'], "A has temperature=0.5 (its entry)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_one_flag_over_several_models_that_know_better_is_refused(
    flags: list[str],
    says: str,
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        Path(f"{name}.txt").write_text(name)
        Path(f"{name}.j2").write_text("{{ prompt }}")
    Path("sweep.yaml").write_text(MODELS_OF_SWEEP)
    assert main(["sweep", "sweep.yaml", "--base-url", server.url, *flags]) == 2
    refused = capsys.readouterr().err
    assert says in refused
    assert "of each model in a sweep's file" in refused
    assert not server.asked


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--space", "unit"], "GPT-5.4 has openai_high (model table: GPT-5.4)"),
        (["--judge-args", '{"space": "unit"}'], "--judge-args space unit is said of 2 models"),
        (["--like", "InternVL3"], "GPT-5.4 has GPT-5.4 (model table)"),
        (["--judge-args", '{"reads_like": "Qwen3-VL"}'], "GPT-5.4 has GPT-5.4 (model table: GPT"),
    ],
)
def test_a_run_refuses_it_too(
    flags: list[str],
    says: str,
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--data", DATA, "--model", UNKNOWN, "GPT-5.4", "--base-url", server.url]
    assert main(["run", *words, *flags]) == 2
    assert says in capsys.readouterr().err
    assert not server.asked
    assert not Path("outputs").exists()


def test_over_one_model_a_flag_is_told(
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    _asked_by_run(server, KNOWN, ["--like", "InternVL3"])
    assert (
        f"{KNOWN}: --like InternVL3, in place of Qwen3-VL (model table)" in capsys.readouterr().err
    )


ASKED_AS = "asked as InternVL3, in place of Qwen3-VL, which the name says"
LIKE = "way of answering InternVL3, as stated, in place of Qwen3-VL (model table: Qwen3-VL)"
MARKS = "marks of thoughts <plan> </plan>, as stated, in place of <think> </think> (model table: "
STATED: dict[str, tuple[list[str], list[str], str]] = {  # flags of run and score, and the note
    "like": (["--like", "InternVL3"], [], ASKED_AS),
    "reads_like": (["--judge-args", '{"reads_like": "InternVL3"}'], [], LIKE),
    "thought_marks": (["--judge-args", '{"thought_marks": "<plan> </plan>"}'], [], MARKS),
    "--reads-like": ([], ["--reads-like", "InternVL3"], LIKE),
    "--thought-marks": ([], ["--thought-marks", "<plan> </plan>"], MARKS),
}


@pytest.mark.parametrize("what", few_fast(STATED, 2))
def test_result_and_board_name_all_that_was_stated(
    what: str,
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    of_run, of_score, note = STATED[what]
    monkeypatch.chdir(tmp_path)

    def printed() -> str:
        return " ".join(capsys.readouterr().out.split())

    path = _asked_by_run(server, KNOWN, of_run)
    assert (f"{KNOWN} {DATA}: {note}" in printed()) is bool(of_run)
    _asked_by_run(server, KNOWN, of_run)  # the score is taken as it is
    assert (f"{KNOWN} {DATA}: {note}" in printed()) is bool(of_run)
    for flags in (of_score, []):
        assert main(["score", str(path), *flags]) == 0
        assert f"{KNOWN} {DATA}: {note}" in printed()
    assert main(["leaderboard", "out"]) == 0
    assert f"Stated by the user: {KNOWN} on {DATA}: {note}" in printed()


# --- how replies are read -------------------------------------------------------------------------


PLAN = ThoughtMarks("<plan>", "</plan>")


@pytest.mark.parametrize("row", [*MODELS, None])
def test_variables_of_reading_are_for_unknown_models(
    row: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    said = OfUnknown(reads_like="Claude Sonnet 4.5", thought_marks=PLAN)
    settings = settings_of_model(Settings(of_unknown=said), "M", MODELS[row] if row else None)
    marks = MODELS[row].named_marks if row else None
    assert settings.reads_like == (None if row else "Claude Sonnet 4.5")
    assert settings.thought_marks == (PLAN if marks is None else None)
    told = " ".join(caplog.messages)
    assert "FINDIT_THOUGHT_MARKS" in told
    assert ("FINDIT_READS_LIKE" in told) is (row != "Claude Sonnet 4.5")
    recorded = settings_of_model(Settings(of_unknown=said), "M", None, "Qwen3-VL")
    assert recorded.reads_like == "Qwen3-VL"


@pytest.mark.sees("FINDIT_VP_MARK")
def test_a_best_mark_that_is_known_goes_before_the_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path))
    monkeypatch.setenv(mark_choices.BY_HAND, "tag-blue")
    good = {"shapes": ["box"], "colours": ["red"]}
    mark_choices.write_marks({"models": {"Seer": {"best": "oval-red"}}, "good": good})
    mark, source = mark_choices.best_mark("Seer", "VPBench_Stage2_box")
    assert (mark.name, source) == ("oval-red", "VPBench_best_marks.json")
    assert "FINDIT_VP_MARK=tag-blue is not used for Seer" in caplog.text
    mark, source = mark_choices.best_mark("Other", "VPBench_Stage2_box")
    assert (mark.name, source) == ("tag-blue", "FINDIT_VP_MARK")
    assert "Other: best mark tag-blue, by FINDIT_VP_MARK" in caplog.text


def test_words_of_a_variable_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from vlmeval_findit.benchmarks.findit import prompt_set

    monkeypatch.setenv("FINDIT_PROMPTS", "qwen3-vl-1")
    assert prompt_set()[0] == "qwen3-vl-1"
    assert "asked in the words of qwen3-vl-1 (FINDIT_PROMPTS), in place of" in caplog.text


# --- in Python ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [KNOWN, UNKNOWN])
@pytest.mark.parametrize("stated", [None, LETTERBOX])
def test_a_model_in_python_asks_the_same_rule(
    model: str,
    stated: dict[str, Any] | None,
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("FINDIT_SPACE", "unit")
    image = tmp_path / "a.png"
    Image.new("RGB", (640, 480)).save(image)
    asked = findit.open_model(model, base_url=server.url, space=stated)
    answer = asked.ask(image, "dog")
    usual = {"kind": "grid1000" if model == KNOWN else "unit"}
    assert answer.reply.recorded.space == (stated or usual)
    told = " ".join(caplog.messages)
    assert ("in place of grid1000" in told) is (model == KNOWN and stated is not None)
    assert ("by FINDIT_SPACE" in told) is (model == UNKNOWN and stated is None)
    assert ("FINDIT_SPACE=unit is not used" in told) is not (
        (model == UNKNOWN and stated is None) or (model == KNOWN and stated is not None)
    )
