"""Every key of a sweep's file, argument of Python and variable of FindIt changes something.

They are read from the code: a new one has a row that sets it, a test that does, or a reason.
"""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from paths import ROOT
from PIL import Image
from seen_by import seen_keys, seen_variables

import vlmeval_findit as findit
from vlmeval_findit.boxes import SpaceError, space_from
from vlmeval_findit.cli import (
    CHOSEN_BY_FLAGS,
    KEYS_OF_SWEEPS,
    main,
    unused_sweep_keys,
)
from vlmeval_findit.engine import KINDS, CallOptions, OnRay, users_of
from vlmeval_findit.models import MODEL_KEYS, ModelEntry
from vlmeval_findit.protocol import Reply, ReplyRecord
from vlmeval_findit.serving import ServeOptions
from vlmeval_findit.sweeps import SweepFile, SweepOptions, all_variants, parse_sweep

DATA = "FindIt_Demo_xyxy_json"

# --- keys of a sweep ------------------------------------------------------------------------------

GRID = {"models": "FullImage", "datasets": "Demo"}
JSON_BOXES = {**GRID, "outputs": "json"}

# Key -> the file without it, and its value: other variants are asked
VARIANTS: Mapping[str, tuple[Mapping[str, Any], Any]] = {
    "datasets": (GRID, ["Demo", "Demo_refexp"]),
    "representations": (GRID, "xyxy"),
    "outputs": (GRID, "json"),
    "keys": (JSON_BOXES, "all"),
    "structures": (GRID, "all"),
    "centres": (GRID, "all"),
    "marks": ({**GRID, "datasets": "Demo_insdet"}, "all"),
    "decodings": (JSON_BOXES, "all"),
    "stages": (GRID, [{"outputs": "json"}]),
    "frames": ({**GRID, "datasets": "Demo_video"}, 2),
    "captions": ({**GRID, "datasets": "Flickr30k"}, True),
}

MINE = {"name": "mine", "space": "unit", "base_url": "SERVER"}
ASKED = {"models": [MINE], "datasets": DATA, "limit": 1}
SAMPLED = {**ASKED, "models": [{**MINE, "temperature": 0.5}]}

# Key -> the file without it, and its value: other requests, or other files
REQUESTS: Mapping[str, tuple[Mapping[str, Any], Any]] = {
    "models": (ASKED, [MINE, {**MINE, "name": "other"}]),
    "limit": (ASKED, 2),
    "samples": (SAMPLED, 2),
    "logprobs": (ASKED, True),
    "work_dir": (ASKED, "elsewhere"),
    "journal": (ASKED, "elsewhere.jsonl"),
}

# Key of a model at a server -> its value
OF_A_MODEL: Mapping[str, Any] = {
    "name": "other",
    "settings": {"top_k": 3},
    "space": "grid1000",
    "like": "Qwen3-VL",
    "served": "theirs",
    "base_url": "SERVER/v1",
    "system": "system.txt",
    "prompt_template": "template.txt",
    "headers": {"x-team": "a"},
    "temperature": 0.5,
}

KEYS_UNSEEN = {
    "inference": "its keys have rows of their own",
}


class Asker:
    """Runs sweeps and other lines, each in a folder of its own."""

    def __init__(self, folder: Path, server: ChatServer) -> None:
        self._folder, self._server, self._number = folder, server, 0

    def facts(self, line: str, sweep: Mapping[str, Any] | None = None, status: int = 0) -> set[str]:
        """Return the requests of a line, its scores, and the names of the files that it leaves."""
        self._number += 1
        here = self._folder / str(self._number)
        here.mkdir()
        os.chdir(here)
        Path("system.txt").write_text("Be short.")
        Path("template.txt").write_text("{{ request }} Now.")
        text = json.dumps(sweep).replace("SERVER", self._server.url)
        Path("sweep.yaml").write_text(text)
        before = len(self._server.asked)
        assert main(line.replace("SERVER", self._server.url).split()) == status
        asked = self._server.asked[before:]
        requests = [f"{each.path} {json.dumps(each.body)} {_own(each.headers)}" for each in asked]
        # Calls at a time come in any order
        numbered = [f"{at} {request}" for at, request in enumerate(sorted(requests))]
        scores = [path.read_text() for path in here.rglob("*_score.csv")]
        return {*numbered, *scores, *(str(path.relative_to(here)) for path in here.rglob("*"))}


def _own(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the headers that are not of every request."""
    usual = {"host", "content-length", "content-type", "connection", "accept", "accept-encoding"}
    return sorted((name, value) for name, value in headers.items() if name.lower() not in usual)


@pytest.fixture
def asker(
    server: ChatServer, demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Asker:
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.chdir(tmp_path)
    for name in ("FINDIT_LOGPROBS", "FINDIT_FORCE", "FINDIT_SKIP_MISSING"):
        monkeypatch.setenv(name, "")
    return Asker(tmp_path, server)


def variants_of(values: Mapping[str, Any]) -> set[str]:
    return {variant.name for variant in all_variants(parse_sweep(json.dumps(values)), "FullImage")}


@pytest.mark.parametrize("key", VARIANTS)
def test_a_key_changes_which_variants_are_asked(key: str) -> None:
    values, value = VARIANTS[key]
    assert variants_of(values) != variants_of({**values, key: value})


@pytest.mark.parametrize("key", REQUESTS)
def test_a_key_changes_requests_or_files(key: str, asker: Asker) -> None:
    values, value = REQUESTS[key]
    line = "sweep sweep.yaml"
    assert asker.facts(line, values) != asker.facts(line, {**values, key: value})


def test_keys_of_models_change_what_is_asked(asker: Asker) -> None:
    line = "sweep sweep.yaml"
    once = asker.facts(line, ASKED)
    assert asker.facts(line, ASKED) == once, "nothing else changes it"
    same = [
        key
        for key, value in OF_A_MODEL.items()
        if asker.facts(line, {**ASKED, "models": [{**MINE, key: value}]}) == once
    ]
    assert same == []


def test_keys_that_print_or_stop(asker: Asker, capsys: pytest.CaptureFixture[str]) -> None:
    """Races are counted otherwise, and known prices are costs."""

    def printed(values: Mapping[str, Any]) -> str:
        capsys.readouterr()
        asker.facts("sweep sweep.yaml --dry-run", values)
        return capsys.readouterr().out

    grid = {**ASKED, "datasets": "Demo"}
    assert printed({**grid, "race": True}) != printed(grid)
    assert printed(PRICED) != printed(ASKED)
    whole = {**PRICED, "limit": 19}
    asked = [
        sum("/chat/completions" in fact for fact in asker.facts("sweep sweep.yaml", file, status))
        for file, status in ((whole, 0), ({**whole, "max_usd": 0.001}, 3))
    ]
    assert asked == [19, 1]


PRICED = {**ASKED, "models": [{**MINE, "prices": "1,2"}]}
PRINT_OR_STOP = {"race", "max_usd", "prices"}


def test_every_key_of_a_sweep_is_seen_to_change_something() -> None:
    of_serve = {key.name for key in fields(ServeOptions)} - {"gpus"} | {"serve gpus"}
    keys = {key.name for key in fields(SweepFile)} | {*MODEL_KEYS} | of_serve
    keys |= {key.name for key in fields(CallOptions)}
    rows = {*VARIANTS, *REQUESTS, *OF_A_MODEL, *seen_keys(), *KEYS_UNSEEN, *PRINT_OR_STOP}
    assert keys - rows == set(), "keys without a row"
    assert rows - keys == set(), "of no sweep any more"


USED_BY_ALL = {"limit"}
"""Keys of a whole sweep that act whoever answers."""

OPTIONS = {key.name for key in fields(SweepOptions)} - {"inference"} | {
    key.name for key in fields(CallOptions)
}


@pytest.mark.parametrize("key", sorted(OPTIONS))
def test_a_key_that_no_model_uses_is_refused_or_said(key: str) -> None:
    """Whether a key acts is known of each kind; what a flag would make act is said."""
    assert key in USED_BY_ALL or key == "race" or key in KEYS_OF_SWEEPS
    for kind in set(KINDS) - {OnRay}:
        users = users_of(KEYS_OF_SWEEPS[key]) if key in KEYS_OF_SWEEPS else KINDS
        place = {key: "s.yaml, line 3: "}
        said = f"s.yaml, line 3: {key} has no effect: A is "
        answering = [kind(ModelEntry("A"))]
        if kind in users:
            assert unused_sweep_keys(place, answering) == []
        elif {*users} <= {*CHOSEN_BY_FLAGS}:
            (line,) = unused_sweep_keys(place, answering)
            assert line.startswith(said)
        else:
            with pytest.raises(ValueError, match=said):
                unused_sweep_keys(place, answering)


UNUSED: Mapping[str, Any] = {
    "logprobs": True,
    "max_usd": 2.0,
    "serve": "vllm",
    **{f"inference {key}": 3 for key in CallOptions.__dataclass_fields__},
}


@pytest.mark.parametrize("key", UNUSED)
def test_a_file_with_a_key_without_effect_is_told(
    key: str,
    demo_data: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.chdir(tmp_path)
    first, _, inner = key.partition(" ")
    value = {inner: UNUSED[key]} if inner else UNUSED[key]
    Path("s.yaml").write_text(f"models: FullImage\ndatasets: Demo\n{first}: {json.dumps(value)}\n")
    is_said = {*users_of(KEYS_OF_SWEEPS[inner or first])} <= {*CHOSEN_BY_FLAGS}
    assert main(["sweep", "s.yaml", "--dry-run"]) == (0 if is_said else 2)
    assert f"s.yaml, line 3: {inner or first} has no effect: FullImage is a baseline" in (
        " ".join(capsys.readouterr().err.split())
    )


@pytest.mark.parametrize("key", [*VARIANTS][1:])
def test_a_choice_of_formats_needs_a_table(key: str) -> None:
    values = {"models": "FullImage", "datasets": DATA, key: VARIANTS[key][1]}
    with pytest.raises(ValueError, match=f"{key} has no effect: `datasets` names no table"):
        parse_sweep(json.dumps(values))


# --- arguments of Python --------------------------------------------------------------------------

IMAGE = Image.new("RGB", (100, 50), (90, 120, 60))
BOX = '[{"bbox": [10, 10, 50, 40], "label": "dog"}]'
READ = {"text": BOX, "format": "xyxy_json", "size": (100, 50), "space": "pixels"}
SCORED = {
    "replies": [BOX, "[]"],
    "truths": [[[10, 10, 50, 40]], [[0, 0, 9, 9]]],
    "format": "xyxy_json",
    "sizes": (100, 50),
    "space": "pixels",
}
IN_GRID = {**SCORED, "replies": [BOX.replace("10, 10, 50, 40", "100, 200, 500, 800"), "[]"]}
IN_GRID |= {"space": "grid1000"}
FIVE = {**SCORED, "replies": [BOX, "[]"] * 5, "truths": [[[10, 10, 50, 40]]] * 10}
THOUGHT = f"<plan>[] or not</plan>{BOX}"
IN_THOUGHT = BOX  # Cut in a thought, if its prompt opened one
ANSWER = f"<answer>{BOX}</answer>"
PROMPT = {"label": "dog", "format": "xyxy_json", "images": "park.jpg"}
PHRASE = {**PROMPT, "family": "refexp_all"}
DRAWN = {"image": IMAGE, "truth": [[5, 5, 60, 30]], "answer": [[9, 9, 20, 20]]}

UNLABELLED = {**SCORED, "replies": ["[10, 10, 50, 40]", "[]"], "truths": [[], []]}
UNLABELLED |= {"format": "xyxy_text"}
OPENED: Mapping[str, Any] = {"name": "mine=mine", "base_url": "SERVER", "space": "unit"}

# Truths that say their frames
IN_FRAMES = {**SCORED, "truths": [findit.truth([[10, 10, 50, 40]]), findit.truth([[0, 0, 9, 9]])]}

# Argument of ``open_model`` -> its value beside those of OPENED: another request, or answer
OPENED_OTHERWISE: Mapping[str, Any] = {
    "name": "other",
    "base_url": "SERVER/v1",
    "space": "pixels",
    "provider": "openai",
    "key": "sk-other",
    "headers": {"x-team": "a"},
    "temperature": 0.5,
    "system": "system.txt",
    "prompt_template": "template.txt",
}

# Name of the door -> its arguments without one, by that one, and its value
ARGUMENTS: Mapping[str, Mapping[str, tuple[Mapping[str, Any], Any]]] = {
    "read": {
        "text": (READ, "[]"),
        "format": (READ, "xywh_json"),
        "size": ({**READ, "space": "grid1000"}, (20, 20)),
        "space": (READ, "grid1000"),
        "frames": (READ, 2),
        "multilabel": (READ, True),
        "thought_marks": ({**READ, "text": THOUGHT}, "<plan> </plan>"),
        "thought_opened": ({**READ, "text": IN_THOUGHT}, True),
        "answer_marks": ({**READ, "text": ANSWER}, "<answer> </answer>"),
    },
    "score": {
        "replies": (SCORED, ["[]", "[]"]),
        "truths": (SCORED, [[], []]),
        "format": (SCORED, "cxcywh_json"),
        "sizes": (IN_GRID, (200, 50)),
        "space": (SCORED, "grid1000"),
        "frames": (IN_FRAMES, 2),
        "multilabel": (UNLABELLED, True),
        "images": (FIVE, [f"{at // 2}.png" for at in range(10)]),
        "thought_marks": ({**SCORED, "replies": [THOUGHT, "[]"]}, "<plan> </plan>"),
        "thought_opened": ({**SCORED, "replies": [IN_THOUGHT, "[]"]}, True),
        "answer_marks": ({**SCORED, "replies": [ANSWER, "[]"]}, "<answer> </answer>"),
    },
    "reward": {
        "replies": (SCORED, ["[]", "[]"]),
        "truths": (SCORED, [[], []]),
        "format": (SCORED, "cxcywh_json"),
        "sizes": (IN_GRID, (200, 50)),
        "space": (SCORED, "grid1000"),
        "frames": ({**IN_FRAMES, "by": "adherence"}, 2),
        "multilabel": ({**UNLABELLED, "by": "adherence"}, True),
        "by": ({**SCORED, "truths": [[[10, 10, 50, 30]], []]}, "iou"),
        "thought_marks": ({**SCORED, "replies": [THOUGHT, "[]"]}, "<plan> </plan>"),
        "thought_opened": ({**SCORED, "replies": [IN_THOUGHT, "[]"]}, True),
        "answer_marks": ({**SCORED, "replies": [ANSWER, "[]"]}, "<answer> </answer>"),
    },
    "prompt": {
        "label": (PROMPT, "cat"),
        "format": (PROMPT, "xywh_json"),
        "images": (PROMPT, "other.jpg"),
        "family": (PROMPT, "refexp"),
        "references": ({**PROMPT, "family": "insdet", "references": ["a.jpg"]}, ["b.jpg"]),
        "caption": (PHRASE, "A dog runs."),
    },
    "truth": {
        "boxes": ({"boxes": [[1, 2, 3, 4]]}, [[1, 2, 3, 5]]),
        "labels": ({"boxes": [[1, 2, 3, 4]]}, ["dog"]),
        "frames": ({"boxes": [[1, 2, 3, 4]]}, [1]),
        "ignored": ({"boxes": [[1, 2, 3, 4]]}, [[5, 5, 9, 9]]),
    },
    "draw": {
        "image": (DRAWN, Image.new("RGB", (80, 40))),
        "truth": (DRAWN, [[5, 5, 70, 30]]),
        "answer": (DRAWN, [[8, 8, 40, 40]]),
    },
}

_FRAMES = "test_answer_drawing.py::test_labels_and_frames_are_drawn"
_REVIEWS = "test_dataframes.py::test_reviewed_scores_follow_the_others"
_FIRST = "test_dataframes.py::test_paths_say_which_runs"
_TWO = "test_dataframes.py::test_two_runs_are_compared"
_TRAINING = "test_trainers.py::test_a_failed_evaluation_does_not_end_the_training"
_COLUMNS = "test_trainers.py::test_fixed_columns_and_other_rewards"
_END_MARKS = "test_rewards_of_trainers.py::test_ends_are_named_or_those_of_a_tokenizer"

# Name of the door -> its other arguments, and the test of tests/api that sees an effect of each
OTHER_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "draw": {"frame": _FRAMES},
    "draw_answer": {"row": "test_answer_drawing.py::test_rows_are_drawn_as_they_were_scored"},
    "open_model": {
        "like": "test_open_models.py::test_a_server_is_asked_and_its_answer_is_in_pixels",
        "settings": "test_open_models.py::test_a_checkpoint_is_like_a_row",
    },
    "load_runs": {"paths": _FIRST, "reviews": _REVIEWS},
    "load_scores": {"paths": _FIRST, "reviews": _REVIEWS},
    "open_runs": {"paths": _FIRST, "reviews": _REVIEWS},
    "compare": {
        "run": _TWO,
        "other": _TWO,
        "within": "test_dataframes.py::test_runs_are_compared_by_their_paths",
        "reviews": _REVIEWS,
    },
    "reward_function": {
        "trainer": "test_trainers.py::test_verl_passes_one_reply_or_a_batch",
        "by": _COLUMNS,
        "fixed": _COLUMNS,
        "end_marks": _END_MARKS,
    },
    "checkpoint_callback": dict.fromkeys(("data", "name", "like", "work_dir", "flags"), _TRAINING),
}
SHOWN_BELOW = {"open_model": {*OPENED_OTHERWISE}, "draw_answer": {"frame"}}


def is_defined(path: str, function: str) -> bool:
    text = (ROOT / "tests" / path).read_text(encoding="utf-8")
    return f"\ndef {function}(" in text


@pytest.mark.parametrize("name", OTHER_ARGUMENTS)
def test_the_test_of_an_argument_is_there(name: str) -> None:
    for argument, where in OTHER_ARGUMENTS[name].items():
        path, _, function = where.partition("::")
        assert is_defined(f"api/{path}", function), f"{name}: {argument}: {where}"


def shown_value(value: Any) -> str:
    if isinstance(value, Image.Image):
        return repr((value.size, value.tobytes()))
    if isinstance(value, findit.Score):
        return repr(
            (dict(value.metric_values), dict(value.intervals), value.failed, dict(value.reasons))
        )
    return repr(value)


CALLS = [(name, argument) for name, rows in ARGUMENTS.items() for argument in rows]


@pytest.mark.parametrize(("name", "argument"), CALLS)
def test_an_argument_changes_what_comes(name: str, argument: str) -> None:
    given, value = ARGUMENTS[name][argument]
    function = getattr(findit, name)
    assert shown_value(function(**given)) != shown_value(function(**{**given, argument: value}))


def opened(server: ChatServer, more: Mapping[str, Any]) -> str:
    """Open a model, ask it, and return the request and the boxes of its answer."""
    given = {**OPENED, **more}
    given = {
        key: value.replace("SERVER", server.url) if isinstance(value, str) else value
        for key, value in given.items()
    }
    answer = findit.open_model(given.pop("name"), **given).ask(IMAGE, "dog", "xyxy_json")
    asked = server.asked[-1]
    return f"{asked.path} {asked.body} {_own(asked.headers)} {answer.parsed.boxes}"


def test_arguments_of_a_model_change_what_is_asked(
    server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    Path("system.txt").write_text("Be short.")
    Path("template.txt").write_text("{{ request }} Now.")
    once = opened(server, {})
    assert opened(server, {}) == once, "nothing else changes it"
    same = [name for name, value in OPENED_OTHERWISE.items()
            if opened(server, {name: value}) == once]  # fmt: skip
    assert same == []


def test_a_frame_of_a_row_is_drawn(asker: Asker) -> None:
    pytest.importorskip("pandas")
    grid = {"models": MINE, "datasets": "FindIt_Demo_video_xyxy_json", "limit": 1}
    asker.facts("sweep sweep.yaml", grid)
    row = findit.load_runs("outputs").loc[0]
    first, second = (findit.draw_answer(row, frame=frame) for frame in (0, 1))
    assert first.tobytes() != second.tobytes()


def functions() -> dict[str, Callable[..., Any]]:
    door = {name: getattr(findit, name) for name in dir(findit) if name[0].islower()}
    return {name: value for name, value in door.items() if inspect.isfunction(value)}


def test_every_argument_of_python_has_a_row() -> None:
    unseen = []
    for name, function in functions().items():
        elsewhere = {*OTHER_ARGUMENTS.get(name, {}), *SHOWN_BELOW.get(name, set())}
        rows = {*ARGUMENTS.get(name, {}), *elsewhere}
        arguments = {*inspect.signature(function).parameters}
        unseen += [f"{name}: {argument}" for argument in sorted(arguments ^ rows)]
    assert unseen == []


# --- keys of a space of another kind --------------------------------------------------------------

ODD = {"kind": "unit", "min_pixels": 3136}
ODD_SERVED = {"models": [{**MINE, "space": ODD}], "datasets": DATA}
ODD_HERE = {"models": [{"name": "FindIt-Nano", "space": ODD}], "datasets": DATA}
AT_A_SERVER = f"run --data {DATA} --model mine --base-url http://127.0.0.1:1/v1"

# A line, the sweep beside it, and whether a variable says the space
STATED_IN_LINES: Mapping[str, tuple[str, Any, bool]] = {
    "flag": (f"{AT_A_SERVER} --space ODD", None, False),
    "flag of a model here": (f"run --data {DATA} --model FindIt-Nano --space ODD", None, False),
    "judge args": (f"{AT_A_SERVER} --judge-args {{\"space\":ODD}}", None, False),
    "variable": (AT_A_SERVER, None, True),
    "sweep": ("sweep sweep.yaml", ODD_SERVED, False),
    "sweep of a model here": ("sweep sweep.yaml", ODD_HERE, False),
    **{word: (f"{word} Mine_{DATA}.json --space ODD", None, False)
       for word in ("score", "coords", "calibration")},
}  # fmt: skip

STATED_IN_PYTHON: Mapping[str, Callable[[Any], Any]] = {
    "read": lambda space: findit.read(**{**READ, "space": space}),
    "score": lambda space: findit.score(**{**SCORED, "space": space}),
    "reward": lambda space: findit.reward(**{**SCORED, "space": space}),
    "open_model": lambda space: findit.open_model("mine", "http://127.0.0.1:1/v1", space=space),
    "open_model here": lambda space: findit.open_model("FindIt-Nano", space=space),
    "reward_function": lambda space: findit.reward_function("trl", space=space),
}


@pytest.mark.parametrize("where", STATED_IN_LINES)
def test_a_line_states_no_key_of_another_space(
    where: str, demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    line, sweep, is_variable = STATED_IN_LINES[where]
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.chdir(tmp_path)
    Path(f"Mine_{DATA}.json").write_text('[{"index": 0, "prediction": "[]"}]')
    Path("sweep.yaml").write_text(json.dumps(sweep))
    odd = json.dumps(ODD, separators=(",", ":"))
    if is_variable:
        monkeypatch.setenv("FINDIT_SPACE", odd)
    assert main(line.replace("ODD", odd).split()) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "min_pixels has no effect: unit has no bounds. Leave it out" in error


@pytest.mark.parametrize("name", STATED_IN_PYTHON)
@pytest.mark.parametrize("made", [dict, space_from], ids=["fields", "Space"])
def test_python_states_no_key_of_another_space(name: str, made: Callable[[Any], Any]) -> None:
    with pytest.raises(SpaceError, match="min_pixels has no effect: unit has no bounds"):
        STATED_IN_PYTHON[name](made(ODD))


def test_a_recorded_key_of_another_space_is_read() -> None:
    recorded = Reply(0, BOX.replace("10, 10, 50, 40", "0.1, 0.2, 0.5, 0.8"), ReplyRecord(space=ODD))
    scored = findit.score([recorded], [[[10, 10, 50, 40]]], "xyxy_json", sizes=(100, 50))
    assert scored.metric_values["F1@0.5"] == 100


# --- variables ------------------------------------------------------------------------------------

# Variable of reading -> its value, which gives a reply of an unknown model another score
READING = {"FINDIT_READS_LIKE": "Gemini-2.5-Flash", "FINDIT_THOUGHT_MARKS": "<plan> </plan>"}

SEEN_HERE = {"FINDIT_LOGPROBS", *READING}


@pytest.mark.parametrize("name", READING)
def test_a_variable_changes_how_a_reply_is_read(
    name: str, demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.chdir(tmp_path)
    stem = "Mine_FindIt_Demo_unconstrained_text"
    reply = "<plan>[0, 0, 9, 9]</plan>[100, 200, 500, 1000]"
    Path(f"{stem}.json").write_text(json.dumps([{"index": 0, "prediction": reply}]))

    def details() -> str:
        assert main(["score", f"{stem}.json", "--space", "grid1000"]) == 0
        return json.loads(Path(f"{stem}_details.jsonl").read_text().split("\n")[0])["boxes"]

    without = details()
    monkeypatch.setenv(name, READING[name])
    assert details() != without


def test_a_variable_asks_for_logprobs(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    line = f"run --data {DATA} --model mine --space unit --base-url SERVER --limit 1"
    monkeypatch.delenv("FINDIT_LOGPROBS")
    without = asker.facts(line)
    monkeypatch.setenv("FINDIT_LOGPROBS", "1")
    assert any('"logprobs": true' in fact for fact in asker.facts(line) - without)


def test_every_variable_has_a_row() -> None:
    package = ROOT / "vlmeval_findit"
    texts = [path.read_text(encoding="utf-8") for path in package.rglob("*.py")]
    named = {*chain.from_iterable(re.findall(r'"(FINDIT_[A-Z_]+)"', text) for text in texts)}
    assert named == {*(each.name for each in seen_variables()), *SEEN_HERE}
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    assert [name for name in named if name not in page] == []


def test_a_test_elsewhere_names_the_variable() -> None:
    assert [each.name for each in seen_variables() if each.name not in each.text] == []
