"""Training sets: what models got wrong in runs, with right answers, as a trainer reads it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..analysis import BestFormats, error_types_of
from ..benchmarks.findit import FindItVariant
from ..boxes import BoxError, Space
from ..core import atomic_write, counted, printable, sha256_of, suggestion
from ..protocol import Message, PartKind, located, lost_key
from ..report import Transcript, gather_transcripts
from ..scoring import Run, RunError, read_details, read_provenance
from ..storage import read_predictions, run_of
from .export_folder import rewrite_folder
from .image_copies import ImageCopies
from .targets import NotExportableError, left_out_lines
from .trainer_formats import FORMATS, IMAGE_MARK, ROWS, SetFacts, TrainingSample, make_card
from .training_answers import RightAnswer, right_answers
from .training_images import TrainingImages

# Types that are no fault of the model: chosen only by their names
NO_FAULT = (lost_key(BoxError.FAILED_CALL.value),)

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
    chosen = _chosen_types(with_boxes, errors)
    if right:
        chosen[RIGHT] = RIGHT
    tested = _test_data(with_boxes)
    if tested and not yes_test_data:
        raise NotExportableError(
            f"{', '.join(tested)}: test data. A model that is trained on it can no longer be "
            "measured on it. Run the model on data of yours or on FindIt_Scenes_train_…, or add "
            "--yes-test-data; the card will say so"
        )
    images = TrainingImages(ImageCopies(out))
    collected = _collect(with_boxes, chosen, formats, images)
    samples = list(collected.samples.values())
    trainer_format = FORMATS[trainer]
    rows = "".join(f"{_json(trainer_format.row(sample))}\n" for sample in samples)
    facts = SetFacts(
        runs=with_boxes,
        trainer=trainer,
        samples=len(samples),
        rows_sha256=sha256_of(rows.encode()),
        formats=list(collected.formats),
        errors=collected.types,
        left_out=collected.left_out,
        test_data=tested,
        notes=[*images.notes(trainer), *collected.notes],
    )
    _write(out, {ROWS: rows, "README.md": make_card(facts), **trainer_format.files}, images.copies)
    counts = ", ".join(f"{name}: {count:,}" for name, count in collected.types.most_common())
    yield f"{out}/: {counted(len(samples), 'sample')} for {trainer}; the card is README.md"
    yield f"queries with {counts}"
    for why, count in collected.left_out.items():
        yield f"left out: {count:,} {why}"
    yield from left_out_lines([run for run in runs if run not in with_boxes])
    yield from facts.notes
    yield "  " + trainer_format.use.format(out=out)


def _collect(
    runs: Sequence[Run], chosen: Mapping[str, str], formats: Path | None, images: TrainingImages
) -> _Collected:
    """Collect the samples of runs, at least one.

    Args:
        runs: runs with boxes.
        chosen: names of error types by key.
        formats: a file of best formats (None: the runs' formats).
        images: gets those of the samples.
    """
    best = BestFormats(formats) if formats is not None else None
    transcripts, missing = gather_transcripts(runs)
    if missing:
        raise RunError(f"{missing[0].run.path}: {missing[0].reason}")
    collected = _Collected(chosen, images)
    for transcript in transcripts:
        variant = transcript.run.variant
        if best is not None:
            variant = best.variant(transcript.run.model, variant)
        collected.add(transcript, variant)
    if not collected.samples:
        why = "".join(f"; left out: {count} {why}" for why, count in collected.left_out.items())
        raise NotExportableError(f"no query has an error of {', '.join(chosen.values())}{why}")
    return collected


def _write(out: Path, files: Mapping[str, str], copies: ImageCopies) -> None:
    with rewrite_folder(out, "training") as folder:
        copies.write(folder)
        for name, text in files.items():
            with atomic_write(folder / name) as f:
                f.write(text)


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False)


def _chosen_types(runs: Sequence[Run], errors: Sequence[str]) -> dict[str, str]:
    """Return the names of the chosen error types by their keys."""
    known = {each.name: each.key for run in runs for each in run.benchmark.errors.error_types}
    if not known:
        raise NotExportableError("no run has boxes: name a run with boxes")
    for name in errors:
        if name not in known:
            raise ValueError(f"--errors: unknown type {name!r}{suggestion(name, known)}")
    chosen = errors or [name for name, key in known.items() if key not in NO_FAULT]
    return {known[name]: name for name in chosen}


def _test_data(runs: Sequence[Run]) -> list[str]:
    """Name the test data that runs are of, each once."""
    names = dict.fromkeys(_test_data_of(run) for run in runs)
    return [name for name in names if name]


def _test_data_of(run: Run) -> str:
    """Name the test data that a run is of; "" if models may be trained on it."""
    variant: Any = run.variant
    if not variant.data.for_training:
        return f"{run.benchmark.name}, {variant.table}"
    provenance = read_provenance(run_of(run.path).provenance)
    published = (provenance.table.meta or {}).get("set")
    return f"{published}, {variant.table}" if published else ""


class _Collected:
    """The samples of several runs, and what the card says about them.

    Args:
        chosen: names of the error types whose queries are collected, by key.
        images: gets those of the samples.
    """

    def __init__(self, chosen: Mapping[str, str], images: TrainingImages) -> None:
        self._images = images
        self.samples: dict[str, TrainingSample] = {}  # By content: runs may have asked the same
        self.formats: dict[str, None] = {}
        # Names of the error types of each sample, by its content: those that any run has
        self._types_of: dict[str, set[str]] = {}
        self.left_out = Counter[str]()  # Queries by the reason
        self.notes: dict[str, None] = {}  # Sentences on numbers
        self._chosen = chosen

    @property
    def types(self) -> Counter[str]:
        """Samples by the names of their error types; right for one run, and wrong for another,
        counts as wrong."""
        counts = Counter[str]()
        for types in self._types_of.values():
            wrong = types - {self._chosen.get(RIGHT, "")}
            counts.update(sorted(wrong or types))
        return counts

    def add(self, transcript: Transcript, variant: Any) -> None:
        """Add the samples of a run, with answers in the format of a variant."""
        run = transcript.run
        prompts = transcript.prompts
        if prompts is None:
            raise RunError(
                f"{run.path}: {transcript.prompt(0)} A training set asks what the run asked"
            )
        self.formats[variant.format] = None
        types_by_row = self._types_by_row(run)
        dataset = replace(transcript.dataset, variant=variant)
        right = right_answers(run, dataset, list(types_by_row), read_predictions(run.path))
        if right.coarse_step is not None:
            model = printable(run.model)
            note = f"Numbers are multiples of {right.coarse_step:g}, as those of {model}."
            self.notes[note] = None
        answers = right.by_index
        folder = transcript.images.absolute()
        for index, types in types_by_row.items():
            query: Any = dataset.queries[index]
            message = located(prompts.message(query, variant), folder)
            texts = [part.value for part in message if part.kind is not PartKind.IMAGE]
            if index not in answers:
                self.left_out["whose right answer cannot be written in this format"] += 1
            elif any(IMAGE_MARK in text for text in texts):
                self.left_out[f"whose prompt has the word {IMAGE_MARK}"] += 1
            else:
                self._add_sample(message, answers[index], query, variant, types)

    def _add_sample(
        self, message: Message, answer: RightAnswer, query: Any, variant: Any, types: Sequence[str]
    ) -> None:
        """Add a sample, unless its image cannot be read."""
        try:
            shown = self._shown(message, answer.space)
        except OSError:
            self.left_out["whose image is not there, or cannot be read"] += 1
            return
        columns = _columns(query, variant, answer.space)
        content = json.dumps([message, answer.text], default=str)
        self.samples.setdefault(content, TrainingSample(shown, answer.text, columns))
        self._types_of.setdefault(content, set()).update(types)

    def _shown(self, message: Message, space: Space) -> Message:
        """Return a message with the images that a trainer is given."""
        parts = []
        for part in message:
            if part.kind is PartKind.IMAGE:
                part = part._replace(value=self._images.name(Path(part.value), space))
            parts.append(part)
        return tuple(parts)

    def _types_by_row(self, run: Run) -> dict[int, list[str]]:
        """Return the names of the chosen types of each row that has any."""
        types_by_row = {}
        for row, keys in zip(read_details(run), error_types_of(run), strict=True):
            types = [self._chosen[key] for key in keys if key in self._chosen]
            if not keys and not row.failed and RIGHT in self._chosen:
                types.append(RIGHT)
            if types:
                types_by_row[row.index] = types
        return types_by_row


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
