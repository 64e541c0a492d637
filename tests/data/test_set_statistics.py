"""``data stats``: what a set holds, counted by hand and by definition."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import custom_data
import pytest
from few_fast import every_nth_fast
from PIL import Image

from vlmeval_findit.cli import main
from vlmeval_findit.data import MAKERS, load_dataset, statistics_of
from vlmeval_findit.report import set_chart

Out = pytest.CaptureFixture[str]


def stats_of(*names: str) -> dict[str, dict[str, object]]:
    assert main(["data", "stats", *names, "--json", "stats.json"]) == 0
    return json.loads(Path("stats.json").read_text())


def test_a_small_set_counted_by_hand(tmp_path: Path, data_root: Path, capsys: Out) -> None:
    images = custom_data.make_images(tmp_path / "images")
    values = custom_data.coco_values()
    # A crowd, and two classes of one box
    values["annotations"] += [
        {"id": 15, "image_id": 501, "category_id": 7, "bbox": [0, 0, 9, 9], "iscrowd": 1},
        {"id": 16, "image_id": 77, "category_id": 7, "bbox": [4, 8, 40, 80], "iscrowd": 0},
    ]
    path = custom_data.write_coco(images, values)
    assert main(["data", "import", str(path), "--image-root", str(images), "--name", "Mine"]) == 0
    both = stats_of("Mine", "Mine_multilabel")
    for found in both.values():
        assert found["images"] == 3
        assert found["objects"] == 5
        assert found["ignored"] == 1
        assert found["classes"] == 2
        assert found["vocabulary"] == 3
        assert found["objects an image"] == {"mean": 5 / 3, "least": 0, "most": 3}
        sizes = [(30.5 * 20.25) ** 0.5, 60**0.5 * 40**0.5, (12 * 30) ** 0.5, *[3200**0.5] * 2]
        assert found["object size (px)"]["mean"] == pytest.approx(sum(sizes) / 5)
        assert found["small objects"] == 1.0
        assert found["image width (px)"] == {
            "mean": pytest.approx(284 / 3), "least": 64, "most": 120,
        }  # fmt: skip
    assert (both["Mine"]["queries"], both["Mine_multilabel"]["queries"]) == (5, 3)
    assert both["Mine"]["queries without an object"] == 1
    assert both["Mine"]["words a query"]["most"] == 2
    table = capsys.readouterr().out
    assert "Mine_multilabel" in table
    assert "words a query" in table


def write_lines(folder: Path, lines: Sequence[object]) -> Path:
    path = folder / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_an_object_counts_once_for_many_expressions(tmp_path: Path, data_root: Path) -> None:
    Image.new("RGB", (600, 400)).save(tmp_path / "a.png")
    texts = ["the dog", "The dog, on the LEFT.", "a man's hat"]
    boxes = [[0, 0, 200, 200], [0, 0, 200, 200], [0, 0, 400, 300]]
    lines = [
        {"image": "a.png", "expression": text, "boxes": [box]}
        for text, box in zip(texts, boxes, strict=True)
    ]
    assert main(["data", "import", str(write_lines(tmp_path, lines)), "--name", "Mine"]) == 0
    found = stats_of("FindIt_Mine_xywh_text")["Mine"]
    assert (found["queries"], found["images"], found["objects"]) == (3, 1, 2)
    assert (found["classes"], found["vocabulary"]) == (0, 7)
    assert found["words a query"] == {"mean": 10 / 3, "least": 2, "most": 5}
    shares = [found[f"{size} objects"] for size in ("small", "medium", "large")]
    assert shares == [0.0, 0.5, 0.5]


@pytest.mark.parametrize(
    "table", every_nth_fast([each for each in MAKERS if "mini" in each or "Demo" in each], 3)
)
def test_every_kind_of_set_has_statistics(table: str, data_root: Path) -> None:
    found = stats_of(table)[table]
    assert found["queries"] > 0
    assert found["images"] > 0
    classes = [found[f"{size} objects"] for size in ("small", "medium", "large")]
    if found["objects"]:
        assert sum(classes) == pytest.approx(1)
        each = found["objects an image"]
        assert each["mean"] * found["images"] == pytest.approx(found["objects"])
    else:
        assert classes == [None] * 3


@pytest.mark.sees("data stats names", "data stats --json")
def test_names_are_those_of_tables_files_and_variants(data_root: Path, capsys: Out) -> None:
    assert list(stats_of("Demo", "FindIt_Demo_xywh_json", "Demo_refexp")) == ["Demo", "Demo_refexp"]
    assert main(["data", "stats", "Demmo"]) == 2
    assert "unknown dataset 'Demmo': did you mean Demo?" in capsys.readouterr().err
    assert main(["data", "stats", "refcoco_g_test"]) == 2
    assert "data get RefCOCOg" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["FindIt_Demo_xyxy_json", "FindIt_Scenes_mini_video_xyxy_text"])
def test_the_picture_has_every_image_object_and_query(name: str, data_root: Path) -> None:
    shown = statistics_of(load_dataset(name))
    rows = set_chart(shown)["data"]["values"]
    panels: dict[str, float] = {}
    for row in rows:
        panels[row["what"]] = panels.get(row["what"], 0.0) + row["share"]
    assert panels == {
        "objects an image": pytest.approx(100, abs=0.1),
        "size of objects (px)": pytest.approx(100, abs=0.1),
        "words a query": pytest.approx(100, abs=0.1),
    }


def test_the_report_of_a_run_shows_its_set(tmp_path: Path, data_root: Path) -> None:
    assert main(["data", "show", "FindIt_Demo_xyxy_json"]) == 0
    path = tmp_path / "out" / "m_FindIt_Demo_xyxy_json.jsonl"
    path.parent.mkdir()
    rows = load_dataset("FindIt_Demo_xyxy_json").queries
    path.write_text("\n".join(json.dumps({"index": row, "prediction": "[]"}) for row in rows))
    assert main(["score", str(path), "--space", "pixels"]) == 0
    page = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "out"), "--out", str(page)]) == 0
    assert "What is in the whole set" in page.read_text()
