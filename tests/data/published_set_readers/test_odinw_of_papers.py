"""ODinW-13 as papers ask it: thirteen folders, or the hub's one copy, to a mean of thirteen."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import published_stand_ins as published
import pyarrow.parquet as pq
import pytest
from chat_server import ChatServer, completion
from pages import PAGES, blocks, commands
from scored_runs import World, grid

from vlmeval_findit.benchmarks.findit import custom_rows
from vlmeval_findit.boxes import BoxToWrite, write
from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset

pytestmark = pytest.mark.usefixtures("data_root")

NAMES = [place.partition("/")[0] for place in published.ODINW_13]
SET = "ODinW13_papers"
WRITERS = {"folders": published.write_odinw_13, "hub's copy": published.write_odinw_copy}


def import_papers(folder: Path, *more: str) -> int:
    return main(["data", "import", str(folder), "--set", SET, *more])


def queries(name: str) -> list[Any]:
    return list(load_dataset(f"FindIt_{name}_xyxy_json").queries.values())


def answered(world: World, table: str) -> None:
    """Answer the first object of images rightly, and another one beside its place."""
    name = f"FindIt_{table}_xyxy_json"
    reply = load_dataset(name).variant.reply

    def answer(query: Any, generator: Any) -> str:
        truth = query.truth
        labels = truth.labels or [query.label] * len(truth.boxes)
        boxes = []
        for box, label in zip(truth.boxes, labels, strict=True):
            said = box if box[0] == published.OBJECT[0] else (0.0, 0.0, 5.0, 5.0)
            boxes.append(BoxToWrite(grid(said), label, 0))
        return write(boxes, reply)

    world.predict("M", name, answer)


def _words(request: Any) -> str:
    """Return the text of a request, without its image."""
    parts = request.body["messages"][-1]["content"]
    return " ".join(part["text"] for part in parts if part["type"] == "text")


def _place_of_the_first_object(request: Any, number: int) -> Any:
    """Answer where images show their first object, with the first class that is asked for."""
    words = _words(request)
    found = re.search(r"categories: '([^',]+)", words) or re.search(r"every (\S+) in", words)
    label = found[1] if found else ""
    x, y, w, h = published.OBJECT
    box = [x / published.WIDTH, y / published.HEIGHT]
    box += [(x + w) / published.WIDTH, (y + h) / published.HEIGHT]
    return completion(json.dumps([{"bbox_2d": box, "label": label}]))


def precisions(world: World, out: Path, runs: Path | None = None) -> list[dict[str, Any]]:
    """Return the rows of ``ap`` over all runs."""
    assert main(["ap", str(runs or world.runs), "--json", str(out)]) == 0
    rows: list[dict[str, Any]] = json.loads(out.read_text())["tables"][0]["rows"]
    return rows


@pytest.mark.parametrize("kind", WRITERS)
def test_every_image_is_asked_about_all_classes(kind: str, tmp_path: Path) -> None:
    folder = WRITERS[kind](tmp_path / "odinw")
    assert import_papers(folder, "--partial") == 0
    assert sorted(custom_rows()) == sorted(f"{SET}_{name}" for name in NAMES)
    for place, classes in published.ODINW_13.items():
        name = f"{SET}_{place.partition('/')[0]}"
        asked = {(query.images[0], query.label) for query in queries(name)}
        assert len(asked) == len(queries(name)) == 5 * len(classes)
        together = queries(f"{name}_multilabel")
        assert [query.label for query in together] == [", ".join(classes)] * 5
        assert [len(query.truth.boxes) for query in together] == [1, 2, 2, 0, 1]


def test_own_files_ask_the_same(tmp_path: Path) -> None:
    folder = published.write_odinw_13(tmp_path / "odinw")
    assert import_papers(folder, "--partial") == 0
    files = sorted(folder.rglob("valid/annotations_without_background.json"))
    assert len(files) >= 12
    for file in files:
        own = f"Own_{file.relative_to(folder).parts[0]}"
        flags = ["--name", own, "--all-classes", "--image-root", str(file.parent)]
        assert main(["data", "import", str(file), *flags]) == 0
        for form in ("", "_multilabel"):
            papers = queries(f"{SET}_{own.removeprefix('Own_')}{form}")
            assert [(each.label, each.truth, each.images) for each in queries(f"{own}{form}")] == [
                (each.label, each.truth, each.images) for each in papers
            ]


def test_a_set_says_once_what_is_true_of_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = published.write_odinw_13(tmp_path / "odinw")
    assert import_papers(folder, "--partial") == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line[:5] != "read:"]
    assert sorted({line for line in lines if lines.count(line) > 1}) == []


def test_both_copies_have_the_same_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pycocotools")
    tables = []
    for kind, write_copy in WRITERS.items():
        world = World(tmp_path / kind)
        folder = write_copy(tmp_path / kind / "odinw")
        assert import_papers(folder, "--partial", "--replace") == 0
        for name in NAMES:
            answered(world, f"{SET}_{name}_multilabel")
        capsys.readouterr()
        tables.append(precisions(world, tmp_path / f"{kind}.json"))
        printed = capsys.readouterr().out
        assert "mean of 13" in printed
        assert "not as papers ask" not in printed
    assert tables[0] == tables[1]
    *sets, mean = tables[0]
    assert len(sets) == 13
    assert mean["mAP"] == pytest.approx(sum(row["mAP"] for row in sets) / 13)
    assert 0 < mean["lowest"] < mean["expected"] < mean["highest"] < 100


def test_one_class_a_question_has_the_value_of_all_together(tmp_path: Path) -> None:
    pytest.importorskip("pycocotools")
    assert import_papers(published.write_odinw_13(tmp_path / "odinw"), "--partial") == 0
    world = World(tmp_path)
    for table in (f"{SET}_PascalVOC", f"{SET}_PascalVOC_multilabel"):
        answered(world, table)
    together, alone = precisions(world, tmp_path / "ap.json")[:2]
    assert together["dataset"] == f"{SET}_PascalVOC_multilabel"
    assert 0 < together["mAP"] < 100
    assert {**alone, "dataset": together["dataset"]} == together


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("labels", ["cow"] * 3, "row 30: 1 bboxes, but 3 labels"),
        ("bboxes", [[1.0, 2.0, 3.0]], "bboxes[0]"),
        ("categories", [], "categories: [] should be a list of names"),
        ("image", {"bytes": b"no image", "path": None}, "image: not an image"),
    ],
)
def test_damaged_rows_of_the_copy_are_named(
    column: str, value: Any, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = published.write_odinw_copy(tmp_path / "hub")
    rows = []
    for file in sorted(folder.rglob("*.parquet")):
        rows += pq.read_table(file).to_pylist()
        file.unlink()
    at = next(n for n, row in enumerate(rows) if row["dataset_name"] == "PascalVOC")
    rows[at][column] = value
    published.write_parquet(folder, "test", rows)
    assert import_papers(folder, "--partial", "--only", "PascalVOC") == 2
    assert why in capsys.readouterr().out
    assert not custom_rows()


def test_the_hubs_copy_lacks_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = published.write_odinw_copy(tmp_path / "hub")
    next(folder.rglob("*00001*")).unlink()
    assert import_papers(folder) == 2
    assert "test-00001-of-00002.parquet is missing. Download it" in capsys.readouterr().err


def test_the_pages_commands_end_in_the_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pycocotools")
    monkeypatch.chdir(tmp_path)
    folder = published.write_odinw_13(tmp_path / "odinw")
    text, _ = [
        block.text
        for block in blocks(PAGES["docs/how-to/detection.md"])
        if block.info == "sh parsed"
    ]
    text = text.replace("Qwen3-VL-8B", "FullImage")
    (sweep,) = re.findall(r"<<END\n(.*?)^END$", text, re.MULTILINE | re.DOTALL)
    Path("odinw.yaml").write_text(sweep)
    for words in commands(text):
        line = [str(folder) if word == "DIR" else word for word in words]
        more = ["--partial"] if "import" in line else []
        assert main([*line, *more]) == 0, line
    assert "mean of 13" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("model", "figure", "asked", "status"),
    [
        ("Qwen3-VL-8B-Instruct", "ODinW-13", "categories: 'cow, dog, person'. Report bbox", 2),
        ("Qwen2.5-VL-7B", "ODinW-13 by class", "Locate every person in the image and output", 0),
    ],
)
def test_a_published_value_is_reproduced(
    model: str,
    figure: str,
    asked: str,
    status: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("pycocotools")
    assert import_papers(published.write_odinw_13(tmp_path / "odinw"), "--partial") == 0
    work = tmp_path / "work"
    out = tmp_path / "reproduction.json"
    with ChatServer(_place_of_the_first_object) as server:
        line = [
            *("reproduce", f"{model}=mine", "--set", figure, "--base-url", server.url),
            *("--space", "unit", "--work-dir", str(work), "--json", str(out)),
        ]
        assert main(line) == status
        texts = {_words(request) for request in server.asked}
    printed = capsys.readouterr().out
    assert any(asked in text for text in texts)
    stored = json.loads(out.read_text())
    capsys.readouterr()
    rows = precisions(World(work), tmp_path / "ap.json", work)
    value = stored["judgement"]["measured"]
    assert value == pytest.approx(rows[-1]["mAP"])
    orders = f"{rows[-1]['lowest']:.1f} to {rows[-1]['highest']:.1f}"
    assert f"over all orders of equal boxes: {orders}, expected" in printed


@pytest.mark.parametrize(
    "flags",
    [
        "--partial --only Raccoon",
        "--partial --only Raccoon,PascalVOC --name Mine",
        "--partial --only Raccoon --units pixels --box sides --exif stored",
    ],
)
def test_the_command_that_is_proposed_keeps_what_was_typed(
    flags: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Typed again, it replaces what the first one made, and nothing else."""
    folder = published.write_odinw_13(tmp_path / "odinw")
    assert import_papers(folder, *flags.split()) == 0
    made = sorted(custom_rows())
    capsys.readouterr()
    assert import_papers(folder, *flags.split()) == 2
    text = " ".join("".join(capsys.readouterr()).split())
    proposed = text.partition("To make it again: ")[2].partition(" --replace")[0]
    words = [*proposed.split()[proposed.split().index("data") :], "--replace"]
    assert {*flags.split()} <= {*words}
    assert main(words) == 0
    assert sorted(custom_rows()) == made


def test_the_table_says_that_a_set_is_not_as_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pycocotools")
    assert import_papers(published.write_odinw_13(tmp_path / "odinw"), "--partial") == 0
    world = World(tmp_path)
    answered(world, f"{SET}_Raccoon_multilabel")
    capsys.readouterr()
    precisions(world, tmp_path / "ap.json")
    printed = " ".join(capsys.readouterr().out.split())
    assert f"differs from the published set (M {SET}_Raccoon_multilabel): 5 images, " in printed
