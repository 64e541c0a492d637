"""What answers no picture that was sent is read in pixels of the image file, of any size."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from scored_runs import World, query

import vlmeval_findit as findit
from vlmeval_findit.benchmarks import baselines, benchmarks
from vlmeval_findit.boxes import FILE_PIXELS, Space, SpaceError, Truth, reply_extent, space_from
from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.models import chat_model
from vlmeval_findit.protocol import Answering, Benchmark, CallResult, Reply, ReplyRecord, Settings
from vlmeval_findit.scoring import check_replies, run_identity, score_file, score_rows

NAME = "FindIt_Pascal_xyxy_json"

# Around the limit of what is sent, with scenes of the benchmark; wide, high and thin
SIZES = [(4095, 300), (4096, 4096), (4097, 300), (300, 4097), (8192, 6144), (6144, 8192), (5000, 1)]


def boxes_in(size: tuple[int, int]) -> list[list[float]]:
    """Two boxes, of which one ends in the lower right corner."""
    width, height = size
    return [[0, 0, width / 4, height / 2], [width / 2, height / 4, width, height]]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Write a table with a row of each size, without its images."""
    monkeypatch.chdir(tmp_path)
    world = World(tmp_path)
    world.at_hand(monkeypatch)
    rows = []
    for index, size in enumerate(SIZES):
        corners = [(a, b, c, d) for a, b, c, d in boxes_in(size)]
        row = query(index, f"{index}.png")
        truth = Truth(tuple(corners), (0, 0))
        rows.append(replace(row, width=size[0], height=size[1], truth=truth))
    world.table("Pascal", rows)
    return world


def replies_in_pixels(record: ReplyRecord) -> list[Reply]:
    """The truth of every row in pixels of its file."""
    texts = [json.dumps([{"bbox": box} for box in boxes_in(size)]) for size in SIZES]
    return [Reply(index, text, record) for index, text in enumerate(texts)]


# --- predictions of other programs ----------------------------------------------------------------


def test_converted_predictions_are_the_truth_at_every_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of Ref-L4, in both of its formats of boxes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path))
    lines = ["index\tcaption\tbbox\tori_category_id\twidth\theight\tfile_name\tsplit"]
    predictions = []
    for index, size in enumerate(SIZES):
        x1, y1, x2, y2 = boxes_in(size)[1]
        corner = [x1, y1, x2 - x1, y2 - y1]
        lines.append(f"{index}\te\t{corner}\to365_1\t{size[0]}\t{size[1]}\ta.jpg\tval")
        how: dict[str, Any] = {"format": "xyxy", "pred_bbox": [x1, y1, x2, y2]}
        if index % 2:
            how = {"format": "xywh", "pred_bbox": corner}
        predictions.append({"id": index, **how})
    Path("RefL4Full_val.tsv").write_text("\n".join(lines) + "\n")
    Path("boxes.json").write_text(json.dumps(predictions))
    name = "FindIt_RefL4Full_val_xyxy_json"
    assert main(["score", "--convert", "boxes.json", "--data", name]) == 0
    path = Path(f"boxes_{name}.json")
    run = score_file(path)
    assert [row.details["ious"] for row in run.rows] == [[1.0]] * len(SIZES)
    assert [space["kind"] for space in run.spaces] == [FILE_PIXELS.kind]


def test_every_benchmark_that_converts_boxes_is_tried_above() -> None:
    converting = {
        each.name
        for each in benchmarks()
        if type(each).convert is not Benchmark.convert
        and any(each.parse(name).in_boxes for name in each.variant_names())
    }
    assert converting == {"Ref-L4"}


# --- right replies of ``check`` -------------------------------------------------------------------


@pytest.mark.parametrize("size", [(4096, 100), (4097, 100), (100, 5000)])
def test_right_replies_of_a_check_are_right(
    size: tuple[int, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("tables", "set"):
        Path(folder).mkdir()
    monkeypatch.setenv("LMUData", str(tmp_path / "tables"))
    Image.new("RGB", size, (120, 130, 140)).save("set/a.png")
    line = {"image": "a.png", "expression": "a box", "boxes": [boxes_in(size)[1]]}
    Path("set/q.jsonl").write_text(json.dumps(line) + "\n")
    assert main(["data", "import", "set/q.jsonl", "--name", "Big"]) == 0
    assert main(["check", "FindIt_Big_xyxy_json"]) == 0
    assert "all right" in capsys.readouterr().out


# --- models on this machine -----------------------------------------------------------------------


@pytest.mark.parametrize("stated", ["pixels", "file_pixels"])
@pytest.mark.parametrize("runs_here", [True, False])
def test_models_on_this_machine_answer_in_pixels_of_the_file(
    stated: str, runs_here: bool, world: World
) -> None:
    """Over HTTP pixels are those of the picture that was sent."""
    space = {"kind": stated}
    dataset = load_dataset(NAME)
    who = Answering("Test", runs_here=runs_here)
    run = run_identity(dataset, "M", who, list(dataset.queries), space)
    replies = replies_in_pixels(ReplyRecord(space=space))
    scored = score_rows(check_replies("M", dataset, replies, Settings(), run))
    right = [min(row.details["ious"]) > 0.999 for row in scored.rows]
    is_file = runs_here or stated == "file_pixels"
    assert right == [is_file or max(size) <= 4096 for size in SIZES]


def test_an_opened_model_sees_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    class Runner:
        def answer_batch(self, *_: Any, **options: Any) -> list[CallResult]:
            text = json.dumps([{"bbox_2d": [0, 0, 5000, 50]}])
            return [CallResult(text, ReplyRecord(space={"kind": "pixels"}))]

    local_client = "vlmeval_findit.models.local.local_client"
    monkeypatch.setattr(f"{local_client}.load_local", lambda *_: Runner())
    model = findit.open_model("FindIt-Nano", space="pixels")
    answer = model.ask(Image.new("RGB", (5000, 50)), "dog")
    assert answer.parsed.boxes == ((0, 0, 5000, 50),)


def test_baselines_answer_in_a_space_without_a_limit() -> None:
    for name in baselines():
        for benchmark in benchmarks():
            row = benchmark.baselines.get(name)
            if row is None or row.space is None:
                continue
            across, down, *corner = reply_extent(space_from(row.space), 8192, 6144)
            assert (across, down, *corner) in ((1000, 1000, 0, 0), (8192, 6144, 0, 0))


# --- models behind HTTP ---------------------------------------------------------------------------


def test_a_provider_refuses_pixels_of_the_file() -> None:
    model = chat_model("GPT-6 Astra", "openai", space="file_pixels")
    variant = load_dataset("FindIt_Scenes_mini_xyxy_json").variant
    with pytest.raises(SpaceError, match="of the sent image: type --space pixels"):
        model.describe(variant, ())


def test_a_server_is_sent_the_whole_file() -> None:
    model = chat_model("mine", space="file_pixels")
    assert model.image_rule(Space("file_pixels")).__name__ == "as_they_are"
