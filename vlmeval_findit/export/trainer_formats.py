"""Rows of a training set in the formats of trainers, their description files, and the card."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

from .. import __version__
from ..core import counted, printable
from ..leaderboard import escape_markdown
from ..protocol import Message, PartKind, split_system
from ..scoring import Run

ROWS = "train.jsonl"
IMAGE_MARK = "<image>"


class TrainingSample(NamedTuple):
    """A query with its right answer."""

    message: Message  # Its images are files
    answer: str
    columns: Mapping[str, Any]  # For rewards: :func:`..api.trainers.reward_function`


# --- trainers -------------------------------------------------------------------------------------


def _trl(sample: TrainingSample) -> dict[str, Any]:
    def content(kind: PartKind, text: str) -> dict[str, str]:
        return {"type": "image"} if kind is PartKind.IMAGE else {"type": "text", "text": text}

    *asked, answer = _turns(sample, lambda parts: [content(p.kind, p.value) for p in parts])
    return {"prompt": asked, "completion": [answer], **_images(sample), **sample.columns}


def _messages(sample: TrainingSample) -> dict[str, Any]:
    def text(parts: Message) -> str:
        return "".join(IMAGE_MARK if p.kind is PartKind.IMAGE else p.value for p in parts)

    return {"messages": _turns(sample, text), **_images(sample)}


def _turns(sample: TrainingSample, content: Callable[[Message], Any]) -> list[dict[str, Any]]:
    system, message = split_system(sample.message)
    turns = [("user", content(message)), ("assistant", sample.answer)]
    if system is not None:
        turns.insert(0, ("system", content(sample.message[:1])))
    return [{"role": role, "content": text} for role, text in turns]


def _images(sample: TrainingSample) -> dict[str, list[str]]:
    return {"images": [part.value for part in sample.message if part.kind is PartKind.IMAGE]}


_LLAMA_FACTORY = {
    "findit": {
        "file_name": ROWS,
        "formatting": "sharegpt",
        "columns": {"messages": "messages", "images": "images"},
        "tags": {f"{x}_tag": x for x in ("role", "content", "user", "assistant", "system")},
    }
}


class TrainerFormat(NamedTuple):
    """The format of a training set for a trainer."""

    row: Callable[[TrainingSample], dict[str, Any]]
    use: str  # Command or setting that uses the set
    files: Mapping[str, str] = {}  # Text of further files, by name


# By the names of targets.TRAINERS
FORMATS: Mapping[str, TrainerFormat] = {
    "trl": TrainerFormat(_trl, 'datasets.load_dataset("{out}", split="train")'),
    "llama-factory": TrainerFormat(
        _messages,
        "dataset_dir: {out}, dataset: findit",
        {"dataset_info.json": json.dumps(_LLAMA_FACTORY, indent=2) + "\n"},
    ),
    "ms-swift": TrainerFormat(
        lambda sample: {**_messages(sample), **sample.columns}, "swift sft --dataset {out}/" + ROWS
    ),
}


def _column(name: str, dtype: str = "string") -> dict[str, Any]:
    return {"name": name, "dtype": dtype}


_CONTENT = {"name": "content", "list": [_column("type"), _column("text")]}
# Columns for TRL, in the words of `datasets`; without them images would be names of files
_FEATURES = [
    {"name": "prompt", "list": [_column("role"), _CONTENT]},
    {"name": "completion", "list": [_column("role"), _column("content")]},
    {"name": "images", "list": "image"},
    _column("truth"),
    {"name": "size", "list": "int64"},
    _column("format"),
    _column("space"),
    _column("frames", "int64"),
    _column("multilabel", "bool"),
]


# --- the card -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetFacts:
    """The facts of a card."""

    runs: Sequence[Run]
    trainer: str
    samples: int
    rows_sha256: str  # Of the file of rows
    formats: Sequence[str]
    errors: Mapping[str, int]  # Queries by the names of their error types
    left_out: Mapping[str, int]
    test_data: Sequence[str]
    notes: Sequence[str]  # Sentences on images and numbers


def make_card(facts: SetFacts) -> str:
    """Make the card of a training set: Markdown below front matter that ``datasets`` reads."""
    # ``datasets`` caches by this name, whatever the rows are.
    name = facts.rows_sha256[:12]
    front: dict[str, Any] = {
        "configs": [{"config_name": name, "data_files": ROWS, "default": True}]
    }
    if facts.trainer == "trl":
        front["dataset_info"] = {"config_name": name, "features": _FEATURES}
    parts = [f"---\n{yaml.safe_dump(front, sort_keys=False)}---", *_parts(facts)]
    return "\n\n".join(parts) + "\n"


def _parts(facts: SetFacts) -> Iterator[str]:
    models = dict.fromkeys(escape_markdown(printable(run.model)) for run in facts.runs)
    yield f"# What {', '.join(models)} got wrong, with right answers"
    yield (
        f"{counted(facts.samples, 'sample')} for {facts.trainer}, written by `findit export --to "
        f"training` of vlmeval_findit {__version__}. Prompts are those of the runs; answers are in "
        f"{', '.join(facts.formats)}. Paths of images are those of the machine that wrote this."
    )
    if facts.test_data:
        names = ", ".join(map(escape_markdown, facts.test_data))
        yield (
            f"**Test data** (`--yes-test-data`): {names}. Do not report scores on it of a "
            "model that was trained on this."
        )
    if facts.notes:
        yield " ".join(facts.notes)
    rows = (f"| {name} | {count} |" for name, count in facts.errors.items())
    yield "\n".join(["| queries with | |", "|---|---|", *rows])
    yield "\n".join(
        f"* {escape_markdown(run.variant.name)} (table {run.provenance.table_sha256[:12]}…, "
        f"run {run.provenance.digest})"
        for run in facts.runs
    )
    if facts.left_out:
        yield "Left out: " + "; ".join(f"{n} {why}" for why, n in facts.left_out.items()) + "."
