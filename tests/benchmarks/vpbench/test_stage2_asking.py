"""Stage 2 asked three ways: the words, the images, and what depends on the model.

After a change of words that is meant, write ``golden/stage2_prompts.txt`` again with
``FINDIT_WRITE_GOLDEN=1 python -m pytest tests/benchmarks/vpbench/test_stage2_asking.py``.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import GOLDEN as GOLDEN_FOLDER
from PIL import Image
from scored_runs import World, saying
from stage2_stand_in import SOURCES, Layout, rows, write_part

from vlmeval_findit import benchmarks
from vlmeval_findit.analysis import compare_runs
from vlmeval_findit.benchmarks.vpbench import (
    SOURCE_NAMES,
    VARIANTS,
    BestMarkError,
    MarkedRegion,
    RegionRole,
    for_model,
    load_stage2,
    mark_choices,
    parts_in,
    prepare_stage2,
    stage2_rows,
)
from vlmeval_findit.benchmarks.vpbench import stage2_asking as asking
from vlmeval_findit.engine import Call, Cell, CellBuilder
from vlmeval_findit.leaderboard import group_comparable
from vlmeval_findit.protocol import (
    Answering,
    Message,
    PartKind,
    Reply,
    Settings,
    identity_conflicts,
    sum_rows,
)
from vlmeval_findit.scoring import Run, run_identity
from vlmeval_findit.storage import image_folder

GOLDEN = GOLDEN_FOLDER / "stage2_prompts.txt"
BVP, RBVP, TEXT = (f"VPBench_Stage2_{way}" for way in ("bvp", "rbvp", "text"))

BEST = {
    "models": {"Seer": {"best": "tag-blue"}, "Other": {"best": "mask-red"}},
    "good": {"shapes": ["oval", "tag"], "colours": ["red", "blue"]},
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the table of all sources."""
    lmu = tmp_path_factory.mktemp("lmu")
    write_part(lmu / "parts", 0, rows(Layout.JSON), Layout.JSON)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(lmu))
        prepare_stage2(parts_in(lmu / "parts"), lmu)
    return lmu


@pytest.fixture(autouse=True)
def _data(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best marks of two models are known."""
    monkeypatch.setenv("LMUData", str(built))
    monkeypatch.delenv(mark_choices.BY_HAND, raising=False)
    mark_choices.write_marks(BEST)


def message(dataset: Any, index: int) -> Message:
    words = benchmarks.benchmark_of(dataset.variant.name).prompts()[0]
    return words.message(dataset.queries[index], dataset.variant)


def written(parts: Message) -> str:
    """A message as readable text; marked images are not told apart."""
    return "\n".join(
        f"<{Path(part.value).parent}>" if part.kind is PartKind.IMAGE else part.value
        for part in parts
    )


def test_every_wording_equals_the_snapshot() -> None:
    """One row of each source, in every way of asking."""
    result = []
    for name in VARIANTS:
        dataset = for_model(load_stage2(name), "Seer", None)
        for at, source in enumerate(SOURCES):
            result.append(f"# {name}, {source}\n\n{written(message(dataset, 1 + 3 * at))}\n")
    text = "\n".join(result)
    if os.environ.get("FINDIT_WRITE_GOLDEN") == "1":
        GOLDEN.write_text(text, encoding="utf-8")
    assert text.split("\n# ") == GOLDEN.read_text(encoding="utf-8").split("\n# ")


@pytest.mark.parametrize(
    ("question", "phrases", "filled"),
    [
        ("the < Colour ><VP>?", ["red box"], "the red box?"),
        ("the <vp> and a <color> one", ["red box"], "the red box and a red box one"),
        ("<color> <vp>, <color> <vp>", ["a", "b"], "a, b"),
        ("<vp> <vp> <vp> <vp>", ["a", "b"], "a b a b"),
        ("<vp> <vp> <vp>", ["a", "b"], "a and b a and b a and b"),
        (r"\1 <vp>", [r"\g<0>"], r"\1 \g<0>"),
    ],
)
def test_spans_are_filled(question: str, phrases: list[str], filled: str) -> None:
    assert asking.fill_spans(question, phrases) == filled


def test_places_are_thirds_of_the_image() -> None:
    for box, field, across, down in [
        ((-30, -60, 40, 60), "upper left", "0% to 10%", "0% to 0%"),
        ((30, 80, 40, 60), "centre", "30% to 70%", "40% to 70%"),
        ((90, 190, 40, 60), "lower right", "90% to 100%", "95% to 100%"),
    ]:
        place = asking.region_in_words(MarkedRegion(0, RegionRole.DEFAULT, box), (100, 200))
        expected = f"{field} (from {across} of the width and from {down} of the height)"
        assert place == f"region at the {expected}"


def test_without_a_span_a_place_stands_above_the_question() -> None:
    row = replace(stage2_rows(load_stage2(TEXT).table)[0], label="What is it?")
    asked = asking.query_in_words(row, False)
    assert asked.hint.startswith("The question is about the region at the centre")
    assert asked.question == "What is it?"


# --- marks of a model -----------------------------------------------------------------------------


def test_only_the_best_mark_depends_on_the_model() -> None:
    dataset = load_stage2(BVP)
    seer, other = (for_model(dataset, model, None) for model in ("Seer", "Other"))
    source = "VPBench_best_marks.json"
    assert seer.resolved_options == {"mark": "tag-blue", "source of the marks": source}
    assert other.resolved_options["mark"] == "mask-red"
    assert other.resolved_options["drawn from boxes"] == "21 of 24"
    assert message(seer, 1) != message(other, 1)
    for each in (seer, other):
        assert each.shared_dataset is dataset
        assert list(each.queries) == list(dataset.queries)
        for index, query in each.queries.items():
            for field in ("label", "answer", "options", "source"):
                assert getattr(query, field) == getattr(dataset.queries[index], field)
    for name in (RBVP, TEXT):
        dataset = load_stage2(name)
        assert for_model(dataset, "Seer", None) is dataset


def test_a_model_without_a_best_mark_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset = load_stage2(BVP)
    with pytest.raises(BestMarkError, match="has none of it: did you mean Seer"):
        for_model(dataset, "Ser", None)
    mark_choices.marks_path().unlink()
    says = r"there is no .*(\n.*)*--data VPBench_Stage1 --model See"
    with pytest.raises(BestMarkError, match=says):
        for_model(dataset, "See", None)
    monkeypatch.setenv(mark_choices.BY_HAND, "oval-red")
    result = for_model(dataset, "Ser", None)
    assert result.resolved_options == {"mark": "oval-red", "source of the marks": "FINDIT_VP_MARK"}
    monkeypatch.setenv(mark_choices.BY_HAND, "ovel-red")
    with pytest.raises(BestMarkError, match=r"'ovel-red', .*FINDIT_VP_MARK.*did you mean oval-red"):
        for_model(dataset, "Ser", None)


def test_a_run_is_shown_as_it_was_asked() -> None:
    asked = for_model(load_stage2(BVP), "Seer", None)
    good = load_stage2(RBVP)
    used = {(query.shapes[0], query.properties[0]) for query in good.queries.values()}
    assert used == {(shape, colour) for shape in ("oval", "tag") for colour in ("red", "blue")}
    mark_choices.marks_path().unlink()
    assert for_model(load_stage2(BVP), "Seer", asked.resolved_options) == asked
    now = load_stage2(RBVP)
    assert now.resolved_options["source of the marks"] == "published"
    assert {query.shapes[0] for query in now.queries.values()} == {"box", "oval", "tag"}
    again = for_model(now, "Seer", good.resolved_options)
    assert (again.queries, again.resolved_options) == (good.queries, good.resolved_options)
    for dataset in (load_stage2(BVP), now):
        with pytest.raises(BestMarkError, match="the run did not record"):
            for_model(dataset, "Seer", {})


def test_marked_images_differ_where_the_mark_is() -> None:
    def pixels(name: str) -> np.ndarray[Any, Any]:
        return np.asarray(Image.open(image_folder("VPBench").path / name))

    dataset = for_model(load_stage2(BVP), "Seer", None)
    for row in stage2_rows(dataset.table):
        pairs = zip(dataset.queries[row.index].images, row.images, strict=True)
        changed = [(pixels(a) != pixels(b)).any(axis=2) for a, b in pairs]
        for mark in row.marks:
            x, y, w, h = map(int, mark.box)
            assert changed[mark.image][y + h // 2 - 3 : y + h // 2 + 3, x + w // 2].any()
        assert all(not image[:10].any() for image in changed)


# --- scores, identities, comparisons --------------------------------------------------------------


def test_rows_without_an_answer_are_asked_and_in_no_figure() -> None:
    benchmark = benchmarks.benchmark_of(BVP)
    dataset = for_model(load_stage2(BVP), "Seer", None)
    replies = [Reply(index, "A" if index % 2 else "what?") for index in dataset.queries]
    rows_ = benchmark.score_batch("Seer", dataset, replies, Settings(), None).rows
    silent = [row for row in rows_ if not dataset.queries[row.index].answer]
    assert len(silent) == 6
    assert all(row.sums == {"unscored": 1} and row.reason is None for row in silent)
    sums = sum_rows(rows_)
    assert (sums["unscored"], sums["asked"]) == (6, 12)
    values = {metric.name: metric.value(sums) for metric in benchmark.metrics}
    right = sum(query.answer == "A" and index % 2 for index, query in dataset.queries.items())
    assert values["Accuracy"] == pytest.approx(100 * right / 12)
    by_source = [values[f"{source} (as published)"] for source in SOURCE_NAMES.values()]
    assert values["Mean over sources (as published)"] == pytest.approx(np.mean(by_source))
    assert {row.slices["source"] for row in rows_} == set(SOURCE_NAMES.values())
    assert {row.slices["shape"] for row in rows_} == {"tag"}


def test_cells_of_two_models_share_equal_messages_only() -> None:
    tables = CellBuilder(skip_missing=False)

    def cell(model: str, name: str) -> Cell:
        return tables.cell(model, benchmarks.parse(name), None, {})

    for name in (TEXT, RBVP):
        assert cell("Seer", name).prompts is cell("Other", name).prompts
    seer, other = (cell(model, BVP) for model in ("Seer", "Other"))
    assert seer.prompts is cell("Seer", BVP).prompts
    shown = [Call("", each, each.rows.index(1)) for each in (seer, other)]
    assert shown[0].image_sha256 != shown[1].image_sha256
    assert shown[0].prompt_sha256 != shown[1].prompt_sha256
    runs = [
        run_identity(each.dataset, each.model, Answering(), each.rows, None)
        for each in (seer, other)
    ]
    assert runs[0].prompt_hash == runs[1].prompt_hash
    assert [run.resolved_options["mark"] for run in runs] == ["tag-blue", "mask-red"]
    same = replace(runs[1], model="Seer")
    assert [each.what for each in identity_conflicts(runs[0], same)] == ["mark of the questions"]
    with pytest.raises(BestMarkError):
        cell("Nobody", BVP)


def test_different_marks_are_compared_across_models_only(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)

    def run(model: str, mark: str, folder: str = "") -> Run:
        chosen = {"mark": mark, "source of the marks": "a test"}
        record = lambda identity: replace(identity, resolved_options=chosen)  # noqa: E731
        return world.run(model, BVP, saying("A"), change=record, folder=folder)

    older = run("Seer", "oval-blue")
    newer = run("Seer", "box-black", "again")
    other = run("Other", "tag-red")
    assert {row.slices["shape"] for row in newer.rows} == {"box"}
    (column,), apart = group_comparable([older, newer, other])
    assert column.name == "Stage2_bvp"
    assert {run.model for run in column.runs} == {"Other"}
    assert set(compare_runs(newer, other)) >= {"Accuracy", "Read"}
    reasons = {left.run.path: left.reason for left in apart}
    assert "mark of the questions (here oval-blue, there box-black)" in reasons[older.path]
    assert "mark of the questions (here box-black, there oval-blue)" in reasons[newer.path]
    (column,), apart = group_comparable([newer, other])
    assert {run.model for run in column.runs} == {"Seer", "Other"}
    assert apart == ()
