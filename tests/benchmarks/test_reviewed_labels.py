"""Labels for reviewers, and queries that have another answer, of every benchmark with boxes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refl4_stand_in import write_parquet
from scored_runs import World

from vlmeval_findit.benchmarks import benchmark_of
from vlmeval_findit.benchmarks.refl4 import RefL4Split, prepare
from vlmeval_findit.boxes import REPRESENTATIONS, Ignored, Truth
from vlmeval_findit.data import load_dataset
from vlmeval_findit.marks import packed_mask
from vlmeval_findit.protocol import Answer, AnyDataset, Reply, Settings

REFL4 = "FindIt_RefL4Full_val_xyxy_json"
OTHER = (20.0, 20.0, 100.0, 90.0)


@pytest.fixture
def refl4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AnyDataset:
    prepare(write_parquet(tmp_path / "parquet"), RefL4Split.VAL, tmp_path / "tables", force=True)
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path / "tables"))
    return load_dataset(REFL4)


def with_answer(dataset: Any, index: int, answer: Answer) -> Any:
    """Return the dataset with an accepted answer as the label of a row."""
    benchmark = benchmark_of(dataset.variant)
    query = benchmark.with_label(dataset, dataset.queries[index], answer)
    return replace(dataset, queries={**dataset.queries, index: query})


def hits(dataset: AnyDataset, index: int) -> float:
    """Count hits of the correct reply in whole pixels."""
    benchmark = benchmark_of(dataset.variant)
    text = benchmark.example(dataset.queries[index], dataset.variant)
    settings = Settings(space={"kind": "pixels"})
    replies = [Reply(index, text)]
    (row,) = benchmark.score_batch("Any", dataset, replies, settings, None).rows
    return next(row.sums[name] for name in ("tp", "pointed", "hits_0.9") if name in row.sums)


@pytest.mark.parametrize("representation", REPRESENTATIONS.builtin)
@pytest.mark.parametrize("table", ["Pascal", "Pascal_multilabel"])
def test_an_accepted_answer_is_scored_in_every_representation(
    table: str, representation: str, world: World
) -> None:
    before = load_dataset(f"FindIt_{table}_{representation}_json")
    labels = ("dog",) if "multilabel" in table else ()
    after = with_answer(before, 3, Answer((OTHER,), labels))
    assert after.queries[3].truth.boxes == (OTHER,)
    assert hits(after, 3) == 1
    assert hits(after, 2) == hits(before, 2) == 2


def test_ref_l4_scores_the_box_of_its_annotation(refl4: AnyDataset) -> None:
    index = next(iter(refl4.queries))
    after: Any = with_answer(refl4, index, Answer((OTHER,)))
    assert after.queries[index].annotation.bbox == (20.0, 20.0, 80.0, 70.0)
    assert hits(after, index) == 1
    wrong = replace(after, queries=refl4.queries)
    text = benchmark_of(REFL4).example(after.queries[index], refl4.variant)
    replies = [Reply(index, text)]
    settings = Settings(space={"kind": "pixels"})
    (row,) = benchmark_of(REFL4).score_batch("Any", wrong, replies, settings, None).rows
    assert row.sums["hits_0.9"] == 0


def test_the_label_itself_changes_nothing(refl4: AnyDataset, world: World) -> None:
    for dataset in (refl4, load_dataset("FindIt_Demo_multilabel_xyxy_json")):
        benchmark = benchmark_of(dataset.variant)
        for query in dataset.queries.values():
            label = benchmark.label(dataset, query)
            assert label is not None
            assert benchmark.with_label(dataset, query, label) is query


def test_outlines_and_objects_that_do_not_count_stay(world: World) -> None:
    mask = packed_mask(np.ones((100, 200), dtype=bool))
    ignored = (Ignored((0.0, 0.0, 5.0, 5.0)),)
    box = (10.0, 10.0, 50.0, 60.0)
    dataset: Any = load_dataset("FindIt_Pascal_point_json")
    truth = Truth((box,), (0,), masks=(mask,), ignored=ignored)
    dataset = replace(dataset, queries={0: replace(dataset.queries[0], truth=truth)})
    after = with_answer(dataset, 0, Answer((OTHER, box))).queries[0].truth
    assert (after.masks, after.ignored) == ((None, mask), ignored)


@pytest.mark.parametrize(
    ("name", "answer", "says"),
    [
        ("FindIt_Pascal_xyxy_json", Answer((OTHER,), ("dog",)), "names classes, which the query"),
        ("FindIt_Pascal_multilabel_xyxy_json", Answer((OTHER,)), "names no classes, which the"),
        ("FindIt_Demo_video_f8_xyxy_json", Answer((OTHER,)), "labels of videos cannot be reviewed"),
        ("VPBench_Scenes_mini", Answer((OTHER,)), "labels of VP-Bench cannot be reviewed"),
        (REFL4, Answer((OTHER, OTHER)), "has 2 boxes, Ref-L4 has one a row"),
        (REFL4, Answer(()), "has 0 boxes, Ref-L4 has one a row"),
    ],
)
def test_answers_that_no_label_can_be(
    name: str, answer: Answer, says: str, refl4: AnyDataset, world: World
) -> None:
    dataset = refl4 if name == REFL4 else load_dataset(name)
    index = next(iter(dataset.queries))
    with pytest.raises(ValueError, match=f"^row {index}: .*{says}"):
        with_answer(dataset, index, answer)


def test_rows_have_the_same_hash_in_every_format_and_mark() -> None:
    hashes = []
    for ending in ("xyxy_json", "point_text", "cxcywh_json_vp-oval"):
        dataset = load_dataset(f"FindIt_Demo_insdet_{ending}")
        hashes.append(benchmark_of(dataset.variant).row_hashes(dataset))
    assert len(hashes[0]) == len(dataset.queries)
    assert hashes == [hashes[0]] * 3


def test_videos_have_no_hashes_but_single_frames_have(tmp_path: Path) -> None:
    for frames, has_hashes in ((8, False), (1, True)):
        dataset = load_dataset(f"FindIt_Demo_video_f{frames}_xyxy_json")
        assert bool(benchmark_of(dataset.variant).row_hashes(dataset)) is has_hashes


def test_hashes_stay_as_they_are() -> None:
    """They stand in people's files: who changes them makes all reviews useless."""
    dataset = load_dataset("FindIt_Demo_multilabel_xyxy_json")
    hashes = benchmark_of(dataset.variant).row_hashes(dataset)
    assert hashes[2] == "sha256:d076acbb0ee9902bb99605f5c57fd6f8ae516e2b4841beb52f18bcc7208f9532"
