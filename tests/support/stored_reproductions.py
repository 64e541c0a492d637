"""Reproductions made by hand: 6 pictures with 2 rows each, of which every fourth row is a miss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from scored_runs import World, speaking

from vlmeval_findit.reproduction import (
    REPRODUCTION,
    Cause,
    CauseLook,
    ConditionAgreement,
    ConditionSet,
    FigureJudgement,
    FigureVerdict,
    StoredFigure,
    StoredReproduction,
    StoredRun,
    StoredTable,
    WhoAnswered,
    write_reproduction,
)
from vlmeval_findit.scoring import load_run
from vlmeval_findit.statistics import Interval

FIGURE = StoredFigure(
    model="Qwen3-VL-8B-Instruct",
    set="RefCOCO testA",
    metric="acc@0.5",
    value=92.2,
    measured_by="the authors",
    source="arXiv:2511.21631",
    sure="read",
    n=5657,
)

CONDITIONS = (
    ConditionSet("prompt", "qwen3-vl-1", "qwen3-vl-1", ConditionAgreement.AS_PUBLISHED),
    ConditionSet("space", "grid1000", "grid1000", ConditionAgreement.AS_PUBLISHED),
    ConditionSet("bounds", "", "of the checkpoint", ConditionAgreement.NOT_TOLD),
    ConditionSet("decoding", "temperature 0.7", "temperature 0", ConditionAgreement.YOURS),
    ConditionSet(
        "engine",
        "vllm",
        "sglang 0.5.15",
        ConditionAgreement.CANNOT_BE_SET,
        "the server is yours: findit serve --program vllm",
    ),
)

RIGHT = tuple(0.0 if row % 4 == 3 else 1.0 for row in range(12))


def stored_run(
    hits: Sequence[float] = RIGHT,
    rows: Sequence[int] | None = None,
    dataset: str = "RefCOCOFull_testA",
    **changes: Any,
) -> StoredRun:
    """Return a run over rows (by default 0, 1, 2 …), two to a picture."""
    asked = tuple(range(len(hits))) if rows is None else tuple(rows)
    run = StoredRun(
        dataset=dataset,
        variant=f"FindIt_{dataset}_xyxy_json_bbox_2d",
        predictions=f"Qwen3-VL/Qwen3-VL_FindIt_{dataset}_xyxy_json_bbox_2d.json",
        predictions_sha256="ab" * 32,
        table=StoredTable(f"{dataset}.tsv", "cd" * 32, 5657, {"source": "refcoco_testA.jsonl"}),
        prompts="qwen3-vl-1",
        prompt_hash="ef" * 32,
        space={"kind": "grid1000"},
        answering=WhoAnswered(
            kind="ServerModel",
            row="Qwen3-VL",
            checkpoint="Qwen/Qwen3-VL-8B-Instruct",
            revision="1234567",
            settings={"temperature": 0},
            named=("Qwen3-VL-8B-Instruct",),
        ),
        versions={"vlmeval-findit": "1.1"},
        failed=0,
        rows=asked,
        images=tuple(f"COCO/{row // 2}.jpg" for row in asked),
        hits=tuple(hits),
    )
    return replace(run, **changes)


def judgement(
    verdict: FigureVerdict = FigureVerdict.LOWER, measured: float = 75.0
) -> FigureJudgement:
    return FigureJudgement(
        verdict=verdict,
        published=92.2,
        measured=measured,
        interval=Interval(measured - 4.0, measured + 3.5),
        tolerance=1.3,
        difference=measured - 92.2,
        difference_interval=Interval(measured - 97.5, measured - 87.4),
        pictures=6,
        enough=800 if verdict is FigureVerdict.CANNOT_BE_TOLD else None,
    )


CHECKED = (
    CauseLook("coordinates", "240 boxes fit grid1000, which is declared"),
    CauseLook(
        "engine",
        "sglang 0.5.15 loses positions",
        Cause(
            "engine",
            "sglang 0.5.15 loses the rows and columns of image tokens",
            None,
            "pip install 'sglang>=0.5.16'",
            sure=False,
        ),
    ),
    CauseLook(
        "space",
        "the same replies in pixels: 91.9",
        Cause("space", "replies are in pixels", 91.9, "--space pixels"),
    ),
)


def stored(
    runs: Sequence[StoredRun] | None = None,
    here: Mapping[str, str] | None = None,
    **changes: Any,
) -> StoredReproduction:
    """Return a reproduction; ``here`` has other words of conditions, by their name."""
    others = here or {}
    return replace(
        StoredReproduction(
            format=1,
            model="Qwen3-VL",
            figure=FIGURE,
            conditions=tuple(
                replace(each, here=others.get(each.name, each.here)) for each in CONDITIONS
            ),
            seed=0,
            judgement=judgement(),
            checked=CHECKED,
            runs=tuple(runs) if runs is not None else (stored_run(),),
            made_with={"python": "3.11.9"},
            made_at="2026-11-27T10:00:00+00:00",
        ),
        **changes,
    )


NAME = "FindIt_Pascal_xyxy_json_bbox_2d"


def reproduced(world: World, **changes: Any) -> StoredReproduction:
    """Run a model, and write a reproduction whose run it is into the folder of runs."""
    path = world.predict("Mine", NAME, speaking(NAME, 0.8), folder="Mine")
    run = load_run(path.with_name(f"{path.stem}_provenance.json"))
    of_run = stored_run(
        dataset="Pascal",
        predictions=f"Mine/{path.name}",
        predictions_sha256=run.provenance.predictions_sha256,
    )
    whole = stored([of_run], **changes)
    write_reproduction(world.runs / REPRODUCTION, whole)
    return whole
