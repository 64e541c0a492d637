"""Two reproductions of one figure: what differs, what is refused, and the paired difference."""

from __future__ import annotations

from dataclasses import replace

import pytest
from stored_reproductions import FIGURE, RIGHT, stored, stored_run

from vlmeval_findit.reproduction import (
    NotComparableError,
    StoredReproduction,
    StoredTable,
    compare_reproductions,
)

THEIRS = "theirs.json"


def test_equal_reproductions_differ_in_nothing() -> None:
    result = compare_reproductions(stored(), stored(), THEIRS)
    assert result.differences == ()
    assert {"checkpoint", "coordinate space", "prompt set", "engine", "seed"} <= {*result.same}
    assert result.shared is not None
    assert (result.shared.rows, result.shared.pictures) == (12, 6)
    assert result.shared.here == result.shared.there == 75.0
    assert result.shared.difference.value == 0


@pytest.mark.parametrize(
    ("there", "difference"),
    [
        (stored(here={"engine": "vllm 0.11"}), ("engine", "sglang 0.5.15", "vllm 0.11")),
        (stored(here={"bounds": ""}), ("bounds", "of the checkpoint", "")),
        (stored(seed=1), ("seed", "0", "1")),
        (
            stored(made_with={"python": "3.12.1"}),
            ("python, when it was judged", "3.11.9", "3.12.1"),
        ),
        (
            stored([stored_run(space={"kind": "smart_resize", "patch": 16})]),
            ("coordinate space", "grid1000", "smart_resize patch=16"),
        ),
        (
            stored(
                [stored_run(answering=replace(stored_run().answering, settings={"top_p": 0.8}))]
            ),
            ("setting temperature", "0", ""),
        ),
        (
            stored(figure=replace(FIGURE, model="Qwen3-VL-8B-Thinking")),
            (
                "figure",
                "Qwen3-VL-8B-Instruct, RefCOCO testA",
                "Qwen3-VL-8B-Thinking, RefCOCO testA",
            ),
        ),
        (stored([stored_run(RIGHT[:8])]), ("rows", "12", "8")),
    ],
)
def test_what_differs_is_listed(
    there: StoredReproduction, difference: tuple[str, str, str]
) -> None:
    result = compare_reproductions(stored(), there, THEIRS)
    listed = [(each.name, each.here, each.there) for each in result.differences]
    assert difference in listed
    assert difference[0] not in result.same


def test_a_mean_names_the_dataset_of_each_difference() -> None:
    runs = [stored_run(), stored_run(dataset="RefCOCOFull_testB")]
    other = [runs[0], replace(runs[1], prompt_hash="00" * 32)]
    (difference,) = compare_reproductions(stored(runs), stored(other), THEIRS).differences
    assert difference.name == "hash of the prompts (RefCOCOFull_testB)"


# --- the paired difference ------------------------------------------------------------------------


def test_shared_rows_alone_are_compared() -> None:
    """Rows 4 to 11 are shared: 6 of 8 here, 8 of 8 there; row 20 and rows 0 to 3 do not count."""
    there = stored([stored_run([1.0] * 8 + [0.0], rows=[*range(4, 12), 20])])
    shared = compare_reproductions(stored(), there, THEIRS).shared
    assert shared is not None
    assert (shared.rows, shared.pictures) == (8, 4)
    assert (shared.here, shared.there) == (75.0, 100.0)
    assert shared.difference.value == -25.0
    assert shared.difference.interval is not None


def test_pairing_is_sharper_than_two_intervals() -> None:
    """Of 200 pictures both miss the same, one of them four more."""
    ours = [float(row % 3 != 0) for row in range(200)]
    others = [0.0 if row in (1, 2, 4, 5) else hit for row, hit in enumerate(ours)]
    images = tuple(f"COCO/{row}.jpg" for row in range(200))
    here = stored([stored_run(ours, images=images)])
    there = stored([stored_run(others, images=images)])
    shared = compare_reproductions(here, there, THEIRS).shared
    assert shared is not None
    assert shared.difference.value == pytest.approx(2.0)
    interval = shared.difference.interval
    assert interval is not None
    apart = 2 * 1.96 * 100 * (2 * (2 / 3) * (1 / 3) / 200) ** 0.5  # Of two independent runs
    assert 0 < interval.high - interval.low < apart / 2


def test_rows_weigh_as_the_metric_does() -> None:
    """An F1 of 1.0 over two boxes and of 0.5 over six is 5 of 8."""
    run = stored_run([1.0, 0.5], weights=(2.0, 6.0))
    f1 = replace(FIGURE, metric="F1@0.5")
    shared = compare_reproductions(
        stored([run], figure=f1), stored([run], figure=f1), THEIRS
    ).shared
    assert shared is not None
    assert shared.here == pytest.approx(62.5)


def test_a_mean_is_over_datasets() -> None:
    runs = [stored_run([1.0] * 8), stored_run([0.0] * 2, dataset="RefCOCOFull_testB")]
    shared = compare_reproductions(stored(runs), stored(runs), THEIRS).shared
    assert shared is not None
    assert (shared.rows, shared.here) == (10, 50.0)


def test_without_a_shared_row_nothing_is_compared() -> None:
    there = stored([stored_run([1.0], rows=[99])])
    assert compare_reproductions(stored(), there, THEIRS).shared is None


# --- refusals -------------------------------------------------------------------------------------

LMMS = StoredTable("RefCOCOFull_testA.tsv", "99" * 32, 1975, {"source": "testA.parquet"})


@pytest.mark.parametrize(
    ("there", "why", "to_type"),
    [
        (
            stored(figure=replace(FIGURE, metric="acc@0.9")),
            "theirs.json: figure.metric is acc@0.9, here it is acc@0.5: ",
            "reproduce Qwen3-VL-8B-Instruct --set 'RefCOCO testA'",
        ),
        (
            stored([stored_run(dataset="RefCOCOFull_val")]),
            "theirs.json: runs are of RefCOCOFull_val, here of RefCOCOFull_testA. ",
            "reproduce Qwen3-VL-8B-Instruct --set 'RefCOCO testA'",
        ),
        (
            stored([stored_run(table=LMMS)]),
            "theirs.json: the table of RefCOCOFull_testA has 1,975 rows, SHA-256 999999999999, "
            "made of testA.parquet; here 5,657 rows, cdcdcdcdcdcd, made of refcoco_testA.jsonl. ",
            "data import PATH --set RefCOCOFull --replace",
        ),
    ],
)
def test_other_things_are_refused(there: StoredReproduction, why: str, to_type: str) -> None:
    with pytest.raises(NotComparableError) as refusal:
        compare_reproductions(stored(), there, THEIRS)
    assert str(refusal.value).startswith(why)
    assert str(refusal.value).endswith(f"python run_findit.py {to_type}")
