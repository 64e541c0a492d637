"""The file of a reproduction: what it holds, how it is read, and the line for a model's card."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scored_runs import World, speaking
from stored_reproductions import (
    CHECKED,
    CONDITIONS,
    FIGURE,
    judgement,
    stored,
    stored_run,
)

from vlmeval_findit.data import Conditions, FigureSet, PublishedFigure
from vlmeval_findit.models import ModelEntry, RunningProgram
from vlmeval_findit.protocol import Metric, PictureSample, ScoredRow, Settings
from vlmeval_findit.reproduction import (
    REPRODUCTION,
    Attempt,
    ConditionAgreement,
    ConditionSet,
    FigureVerdict,
    Reproduction,
    ReproductionFileError,
    Setup,
    StoredReproduction,
    WhoAnswered,
    read_reproduction,
    reproduction_line,
    stored_reproduction,
    stored_values,
    write_reproduction,
)
from vlmeval_findit.scoring import open_predictions
from vlmeval_findit.statistics import clustered_sums, estimate_metrics


def test_a_file_is_read_back_as_written(tmp_path: Path) -> None:
    path = tmp_path / REPRODUCTION
    whole = stored([stored_run(weights=tuple(range(1, 13)), rows=[*range(11), 40])])
    write_reproduction(path, whole)
    assert read_reproduction(path) == whole
    write_reproduction(path, read_reproduction(path))
    assert json.loads(path.read_text(encoding="utf-8")) == stored_values(whole)


def test_lists_of_plain_values_fill_one_line(tmp_path: Path) -> None:
    path = tmp_path / REPRODUCTION
    write_reproduction(path, stored([stored_run([1.0] * 500)]))
    lines = path.read_text(encoding="utf-8").splitlines()
    assert '   "rows": "0-499",' in lines
    assert len(lines) < 150


# --- damaged files --------------------------------------------------------------------------------


def changed(*keys: str | int, value: Any) -> Callable[[Any], None]:
    def change(values: Any) -> None:
        for key in keys[:-1]:
            values = values[key]
        values[keys[-1]] = value

    return change


def without(*keys: str | int) -> Callable[[Any], None]:
    def change(values: Any) -> None:
        for key in keys[:-1]:
            values = values[key]
        del values[keys[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (without("judgement"), "judgement is missing"),
        (without("figure", "metric"), "figure: metric is missing"),
        (changed("seed", value="0"), "seed: '0' should be a whole number"),
        (changed("judgement", "verdict", value="perfect"), "judgement.verdict: should be 'agrees'"),
        (changed("conditions", 1, "agreement", value="so"), "conditions.1.agreement: should be"),
        (changed("runs", 0, "hits", value=[1.0]), "runs.0.hits: 1 value for 12 rows"),
        (changed("runs", 0, "hits", 3, value=-1), "runs.0.hits.3: -1 should be a number from 0"),
        (changed("runs", 0, "hits", 3, value=2), "runs.0.hits.3: 2 should be a number from 0 to 1"),
        (changed("runs", 0, "rows", value="0-x"), "runs.0.rows: '0-x' should be rows and ranges"),
        (changed("format", value=2), "format: 2 is of a newer version of this package (here 1)"),
        (changed("format", value=0), "format: should be 1"),
    ],
)
def test_damaged_values_are_refused_by_key(
    tmp_path: Path, change: Callable[[Any], None], why: str
) -> None:
    path = tmp_path / "theirs.json"
    values = stored_values(stored())
    change(values)
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(ReproductionFileError) as refusal:
        read_reproduction(path)
    assert f"{path}: no reproduction: {why}" in str(refusal.value)
    assert str(refusal.value).endswith(
        "Name a reproduction.json that python run_findit.py reproduce wrote"
    )


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": NaN}', "\0"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "theirs.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ReproductionFileError, match=r"theirs\.json"):
        read_reproduction(path)


def test_keys_of_later_versions_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "theirs.json"
    path.write_text(json.dumps(stored_values(stored()) | {"weather": "wet"}), encoding="utf-8")
    assert read_reproduction(path) == stored()


# --- from a reproduction --------------------------------------------------------------------------

NAME = "FindIt_Pascal_xyxy_json_bbox_2d"


def measured(world: World) -> Reproduction:
    """Return a reproduction over eight rows of Pascal, of which the second is a miss."""
    path = world.predict("Mine", NAME, speaking(NAME, 1.0), rows=8)
    predictions = open_predictions(path, Settings())
    dataset = predictions.dataset
    hits = {reply.index: float(reply.index != 1) for reply in predictions.replies}
    metric = Metric("acc@0.5", {"hits": 1}, {"asked": 1})
    rows = [
        ScoredRow(row, dataset.queries[row].cluster, {"hits": hit, "asked": 1}, False)
        for row, hit in hits.items()
    ]
    estimate = estimate_metrics([metric], clustered_sums(rows, dataset.variant.images))
    figure = PublishedFigure(
        model="Mine",
        set_name="Pascal",
        set=FigureSet("acc@0.5", ("Pascal",)),
        value=90.0,
        n=12,
        conditions=Conditions(),
        measured_by="a test",
        source="a test",
        sure="read",
    )
    setup = Setup(
        figure, ModelEntry("Mine", checkpoint="/models/mine"), (dataset.variant,), "", CONDITIONS,
        sample=PictureSample(4, seed=5),
    )  # fmt: skip
    attempt = Attempt(setup, (predictions,), estimate, {"Pascal": hits}, 0, 4)
    return Reproduction(attempt, judgement(), CHECKED)


def test_everything_is_stored_of_a_reproduction(world: World) -> None:
    whole = stored_reproduction(measured(world), world.runs)
    assert whole.model == "Mine"
    assert (whole.figure.set, whole.figure.value, whole.figure.n) == ("Pascal", 90.0, 12)
    assert (whole.seed, whole.queries, whole.engine) == (5, 8, "sglang 0.5.15")
    assert whole.conditions == CONDITIONS
    assert whole.checked == CHECKED
    assert {"python", "numpy"} <= whole.made_with.keys()
    (run,) = whole.runs
    assert run.predictions == f"Mine_{NAME}.json"
    assert run.rows == tuple(range(8))
    assert run.hits == (1, 0, 1, 1, 1, 1, 1, 1)
    assert run.images[:3] == ("Pascal/0.jpg", "Pascal/0.jpg", "Pascal/1.jpg")
    assert (run.table.file, run.table.rows) == ("Pascal.tsv", 12)
    assert run.table.facts["source"] == "a test"
    assert run.space == {"kind": "grid1000"}
    assert run.prompt_hash
    assert run.failed == 0


def test_what_a_server_says_of_itself_is_stored(world: World) -> None:
    reproduction = measured(world)
    says = RunningProgram("vllm", "0.11.0", "Qwen/Qwen3-VL-8B-Instruct", "0c35a8f")
    setup = replace(reproduction.attempt.setup, program=says)
    attempt = replace(reproduction.attempt, setup=setup)
    (run,) = stored_reproduction(replace(reproduction, attempt=attempt), world.runs).runs
    assert run.answering.program == "vllm 0.11.0"
    assert run.answering.served == "Qwen/Qwen3-VL-8B-Instruct"
    assert run.answering.revision == "0c35a8f"


def test_nothing_names_a_folder_of_this_machine(world: World) -> None:
    reproduction = measured(world)
    predictions = reproduction.attempt.predictions[0]
    identity = predictions.identity
    assert identity is not None
    answering = replace(
        identity.answering, checkpoint="/models/mine", endpoint="http://10.0.0.7/v1"
    )
    known = replace(predictions, identity=replace(identity, answering=answering))
    attempt = replace(reproduction.attempt, predictions=(known,))
    values = stored_values(stored_reproduction(replace(reproduction, attempt=attempt), world.runs))
    assert values["runs"][0]["answering"]["checkpoint"] == "mine"
    text = json.dumps(values)
    for private in ("/models", "10.0.0.7", str(world.folder)):
        assert private not in text


# --- the badge ------------------------------------------------------------------------------------

AS_PUBLISHED = tuple(
    replace(each, agreement=ConditionAgreement.AS_PUBLISHED) for each in CONDITIONS
)


def told(verdict: FigureVerdict, measured: float, **changes: Any) -> StoredReproduction:
    return stored(judgement=judgement(verdict, measured), **changes)


@pytest.mark.parametrize(
    ("whole", "line"),
    [
        (
            told(FigureVerdict.AGREES, 91.0, conditions=AS_PUBLISHED),
            "reproduces RefCOCO testA 91.0 ± 4.0 (published 92.2, 12 expressions, sglang 0.5.15)",
        ),
        (
            told(FigureVerdict.LOWER, 75.0),
            "lower than published on RefCOCO testA: 75.0 ± 4.0 (published 92.2, 12 expressions, "
            "sglang 0.5.15; not as published: decoding, engine)",
        ),
        (
            told(FigureVerdict.HIGHER, 99.0, conditions=AS_PUBLISHED),
            "higher than published on RefCOCO testA: 99.0 ± 4.0 (published 92.2, 12 expressions, "
            "sglang 0.5.15)",
        ),
        (
            told(FigureVerdict.CANNOT_BE_TOLD, 90.0, conditions=AS_PUBLISHED),
            "cannot tell yet whether it reproduces RefCOCO testA: 90.0 ± 4.0 (published 92.2, "
            "12 expressions, sglang 0.5.15)",
        ),
    ],
)
def test_the_badge_is_honest(whole: StoredReproduction, line: str) -> None:
    assert reproduction_line(whole) == line


def test_the_badge_tells_other_from_unknown_conditions() -> None:
    unknown = tuple(
        replace(each, here="") if each.name == "engine" else each for each in CONDITIONS
    )
    assert reproduction_line(stored(conditions=unknown)).endswith(
        "; not as published: decoding; not known: engine)"
    )


@pytest.mark.parametrize(
    ("who", "other"),
    [
        ({"served": "Qwen/Qwen3-VL-2B-Instruct"}, "Qwen/Qwen3-VL-2B-Instruct"),
        ({"named": ("qwen3-vl-2b", "qwen3-vl-8b")}, "qwen3-vl-2b"),
        ({"served": "/data/Qwen3-VL-8B-Instruct-AWQ", "named": ("mine",)}, ""),
        ({"named": ("mine",)}, ""),
        ({}, ""),
    ],
)
def test_the_badge_names_another_model_that_answered(who: dict[str, Any], other: str) -> None:
    run = stored_run()
    answering = WhoAnswered(checkpoint="mine", **who)
    line = reproduction_line(stored([replace(run, answering=answering)]))
    assert ("answered by" in line) is bool(other)
    assert f"answered by {other}" in line or not other


def test_the_badge_names_failed_calls_and_items() -> None:
    conditions = (ConditionSet("engine", "", "", ConditionAgreement.NOT_TOLD),)
    few = replace(judgement(FigureVerdict.CANNOT_BE_TOLD, 50.0), interval=None)
    whole = replace(
        stored([stored_run([1.0], failed=1)], judgement=few),
        conditions=conditions,
        figure=replace(FIGURE, metric="point in box", set="ScreenSpot"),
    )
    assert reproduction_line(whole) == (
        "cannot tell yet whether it reproduces ScreenSpot: 50.0 (published 92.2, 1 item, "
        "1 failed call as misses)"
    )
