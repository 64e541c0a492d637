"""Training sets: what models got wrong in runs, with right answers, as a trainer reads it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..analysis.format_file import BestFormats
from ..analysis.run_errors import error_types_of
from ..benchmarks.findit.variant import FindItVariant
from ..boxes.error_types import BoxError
from ..boxes.spaces import Space
from ..core.files import atomic_write, sha256_of
from ..core.formatting import counted, nearest
from ..core.text_files import read_json
from ..protocol.dataset_variant import PartKind, located
from ..protocol.error_analysis import lost
from ..report.transcripts import Transcript, gather
from ..scoring.scored_run import Run, RunError, read_details
from ..storage.predictions import read_predictions
from ..storage.run_files import run_of
from .export_folder import rewrite_folder
from .targets import NotExportableError, left_out_lines
from .training_answers import right_answers
from .training_card import FORMATS, IMAGE_MARK, ROWS, SetFacts, TrainingSample, make_card

NO_FAULT = (lost(BoxError.FAILED_CALL.value),)
"""Types that are no fault of the model: chosen only by their names."""

RIGHT = "no error"  # Stands for the types of a query that has none


def to_training(
    runs: Sequence[Run],
    out: Path,
    trainer: str = "trl",
    errors: Sequence[str] = (),
    formats: Path | None = None,
    right: bool = False,
    yes_test_data: bool = False,
) -> Iterator[str]:
    """Write the training set ``train.jsonl`` with its card.

    Args:
        runs: those whose answers are no boxes are left out.
        out: the folder.
        trainer: of :data:`.TRAINERS`.
        errors: names of error types; of queries that have any of them (empty: any fault of the
            model).
        formats: a file of best formats, in which answers are written (None: the runs' formats).
        right: whether queries without an error are written, too, so that they are not forgotten.
        yes_test_data: whether test data may be written.

    Raises:
        NotExportableError: it is test data, or there is nothing to write.
        RunError: what a run was asked is not at hand.
    """
    with_boxes = [run for run in runs if isinstance(run.variant, FindItVariant)]
    names = {**_chosen_types(with_boxes, errors), **({RIGHT: RIGHT} if right else {})}
    tested = list(dict.fromkeys(filter(None, map(_test_data, with_boxes))))
    if tested and not yes_test_data:
        raise NotExportableError(
            f"{', '.join(tested)}: test data. A model that was trained on it cannot be measured on "
            "it any more. Run the model on data of yours or on FindIt_Scenes_train_…, or add "
            "--yes-test-data, which the card will say"
        )
    best = BestFormats(formats) if formats is not None else None
    transcripts, missing = gather(with_boxes)
    if missing:
        raise RunError(f"{missing[0].run.path}: {missing[0].reason}")
    types, left_out = Counter[str](), Counter[str]()
    samples: dict[str, TrainingSample] = {}
    written_in: dict[str, None] = {}
    for transcript in transcripts:
        variant: Any = transcript.run.variant
        if best is not None:
            variant = best.variant(transcript.run.model, variant)
        written_in[variant.format] = None
        for sample in _samples(transcript, variant, names, types, left_out):
            # Several runs may have asked the same.
            samples.setdefault(json.dumps([sample.message, sample.answer], default=str), sample)
    if not samples:
        why = "".join(f"; left out: {count} {why}" for why, count in left_out.items())
        raise NotExportableError(f"no query has an error of {', '.join(names.values())}{why}")
    rows = "".join(f"{_json(FORMATS[trainer].row(each))}\n" for each in samples.values())
    asked = with_boxes, trainer, len(samples), sha256_of(rows.encode())
    facts = SetFacts(*asked, list(written_in), types, left_out, tested)
    files = {ROWS: rows, "README.md": make_card(facts), **FORMATS[trainer].files}
    with rewrite_folder(out, "training") as folder:
        for name, text in files.items():
            with atomic_write(folder / name) as f:
                f.write(text)
    yield f"{out}/: {counted(len(samples), 'sample')} for {trainer}; the card is README.md"
    yield f"queries with {', '.join(f'{name}: {count:,}' for name, count in types.most_common())}"
    yield from (f"left out: {count:,} {why}" for why, count in left_out.items())
    yield from left_out_lines([run for run in runs if run not in with_boxes])
    yield "  " + FORMATS[trainer].use.format(out=out)


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False)


def _chosen_types(runs: Sequence[Run], errors: Sequence[str]) -> Mapping[str, str]:
    """Return the names of the chosen error types by their keys."""
    known = {each.name: each.key for run in runs for each in run.benchmark.errors.error_types}
    if not known:
        raise NotExportableError("no run's answers are boxes: name a run with boxes")
    for name in errors:
        if name not in known:
            raise ValueError(f"--errors: no type {name!r}{nearest(name, known)}")
    chosen = errors or [name for name, key in known.items() if key not in NO_FAULT]
    return {known[name]: name for name in chosen}


def _test_data(run: Run) -> str:
    """Name the test data that a run is of; "" if models may be trained on it."""
    variant: Any = run.variant
    if not variant.data.for_training:
        return f"{run.benchmark.name}, {variant.table}"
    provenance = read_json(run_of(run.path).provenance)
    published = (provenance["table"]["meta"] or {}).get("set")
    return f"{published}, {variant.table}" if published else ""


def _samples(
    transcript: Transcript,
    variant: Any,
    names: Mapping[str, str],
    types: Counter[str],
    left_out: Counter[str],
) -> Iterator[TrainingSample]:
    """Yield the samples of a run; count their error types, and the queries that are left out."""
    run, words = transcript.run, transcript.prompts
    if words is None:
        raise RunError(f"{run.path}: {transcript.prompt(0)} A training set asks what the run asked")
    asked: dict[int, list[str]] = {}
    for row, keys in zip(read_details(run), error_types_of(run), strict=True):
        chosen = [names[key] for key in keys if key in names]
        if not row.failed and not keys:
            chosen += [names[RIGHT]] if RIGHT in names else []
        if chosen:
            asked[row.index] = chosen
    dataset = replace(transcript.dataset, variant=variant)
    answers = right_answers(run, dataset, list(asked), read_predictions(run.path))
    folder = transcript.images.absolute()
    for index, chosen in asked.items():
        query: Any = dataset.queries[index]
        message = located(words.message(query, variant), folder)
        texts = [part.value for part in message if part.kind is not PartKind.IMAGE]
        if index not in answers:
            left_out["whose right answer cannot be written in this format"] += 1
        elif any(IMAGE_MARK in text for text in texts):
            left_out[f"whose prompt has the word {IMAGE_MARK}"] += 1
        else:
            types.update(chosen)
            right = answers[index]
            yield TrainingSample(message, right.text, _columns(query, variant, right.space))


def _columns(query: Any, variant: Any, space: Space) -> Mapping[str, Any]:
    """Return the columns of a reward; objects as JSON, because keys may differ between rows."""
    truth = query.truth
    objects = {
        "boxes": truth.boxes,
        "labels": truth.labels,
        "frames": truth.frames if variant.frames > 1 else (),
        "ignored": [each._replace(mask=None)._asdict() for each in truth.ignored],
    }
    settings = space.as_dict()
    return {
        "truth": _json({key: value for key, value in objects.items() if value or key == "boxes"}),
        "size": [query.width, query.height],
        "format": variant.format.partition("_vp-")[0],
        "space": space.kind if len(settings) == 1 else _json(settings),
        "frames": variant.frames,
        "multilabel": variant.multilabel,
    }
