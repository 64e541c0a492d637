"""``findit reproduce`` from ``data get`` to the verdict, about stand-ins of RefCOCO at a server."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import refcoco_stand_ins as copies
from asked_so import asked_so
from chat_server import Answer, Asked, ChatServer, Serve, completion, error
from custom_data import data_folder
from published_stand_ins import HEIGHT, WIDTH, known

from vlmeval_findit.cli import main
from vlmeval_findit.reproduction import (
    REPRODUCTION,
    FigureVerdict,
    StoredReproduction,
    read_reproduction,
)

Out = pytest.CaptureFixture[str]

VAL, TEST_A, _ = copies.COUNTS.values()
SETS = {
    "RefCOCOFull": copies.COUNTS,
    "RefCOCOplusFull": copies.COUNTS,
    "RefCOCOgFull": {"val": VAL, "test": TEST_A},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder with all eight splits, made by ``data get`` as users do."""
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        data_folder(folder, patch)
        copy = folder / "copy"
        for stem in ("refcoco", "refcoco+", "refcocog"):
            copies.write_lines(copy, stem)
        shutil.copy(copy / "refcocog_testA.jsonl", copy / "refcocog_test.jsonl")
        copies.write_train2014(copy)
        for name, parts in SETS.items():
            known(patch, name, parts=parts)
            assert main(["data", "get", name, "--from", str(copy)]) == 0
    return folder / "lmu"


@pytest.fixture(autouse=True)
def _here(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(data))
    monkeypatch.chdir(tmp_path)
    for name in ("FINDIT_SPACE", "FINDIT_IMAGES", "FINDIT_TABLES", "FINDIT_PROMPTS"):
        monkeypatch.delenv(name, raising=False)


# --- a model that knows every object --------------------------------------------------------------

_BOXES = {text: copies.corners(thing) for thing in copies.THINGS for text in thing.texts}


def words_of(asked: Asked) -> str:
    parts = asked.body["messages"][-1]["content"]
    return " ".join(part["text"] for part in parts if part["type"] == "text")


def expression(asked: Asked) -> str:
    """Return the expression that a request is about: the longest that its words have."""
    words = words_of(asked)
    return max((text for text in _BOXES if text in words), key=len)


def right(asked: Asked, number: int = 0) -> Answer:
    """Answer in thousandths, as JSON where the words ask for it."""
    x1, y1, x2, y2 = _BOXES[expression(asked)]
    shares = (x1 / WIDTH, y1 / HEIGHT, x2 / WIDTH, y2 / HEIGHT)
    box = [round(1000 * share) for share in shares]
    return completion(json.dumps([{"bbox_2d": box}] if "JSON" in words_of(asked) else box))


def reproduce(server: ChatServer, model: str, *flags: str) -> int:
    return main(["reproduce", f"{model}=mine", "--base-url", server.url, *flags])


def stored() -> StoredReproduction:
    (path,) = Path("outputs/reproduce").rglob(REPRODUCTION)
    return read_reproduction(path)


# --- the whole way --------------------------------------------------------------------------------


@pytest.mark.sees("reproduce model", "reproduce --json")
def test_a_split_is_asked_as_published_and_judged(serve: Serve, capsys: Out) -> None:
    server = serve(right)
    status = reproduce(server, "InternVL3-8B", "--set", "RefCOCO_val", "--json", "result.json")
    out = capsys.readouterr().out
    assert status == 2, "two pictures are too few"
    assert len(server.asked) == 4, "of five expressions two are equal"
    for asked in server.asked:
        assert words_of(asked).startswith("Please provide the bounding box coordinate of the")
        assert f"<ref>{expression(asked)}</ref>" in words_of(asked)
        assert (asked.body["max_tokens"], asked.body["temperature"]) == (100, 0)
    assert "InternVL3-8B on RefCOCO val: acc@0.5 92.5 is published" in out
    assert "patches 6: cannot be set" in out
    assert "acc@0.5 100.0 over 2 pictures (seed 0) with 5 queries" in out
    assert "CANNOT BE TOLD" in out
    assert max(map(len, out.splitlines())) <= 80
    result = stored()
    assert result == read_reproduction(Path("result.json"))
    assert result.judgement.verdict is FigureVerdict.CANNOT_BE_TOLD
    assert [run.rows for run in result.runs] == [(0, 1, 2, 3, 4)]
    assert "FINDIT_PROMPTS" not in os.environ


@pytest.mark.sees("reproduce --prompts", "reproduce --format")
def test_the_same_command_again_asks_nothing(serve: Serve, capsys: Out) -> None:
    server = serve(right)
    assert reproduce(server, "InternVL3-8B", "--set", "RefCOCO_val") == 2
    first = stored()
    asked = len(server.asked)
    assert reproduce(server, "InternVL3-8B", "--set", "RefCOCO_val") == 2
    assert len(server.asked) == asked
    assert stored().runs == first.runs
    # Other words are other calls; the published ones are still there afterwards.
    own = ("--prompts", "findit-own-1", "--format")
    for times, words in enumerate((("xyxy_text",), ("xyxy_json",)), 2):
        assert reproduce(server, "InternVL3-8B", "--set", "RefCOCO_val", *own, *words) == 2
        assert len(server.asked) == times * asked
    assert reproduce(server, "InternVL3-8B", "--set", "RefCOCO_val") == 2
    assert len(server.asked) == 3 * asked


def test_the_mean_of_eight_splits_is_asked_and_sampled(serve: Serve, capsys: Out) -> None:
    server = serve(right)
    assert reproduce(server, "Qwen3-VL-8B-Instruct") == 2
    out = capsys.readouterr().out
    assert "Qwen3-VL-8B-Instruct on RefCOCO mean of 8: acc@0.5 89.1 is published" in out
    result = stored()
    assert [run.dataset for run in result.runs] == [
        "RefCOCOFull_val", "RefCOCOFull_testA", "RefCOCOFull_testB",
        "RefCOCOplusFull_val", "RefCOCOplusFull_testA", "RefCOCOplusFull_testB",
        "RefCOCOgFull_val", "RefCOCOgFull_test",
    ]  # fmt: skip
    counts = [part.queries for parts in SETS.values() for part in parts.values()]
    assert [len(run.rows) for run in result.runs] == counts
    assert (result.judgement.measured, result.judgement.tolerance) == (100, 0.5)
    for asked in server.asked:
        assert words_of(asked).startswith(
            f'Locate every object that matches the description "{expression(asked)}"'
        )
        assert asked.body.items() >= {
            "temperature": 0.7, "top_p": 0.8, "top_k": 20, "presence_penalty": 1.5, "seed": 3407,
            "max_tokens": 32768,
        }.items()  # fmt: skip


@pytest.mark.sees("reproduce --seed")
def test_the_sample_has_whole_pictures(serve: Serve, capsys: Out) -> None:
    server = serve(right)
    flags = ("--set", "RefCOCO_val", "--limit", "1")
    counts = {3: "1 picture (seed {}) with 3 queries", 2: "1 picture (seed {}) with 2 queries"}
    drawn = set()
    for seed in range(4):
        assert reproduce(server, "InternVL3-8B", *flags, "--seed", str(seed)) == 2
        out = capsys.readouterr().out
        (count,) = (count for count, words in counts.items() if words.format(seed) in out)
        drawn.add(count)
    assert drawn == {2, 3}


@pytest.mark.sees("reproduce --set")
def test_every_set_has_its_own_reproduction(serve: Serve) -> None:
    server = serve(right)
    for name in ("RefCOCO_val", "RefCOCO_testA"):
        assert reproduce(server, "InternVL3-8B", "--set", name) == 2
    paths = Path("outputs/reproduce").rglob(REPRODUCTION)
    sets = {read_reproduction(path).figure.set for path in paths}
    assert sets == {"RefCOCO val", "RefCOCO testA"}


@pytest.mark.sees("reproduce --figures")
def test_a_figure_of_the_users_file_is_reproduced(serve: Serve, capsys: Out) -> None:
    typed = {
        "sets": {"mine": {"datasets": ["RefCOCOFull_val"], "metric": "acc@0.5"}},
        "conditions": {"as told": {"space": "grid1000", "note": "told by a friend"}},
        "reports": [
            {
                "source": "a paper",
                "by": "authors",
                "sure": "read",
                "figures": [
                    {"model": "InternVL3-8B", "conditions": "as told", "values": {"mine": 93.5}}
                ],
            }
        ],
    }
    Path("figures.yaml").write_text(json.dumps(typed))
    server = serve(right)
    reproduce(server, "InternVL3-8B", "--figures", "figures.yaml", "--limit", "1")
    out = capsys.readouterr().out
    assert "InternVL3-8B on mine: acc@0.5 93.5 is published" in out
    assert "told by a friend" in out


@pytest.mark.sees("reproduce --limit")
def test_no_more_pictures_are_advised_than_there_are(serve: Serve, capsys: Out) -> None:
    server = serve(right)
    flags = ("--set", "RefCOCO_val")
    assert reproduce(server, "InternVL3-8B", *flags, "--limit", "1") == 2
    assert "would do, and there are fewer: --limit 5" in capsys.readouterr().out
    assert reproduce(server, "InternVL3-8B", *flags, "--limit", "5") == 2
    assert "all pictures of the set were asked, and are too few" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("named", "note"),
    [("mine", False), ("InternVL3-2B", True), ("OpenGVLab/InternVL3-8B-AWQ", False)],
)
def test_another_model_that_answers_is_noted(
    named: str, note: bool, serve: Serve, capsys: Out
) -> None:
    def answering(asked: Asked, number: int) -> Answer:
        body = json.loads(right(asked).body)
        return Answer(json.dumps({**body, "model": named}).encode())

    assert reproduce(serve(answering), "InternVL3-8B", "--set", "RefCOCO_val") == 2
    words = f"Replies are answered by {named}; asked was mine"
    assert (words in capsys.readouterr().out) is note


@pytest.mark.slow
def test_the_shipped_model_agrees_with_its_card(capsys: Out) -> None:
    pytest.importorskip("torch")
    command = ["reproduce", "FindIt-Nano", "--limit", "100"]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "AGREES with the published 99.7" in out
    assert "cannot be set" not in out
    (journal,) = Path("outputs/reproduce").glob("*/calls.jsonl")
    answers = journal.read_bytes()
    assert answers.count(b"\n") == 100
    assert main(command) == 0
    assert journal.read_bytes() == answers


# --- what is not answered -------------------------------------------------------------------------


def test_only_failed_calls_are_asked_again(serve: Serve, capsys: Out) -> None:
    is_broken = True

    def script(asked: Asked, number: int) -> Answer:
        if is_broken and expression(asked) == "woman":
            return error(413, "too large")
        return right(asked)

    server = serve(script)
    assert reproduce(server, "InternVL3-8B", "--set", "RefCOCO_val") == 2
    out = capsys.readouterr().out
    assert "acc@0.5 80.0 over 2 pictures" in out
    assert "1 failed call as misses; run again to ask again" in out
    assert "too large" in out
    asked = len(server.asked)
    is_broken = False
    assert reproduce(server, "InternVL3-8B", "--set", "RefCOCO_val") == 2
    assert len(server.asked) == asked + 1
    assert "acc@0.5 100.0 over 2 pictures" in capsys.readouterr().out


def test_a_stopped_command_goes_on(serve: Serve, capsys: Out) -> None:
    def stopping(asked: Asked, number: int) -> Answer:
        if number == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return right(asked)

    flags = ("--set", "RefCOCO_val", "--api-nproc", "1")
    server = serve(stopping)
    assert reproduce(server, "InternVL3-8B", *flags) == 130
    assert len(server.asked) < 4
    assert not list(Path().rglob(REPRODUCTION))
    assert reproduce(server, "InternVL3-8B", *flags) == 2
    assert len(server.asked) == 4
    assert (
        "answers of an earlier run are in outputs/reproduce/InternVL3-8B-"
        in capsys.readouterr().out
    )


def test_nothing_is_said_where_every_call_fails(serve: Serve, capsys: Out) -> None:
    server = serve(lambda asked, number: error(413, "too large"))
    assert reproduce(server, "InternVL3-8B", "--set", "RefCOCO_val") == 3
    assert "none of 5 calls was answered" in capsys.readouterr().out
    assert not list(Path().rglob(REPRODUCTION))


@pytest.mark.sees("reproduce --max-tokens")
def test_a_shorter_context_is_answered_with_what_to_type(serve: Serve, capsys: Out) -> None:
    words = "'max_tokens' is too large: 32768. The maximum context length is 8192"
    server = serve(lambda asked, number: error(400, words))
    assert reproduce(server, "Qwen3-VL-8B-Instruct") == 3
    assert "type --max-tokens 4096" in capsys.readouterr().out
    server = serve(right)
    assert reproduce(server, "Qwen3-VL-8B-Instruct", "--max-tokens", "4096") == 2
    assert {asked.body["max_tokens"] for asked in server.asked} == {4096}


def test_a_refused_key_ends_it_at_once(serve: Serve, capsys: Out) -> None:
    server = serve(lambda asked, number: error(401, "no such key"))
    assert reproduce(server, "InternVL3-8B", "--set", "RefCOCO_val") == 3
    assert "no such key" in capsys.readouterr().err
    assert not list(Path().rglob(REPRODUCTION))


def test_servers_of_two_setups_are_refused(capsys: Out) -> None:
    def served(version: str) -> ChatServer:
        card = {"id": "mine", "owned_by": "vllm", "root": "OpenGVLab/InternVL3-8B"}
        pages = {"/api/v1/models": {"data": [card]}, "/api/version": {"version": version}}
        return ChatServer(right, pages)

    command = ["reproduce", "InternVL3-8B=mine", "--set", "RefCOCO_val", "--base-url"]
    with served("0.12.0") as old, served("0.13.0") as new, served("0.13.0") as same:
        assert main([*command, f"{old.url},{new.url}"]) == 2
        setups = "vllm 0.12.0 OpenGVLab/InternVL3-8B; vllm 0.13.0 OpenGVLab/InternVL3-8B"
        assert f"the servers are of 2 setups ({setups}): name" in capsys.readouterr().err
        assert not old.asked
        assert not new.asked
        assert main([*command, f"{new.url},{same.url}"]) == 2
        assert "CANNOT BE TOLD" in capsys.readouterr().out


def test_what_one_server_says_is_said_of_no_silent_one(capsys: Out) -> None:
    card = {"id": "mine", "owned_by": "vllm", "root": "OpenGVLab/InternVL3-8B"}
    pages = {"/api/v1/models": {"data": [card]}, "/api/version": {"version": "0.13.0"}}
    command = ["reproduce", "InternVL3-8B=mine", "--set", "RefCOCO_val", "--base-url"]
    with ChatServer(right, pages) as open_, ChatServer(right) as silent:
        assert main([*command, f"{open_.url},{silent.url}"]) == 2
    told = capsys.readouterr()
    words = " ".join(told.err.split())
    assert f"{silent.url}: not told which program and checkpoint answer; the others" in words
    assert "say vllm 0.13.0 OpenGVLab/InternVL3-8B" in words
    (path,) = Path().rglob(REPRODUCTION)
    assert read_reproduction(path).engine == ""


# --- what asks nothing ----------------------------------------------------------------------------


def test_a_dry_run_counts_the_sample(serve: Serve, capsys: Out) -> None:
    server = serve(right)
    flags = ("--base-url", server.url, "--set", "RefCOCO_val", "--dry-run")
    for model in (("InternVL3-8B=mine",), ("--model", "InternVL3-8B=mine")):
        assert main(["reproduce", *model, *flags]) == 0
        out = capsys.readouterr().out
        assert "5 queries, 2 images, 4 model calls, 4 of them" in out
        assert "is yours" not in out
    assert main(["reproduce", *model, *flags, "--prompts", "glm-1"]) == 0
    assert "is lower, what is yours (prompt) is asked" in capsys.readouterr().out
    assert not server.asked


REFUSED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "a set": (("--set", "RefCOCO_tesA"), "did you mean RefCOCO testA?"),
    "a number": (("--limit", "0"), "--limit: 0 should be"),
    "words": (("--prompts", "internvl"), "did you mean internvl-1?"),
    "a format": (("--format", "xyxy_json"), "the prompt internvl-1 is answered as xyxy_text"),
    "a space": (("--space", "grid100"), "did you mean grid1000?"),
    "a file": (("--against", "nowhere.json"), "nowhere.json: does not exist"),
    "a dataset": (("--set", "Ref-L4 test"), "no figure of InternVL3-8B on it is known"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_is_refused_before_the_first_call(
    what: str, serve: Serve, capsys: Out
) -> None:
    flags, why = REFUSED[what]
    server = serve(right)
    assert reproduce(server, "InternVL3-8B", *flags) == 2
    assert why in capsys.readouterr().err
    assert not server.asked


def test_a_clone_of_the_release_is_no_published_prompt(
    serve: Serve, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(right)
    flags = ("--set", "RefCOCO_val")
    monkeypatch.setenv("FINDIT_PROMPTS", "/clone")
    assert reproduce(server, "InternVL3-8B", *flags) == 2
    assert "FINDIT_PROMPTS=/clone: figures are" in capsys.readouterr().err
    monkeypatch.setenv("FINDIT_PROMPTS", "glm-1")
    assert reproduce(server, "InternVL3-8B", *flags) == 2
    assert words_of(server.asked[0]).startswith("Help me to locate")
    assert "glm-1 (yours; published: internvl-1)" in capsys.readouterr().out
    assert os.environ["FINDIT_PROMPTS"] == "glm-1"


def test_missing_splits_are_named_with_their_commands(
    serve: Serve, capsys: Out, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path))
    server = serve(right)
    assert reproduce(server, "Qwen3-VL-8B-Instruct") == 2
    err = capsys.readouterr().err
    assert err.count("data get RefCOCOFull --from PATH") == 1
    assert err.count("data get RefCOCOgFull --from PATH") == 1
    assert not server.asked


def test_sets_that_are_here_are_named(
    data: Path, serve: Serve, capsys: Out, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    part = tmp_path / "part"
    without = shutil.ignore_patterns("RefCOCOplusFull*.tsv", "RefCOCOFull_val.tsv")
    shutil.copytree(data, part, ignore=without)
    monkeypatch.setenv("LMUData", str(part))
    assert reproduce(serve(right), "InternVL3-8B") == 2
    err = capsys.readouterr().err
    assert "RefCOCO val: its dataset is not here (RefCOCOFull_val)" in err
    here = "'RefCOCO testA', 'RefCOCO testB', 'RefCOCOg val', 'RefCOCOg test'"
    assert err.endswith(f"Or type one that is here after --set: {here}\n")


# --- two people -----------------------------------------------------------------------------------


@pytest.mark.sees("reproduce --against")
def test_two_reproductions_are_compared(serve: Serve, capsys: Out) -> None:
    def worse(asked: Asked, number: int) -> Answer:
        return completion("[]") if expression(asked) == "woman" else right(asked)

    flags = ("--set", "RefCOCO_val")
    assert reproduce(serve(worse), "InternVL3-8B", *flags, "--json", "theirs.json") == 2
    capsys.readouterr()
    server = serve(right)
    against = ("--against", "theirs.json", "--json", "ours.json")
    assert reproduce(server, "InternVL3-8B", *flags, *against) == 2
    out = capsys.readouterr().out
    assert "5 rows of 2 pictures in both: here 100.0, there 80.0" in out
    shared = json.loads(Path("ours.json").read_text())["against"]["shared"]
    assert (shared["rows"], shared["here"], shared["there"]) == (5, 100, 80)
    asked = len(server.asked)
    copy = Path("theirs.json").read_text().replace('"sha256": "', '"sha256": "00')
    Path("copy.json").write_text(copy)
    assert reproduce(server, "InternVL3-8B", *flags, "--against", "copy.json") == 2
    assert "copy.json: the table of RefCOCOFull_val has 5 rows" in capsys.readouterr().err
    other = ("--set", "RefCOCO_testA", "--against", "theirs.json")
    assert reproduce(server, "InternVL3-8B", *other) == 2
    assert "theirs.json: runs are of RefCOCOFull_val, here of" in capsys.readouterr().err
    assert len(server.asked) == asked


@pytest.mark.sees("reproduce --executor", "reproduce --replicas")
def test_options_of_clusters_reach_who_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    line = ["reproduce", "InternVL3-8B", "--set", "RefCOCO_val"]
    usual = asked_so(line, monkeypatch)
    asked = asked_so([*line, "--executor", "ray", "--replicas", "8", "--gpus", "2"], monkeypatch)
    assert not usual.on_ray
    assert asked.on_ray
    assert asked.calls == replace(usual.calls, replicas=8, gpus=2.0)
