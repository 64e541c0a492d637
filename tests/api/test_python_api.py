"""What other people's code imports: reading, scoring, rewards, prompts, drawings."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scored_runs import HEIGHT, WIDTH, World, failing, saying, speaking, world

import vlmeval_findit as findit
from vlmeval_findit.api.answer_drawing import STROKES
from vlmeval_findit.api.rewards import By
from vlmeval_findit.benchmarks.findit.annotation_tables import load_task
from vlmeval_findit.benchmarks.findit.benchmark import BENCHMARK
from vlmeval_findit.boxes.records import FormatFailure
from vlmeval_findit.boxes.representation import ReplyFormat
from vlmeval_findit.boxes.writing import BoxToWrite, write
from vlmeval_findit.core.drawing import Role
from vlmeval_findit.core.identity import IdentityError
from vlmeval_findit.core.replies import FAILED, Recorded, Reply
from vlmeval_findit.runs.run_statistics import intervals

__all__ = ["world"]

SIZE = (640, 480)
BOX = [[64, 48, 320, 240]]
HIT = "[[100, 100, 500, 500]]"
OPTIONS: dict[str, Any] = {"sizes": SIZE, "space": "grid1000"}

# --- the module itself ----------------------------------------------------------------------------


def processor_seconds(code: str) -> float:
    """Return the processor time of a fresh Python, which does not depend on other programs."""
    pid = subprocess.Popen([sys.executable, "-S", "-c", code]).pid
    _, status, used = os.wait4(pid, 0)
    assert status == 0
    return used.ru_utime + used.ru_stime


def test_importing_it_costs_nothing() -> None:
    root = Path(findit.__file__).parents[1]
    code = f"import sys; sys.path.insert(0, {str(root)!r}); "
    bare = min(processor_seconds(code) for _ in range(3))
    with_package = min(processor_seconds(code + "import vlmeval_findit") for _ in range(3))
    assert with_package - bare < 0.2
    code += "before = set(sys.modules); import vlmeval_findit; print(set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "{'vlmeval_findit'}"


def test_what_needs_no_model_imports_neither_torch_nor_what_plots_and_tabulates() -> None:
    code = (
        "import sys, vlmeval_findit as f\n"
        "f.read('[]', 'xyxy_json', size=(9, 9), space='unit')\n"
        "f.reward(['[]'], [[[0, 0, 1, 1]]], 'xyxy_json', sizes=(9, 9), space='unit')\n"
        "f.score(['[]'], [[]], 'xyxy_json', sizes=(9, 9), space='unit').metric_values\n"
        "f.prompt('dog', 'xyxy_json', 'a.jpg'); f.load_runs; f.draw; f.open_model('FullImage')\n"
        "heavy = {'torch', 'vlmeval', 'pandas', 'scipy', 'vl_convert', 'transformers', 'cv2'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there_and_documented() -> None:
    assert sorted(findit.__all__) == sorted(findit._HOMES)
    assert set(findit.__all__) <= set(dir(findit))
    for name in findit.__all__:
        assert getattr(findit, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'scor'"):
        findit.scor  # noqa: B018


# --- read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ('[{"bbox": [0, 0, 1000, 500]}]', findit.ReplyKind.BOXES, None),
        ('```json\n[{"bbox": [0, 0, 1000, 500]}]\n```', findit.ReplyKind.BOXES, None),
        (
            '[{"bbox": [0, 0, 1000, 500]}, {"box": 3}]',
            findit.ReplyKind.BOXES,
            FormatFailure.WRONG_KEY,
        ),
        ("[]", findit.ReplyKind.NO_BOX, None),
        ("", findit.ReplyKind.NOT_READABLE, FormatFailure.EMPTY),
        ("There is no such thing.", findit.ReplyKind.NOT_READABLE, FormatFailure.NOT_JSON),
        ('[{"bbox": [0, 0,', findit.ReplyKind.NOT_READABLE, FormatFailure.TRUNCATED),
        (None, findit.ReplyKind.FAILED, FormatFailure.FAILED_CALL),
        (f"{FAILED} via API.", findit.ReplyKind.FAILED, FormatFailure.FAILED_CALL),
    ],
)
def test_what_kind_of_answer(
    text: str | None, kind: findit.ReplyKind, reason: FormatFailure | None
) -> None:
    answer = findit.read(text, "xyxy_json", size=SIZE, space="grid1000")
    assert (answer.kind, answer.reason) == (kind, reason)
    assert answer.boxes == (((0.0, 0.0, 640.0, 240.0),) if kind is findit.ReplyKind.BOXES else ())


def test_labels_and_frames() -> None:
    reply = '[{"frame_idx": 2, "label": "cat", "bbox": [0, 0, 500, 500]}]'
    answer = findit.read(reply, "xyxy_json", size=SIZE, space="grid1000", frames=3, multilabel=True)
    assert (answer.labels, answer.frames) == (("cat",), (1,))
    # Over frames the release does not take the empty list for adherent; it is an answer all the
    # same.
    assert findit.read("[]", "xyxy_json", size=SIZE, space="unit", frames=3).kind.value == "no box"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "xyxy_jsn"}, "no output format 'jsn': did you mean json"),
        ({"format": "xyxxy_json"}, "did you mean xyxy"),
        ({"format": "multilabel_xyxy_json"}, "multilabel=True"),
        ({"format": ""}, "representation is missing"),
        ({"space": "grid100"}, "did you mean grid1000"),
        ({"space": None}, "not guessed(.|\n)*grid1000"),
        ({"space": "smart_resize"}, "min_pixels"),
        ({"frames": 0}, "frames: 0"),
        ({"text": b"[]"}, "bytes is neither a text nor"),
        ({"size": (0, 480)}, r"size \(0, 480\)"),
        ({"size": (640.5, 480)}, "whole pixels"),
        ({"size": (640, 480, 3)}, "whole pixels"),
    ],
)
def test_what_cannot_be_read(change: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        findit.read(
            **{"text": "[]", "format": "xyxy_json", "size": SIZE, "space": "unit", **change}
        )


def test_the_space_that_a_reply_recorded_is_taken_and_never_overruled_in_silence() -> None:
    reply = Reply(7, "[0, 0, 500, 500]", Recorded(space={"kind": "grid1000"}))
    assert findit.read(reply, "xyxy_text", size=SIZE).boxes == ((0.0, 0.0, 320.0, 240.0),)
    with pytest.raises(IdentityError, match="grid1000"):
        findit.read(reply, "xyxy_text", size=SIZE, space="pixels")


# --- score ----------------------------------------------------------------------------------------

NAMES = ("FindIt_Pascal_xyxy_json_bbox_2d", "FindIt_Pascal_multilabel_cxcywh_json_nested")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["speaks", "fails", "talks"])
def test_the_figures_are_those_of_the_command(world: World, name: str, kind: str) -> None:
    answer = {"speaks": speaking(name, 0.7, 30), "fails": failing, "talks": saying("no")}[kind]
    run = world.run("Model", name, answer)
    variant = load_task(name).question
    queries = [load_task(name).queries[row.index] for row in run.rows]
    result = findit.score(
        [row["prediction"] for row in json.loads(run.path.read_text())],
        [query.truth for query in queries],
        variant.format,
        sizes=[(query.width, query.height) for query in queries],
        space="grid1000",
        multilabel=variant.multilabel,
        images=[query.images[0] for query in queries],
    )
    # To the last digit.
    for metric, value in run.metric_values.items():
        assert result.metric_values[metric] == value
    assert result.metric_values[BENCHMARK.with_failures.name] == BENCHMARK.with_failures.value(
        run.sums
    )
    assert result.failed == run.failed
    assert {**result.intervals, BENCHMARK.with_failures.name: None} == {
        **intervals(run),
        BENCHMARK.with_failures.name: None,
    }
    for row, recorded in zip(result.queries, run.rows, strict=True):
        assert (row.sums, row.reason, row.failed) == (
            recorded.sums,
            recorded.reason,
            recorded.failed,
        )
        assert row.details["ious"] == recorded.details["ious"]


def test_boxes_in_another_space_than_was_said_are_told() -> None:
    generator = np.random.default_rng(1)
    corners = generator.integers(0, 200, (300, 1, 2))
    truths = np.concatenate([corners, corners + generator.integers(60, 240, corners.shape)], -1)
    replies = [str(box.tolist()) for box in truths]
    arguments = {"truths": truths, "format": "xyxy_text", "sizes": SIZE}
    right = findit.score(replies, space="pixels", **arguments)
    assert (right.metric_values["F1@0.5"], right.coords_doubt) == (100, None)
    wrong = findit.score(replies, space="grid1000", **arguments)
    assert wrong.coords_doubt is not None
    assert "pixels" in wrong.coords_doubt


def test_nothing_to_score() -> None:
    result = findit.score([], [], "xyxy_json", sizes=[], space="unit")
    assert (result.queries, result.intervals, result.failed) == ((), {}, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"truths": []}, "0 truths for 2 replies"),
        ({"sizes": [SIZE]}, "1 sizes for 2 replies"),
        ({"sizes": [SIZE, (640, -1)]}, r"size \(640, -1\)"),
        ({"images": ["a"]}, "1 images for 2"),
        ({"truths": [BOX, [64, 48, 320, 240]]}, "truth 1: boxes should be"),
        ({"truths": [BOX, [[320, 48, 64, 240]]]}, "truth 1: .*x1 <= x2"),
        ({"truths": [BOX, [[float("nan"), 0, 1, 1]]]}, "truth 1"),
        ({"truths": [BOX, findit.truth(BOX, ["cat"])]}, "truth 1: it has labels, but multilabel=F"),
        ({"multilabel": True}, "truth 0: it has no labels"),
        ({"truths": [BOX, findit.truth(BOX, frames=[1])]}, r"truth 1: it is in frames \{1\}"),
        ({"space": None}, "not guessed"),
    ],
)
def test_what_cannot_be_scored(change: dict[str, Any], message: str) -> None:
    whole = {
        "replies": [HIT, "[]"],
        "truths": [BOX, []],
        "format": "xyxy_text",
        **OPTIONS,
        **change,
    }
    with pytest.raises(ValueError, match=message):
        findit.score(**whole)


# --- reward ---------------------------------------------------------------------------------------

FORMAT = ReplyFormat("json", "xyxy", "bbox_2d")
corner = st.tuples(st.integers(0, 300), st.integers(0, 200))
side = st.tuples(st.integers(20, 300), st.integers(20, 200))
boxes = st.lists(st.builds(lambda a, b: (*a, a[0] + b[0], a[1] + b[1]), corner, side), max_size=3)
noise = st.sampled_from([None, "", "[]", "no", '[{"bbox_2d": [1, 2]}]', f"{FAILED} x"])
written = boxes.map(lambda many: write([BoxToWrite(box, "", 0) for box in many], FORMAT))


OF_BOXES: tuple[By, ...] = ("f1", "iou", "adherence")


@given(st.lists(st.tuples(written | noise, boxes), min_size=1, max_size=6))
def test_a_reward_is_the_score_of_the_query_alone(pairs: list[tuple[str | None, Any]]) -> None:
    replies, truths = [reply for reply, _ in pairs], [true for _, true in pairs]
    options: dict[str, Any] = {"sizes": SIZE, "space": "pixels"}
    name = "xyxy_json_bbox_2d"
    scored = findit.score(replies, truths, name, **options)
    batch = {by: findit.reward(replies, truths, name, by=by, **options) for by in OF_BOXES}
    for at, row in enumerate(scored.queries):
        alone = {
            by: findit.reward(replies[at], truths[at], name, by=by, **options) for by in OF_BOXES
        }
        for by, value in alone.items():
            np.testing.assert_equal(value, batch[by][at])
        if row.failed:
            assert all(map(np.isnan, alone.values()))
            continue
        assert alone["adherence"] == row.sums["adherent"]
        if truths[at]:
            assert alone["f1"] == pytest.approx(BENCHMARK.query_score(row) / 100)
            assert alone["iou"] == pytest.approx(row.sums["iou_sum"] / row.sums["n_gt"])
        else:
            assert alone["f1"] == alone["iou"] == row.sums.get("negatives_rejected", 0)


class Tensor:
    """What a tensor of another library has, and a list has not."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def tolist(self) -> Any:
        return self.values.tolist()


def test_sizes_and_truths_may_be_tensors() -> None:
    replies, boxes = ["[0, 0, 500, 500]"] * 2, [[0, 0, 50, 100]]
    for sizes in (
        *(Tensor([100, 200]), Tensor([[100, 200], [100, 200]]), np.array([[100, 200]] * 2)),
        *([Tensor([100, 200])] * 2, [Tensor(100), Tensor(200)]),
    ):
        for truth in (boxes, Tensor(boxes), [Tensor(boxes[0])]):
            options: Any = {"sizes": sizes, "space": "grid1000"}
            assert findit.reward(replies, [truth] * 2, "xyxy_text", **options).tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"should be .width, height. in whole pixels"):
        findit.reward(replies, [boxes] * 2, "xyxy_text", sizes=Tensor([0.5, 1]), space="grid1000")


def said_in_chat(text: Any) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": text}]


def test_completions_of_a_chat_are_replies() -> None:
    """As trainers give them to rewards: a list of messages each."""
    right, boxes = "[0, 0, 500, 500]", [[0, 0, 50, 100]]
    options: Any = {"format": "xyxy_text", "sizes": (100, 200), "space": "grid1000"}
    many = [
        said_in_chat(right),
        said_in_chat([{"type": "text", "text": right}]),
        [{"role": "user", "content": right}, *said_in_chat("no"), *said_in_chat(right)],
        said_in_chat(None),
    ]
    assert findit.reward(many, [boxes] * 4, **options).tolist() == [1, 1, 1, 0]
    assert findit.score(many, [boxes] * 4, **options).metric_values["Recall"] == 75
    assert findit.reward([message for (message,) in many[:2]], [boxes] * 2, **options).tolist() == [
        1,
        1,
    ]
    for reply in (many[0], many[0][0], many[2]):
        assert findit.reward(reply, boxes, **options) == 1
    with pytest.raises(TypeError, match="reply 0: no message of the assistant among 1"):
        findit.reward([[{"role": "user", "content": right}]], [boxes], **options)
    with pytest.raises(TypeError, match="reply 1: int is neither a text nor messages"):
        findit.reward([right, 3], [boxes] * 2, **options)


def test_a_score_is_written_in_a_line() -> None:
    replies, truths = ["[]"] * 500, [[[0, 0, 1, 1]]] * 500
    scored = findit.score(replies, truths, "xyxy_text", sizes=SIZE, space="unit")
    assert repr(scored).startswith("Score(500 replies, 0 failed: F1@0.5 0.0, ")
    assert len(repr(scored)) < 300


def test_silence_is_no_answer_where_nothing_is_to_be_found() -> None:
    replies = ["[]", "", "There is none.", HIT]
    assert findit.reward(replies, [[]] * 4, "xyxy_text", **OPTIONS).tolist() == [1, 0, 0, 0]


def test_arrays_are_truths_too() -> None:
    # The rows of an array are new objects at every access.
    truths = np.array([BOX, [[0, 0, 9, 9]], BOX, [[5, 5, 9, 9]]])
    rewards = findit.reward([HIT] * 4, truths, "xyxy_text", **OPTIONS)
    assert rewards.tolist() == [1, 0, 1, 0]
    assert (rewards.dtype, rewards.shape) == (np.float64, (4,))
    sizes = np.array([SIZE] * 4)
    assert findit.reward([HIT] * 4, truths, "xyxy_text", sizes=sizes, space="grid1000").sum() == 2
    assert findit.reward([], [], "xyxy_text", **OPTIONS).shape == (0,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"by": "miou"}, "by: no reward 'miou': did you mean iou"),
        ({"truths": [BOX]}, "1 truths for 2"),
        ({"space": "grid"}, "no coordinate space"),
        ({"format": "yxyx"}, "output format is missing"),
    ],
)
def test_what_cannot_be_rewarded(change: dict[str, Any], message: str) -> None:
    whole = {
        "replies": [HIT, HIT],
        "truths": [BOX, BOX],
        "format": "xyxy_text",
        **OPTIONS,
        **change,
    }
    with pytest.raises(ValueError, match=message):
        findit.reward(**whole)


# --- prompt ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*NAMES, "FindIt_RefCOCO_cxcywh_json_cx-formula"])
def test_a_prompt_is_that_of_runs(world: World, name: str) -> None:
    variant = BENCHMARK.parse(name)
    query = next(iter(load_task("FindIt_Pascal_xyxy_json").queries.values()))
    label: str | Sequence[str] = ["cat", "dog"] if variant.multilabel else query.label
    asked = findit.prompt(label, variant.format, query.images, family=variant.family)
    as_asked = BENCHMARK.prompts()[0].message
    if variant.multilabel:
        query = replace(query, label="cat, dog")
    assert asked == as_asked(query, variant)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"family": "refex"}, "did you mean refexp"),
        ({"family": "refexp", "images": ["a.jpg", "b.jpg"]}, "not 2 frames"),
        ({"family": "refexp", "label": ["a", "b"]}, "no multi-label"),
        ({"family": "insdet"}, "with references"),
        ({"references": ["a.jpg"]}, "without references"),
        ({"images": []}, "no image"),
        ({"label": []}, "no label"),
    ],
)
def test_prompts_that_there_are_not(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        findit.prompt(**{"label": "cat", "format": "xyxy_json", "images": "a.jpg", **change})


# --- draw -----------------------------------------------------------------------------------------


def colours_of(picture: Image.Image) -> set[str]:
    return {f"#{r:02x}{g:02x}{b:02x}" for _, (r, g, b) in picture.getcolors(100_000)}  # type: ignore[misc]


@pytest.mark.parametrize(
    ("answer", "roles"),
    [
        ([[10, 10, 60, 60]], {Role.TRUTH, Role.HIT}),
        ([[100, 10, 160, 60]], {Role.TRUTH, Role.MISS}),
        ([], {Role.TRUTH}),
        ([[-1e9, -1e9, 1e9, 1e9]], {Role.TRUTH}),
    ],
)
def test_a_box_has_the_colour_of_its_role(answer: Any, roles: set[Role], tmp_path) -> None:
    picture = Image.new("L", (WIDTH, HEIGHT), 70)
    picture.save(tmp_path / "a.png")
    # An answer that lies on its object would hide it: the object is larger by a pixel or two.
    drawn = findit.draw(picture, [[7, 7, 64, 64]], answer)
    assert {role for role in STROKES if STROKES[role].colour in colours_of(drawn)} == roles
    assert drawn.size == picture.size
    assert findit.draw(tmp_path / "a.png", [[7, 7, 64, 64]], answer) == drawn
    assert findit.draw(np.asarray(picture), [[7, 7, 64, 64]], answer) == drawn
    assert picture.getcolors() == [(WIDTH * HEIGHT, 70)]


def test_an_array_that_is_no_image_is_refused() -> None:
    for array in (np.zeros((3, 8, 9), np.uint8), np.zeros((8, 9, 3)), np.zeros(3, np.uint8)):
        with pytest.raises(ValueError, match=r"is no image: it should be .height, width, 3."):
            findit.draw(array, [], [])
    with pytest.raises(ValueError, match="int is no image: use a path"):
        findit.draw(3, [], [])


def test_labels_and_frames_are_drawn() -> None:
    picture = Image.new("RGB", (WIDTH, HEIGHT))
    true = findit.truth([[10, 10, 60, 60], [10, 10, 60, 60]], ["cat", "cat"], [0, 1])
    reply = '[{"frame_idx": 1, "label": "dog", "bbox": [60, 120, 290, 580]}, {"frame_idx": 0, "label": "cat", "bbox": [0, 0, 9, 9]}]'  # noqa: E501
    answer = findit.read(
        reply, "xyxy_json", size=picture.size, space="grid1000", frames=2, multilabel=True
    )
    second = colours_of(findit.draw(picture, true, answer, frame=1))
    assert STROKES[Role.WRONG_LABEL].colour in second
    assert STROKES[Role.MISS].colour not in second
    first = colours_of(findit.draw(picture, true, answer, frame=0))
    assert STROKES[Role.MISS].colour in first


def test_lines_are_those_of_the_report() -> None:
    css = (Path(findit.__file__).with_name("report") / "templates").glob("*.css")
    text = "\n".join(path.read_text(encoding="utf-8") for path in css)
    names = ("truth", "hit", "miss", "wrong", "ignored", "uncounted")
    for role, name in zip(STROKES, names, strict=True):
        line = STROKES[role]
        assert f"--{name.replace('uncounted', 'ignored')}: {line.colour};" in text
        rule = next(row for row in text.splitlines() if row.startswith(f".picture .{name} "))
        dash = re.search(r"stroke-dasharray: (\d+) (\d+);", rule)
        assert (line.dash, line.gap) == (tuple(map(int, dash.groups())) if dash else (0, 0))
