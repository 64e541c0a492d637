"""Rows of a training set in the formats of trainers, their description files, and the card."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from .. import __version__
from ..core.formatting import counted, printable
from ..core.question import Message, PartKind, split_system
from ..leaderboard.table_output import md
from ..runs.scored_run import Run

ROWS = "train.jsonl"
IMAGE_MARK = "<image>"


@dataclass(frozen=True, slots=True)
class TrainingSample:
    """A query with its right answer."""

    message: Message  # Its images are files
    answer: str
    columns: Mapping[str, Any]  # For rewards: :func:`..api.trainers.reward_function`


# --- trainers -------------------------------------------------------------------------------------


def _images(sample: TrainingSample) -> list[str]:
    return [part.value for part in sample.message if part.kind is PartKind.IMAGE]


def _trl(sample: TrainingSample) -> dict[str, Any]:
    system, message = split_system(sample.message)
    content = [
        {"type": "image"} if part.kind is PartKind.IMAGE else {"type": "text", "text": part.value}
        for part in message
    ]
    opening = [] if system is None else [_message("system", [{"type": "text", "text": system}])]
    return {
        "prompt": [*opening, _message("user", content)],
        "completion": [_message("assistant", sample.answer)],
        "images": _images(sample),
        **sample.columns,
    }


def _messages(sample: TrainingSample) -> dict[str, Any]:
    system, message = split_system(sample.message)
    text = "".join(IMAGE_MARK if part.kind is PartKind.IMAGE else part.value for part in message)
    opening = [] if system is None else [_message("system", system)]
    return {
        "messages": [*opening, _message("user", text), _message("assistant", sample.answer)],
        "images": _images(sample),
    }


def _message(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def _ms_swift(sample: TrainingSample) -> dict[str, Any]:
    return {**_messages(sample), **sample.columns}


_LLAMA_FACTORY = {
    "findit": {
        "file_name": ROWS,
        "formatting": "sharegpt",
        "columns": {"messages": "messages", "images": "images"},
        "tags": {
            "role_tag": "role",
            "content_tag": "content",
            "user_tag": "user",
            "assistant_tag": "assistant",
            "system_tag": "system",
        },
    }
}


@dataclass(frozen=True, slots=True)
class TrainerFormat:
    """The format of a training set for a trainer."""

    row: Callable[[TrainingSample], dict[str, Any]]
    use: str  # Command or setting that uses the set
    files: Mapping[str, str]  # Text of further files, by name


FORMATS: Mapping[str, TrainerFormat] = {
    "trl": TrainerFormat(_trl, 'datasets.load_dataset("{out}", split="train")', {}),
    "llama-factory": TrainerFormat(
        _messages,
        "dataset_dir: {out}, dataset: findit",
        {"dataset_info.json": json.dumps(_LLAMA_FACTORY, indent=2) + "\n"},
    ),
    "ms-swift": TrainerFormat(_ms_swift, "swift sft --dataset {out}/" + ROWS, {}),
}
"""By :data:`.targets.TRAINERS`."""


def _text(name: str) -> dict[str, Any]:
    return {"name": name, "dtype": "string"}


_FEATURES = [
    {
        "name": "prompt",
        "list": [_text("role"), {"name": "content", "list": [_text("type"), _text("text")]}],
    },
    {"name": "completion", "list": [_text("role"), _text("content")]},
    {"name": "images", "list": "image"},
    _text("truth"),
    {"name": "size", "list": "int64"},
    _text("format"),
    _text("space"),
    {"name": "frames", "dtype": "int64"},
    {"name": "multilabel", "dtype": "bool"},
]
"""Columns for TRL, in the words of ``datasets``; without them images would be names of files."""


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


def make_card(facts: SetFacts) -> str:
    """Make the card of a training set: Markdown below front matter that ``datasets`` reads."""
    # ``datasets`` caches by this name, whatever the rows are.
    name = facts.rows_sha256[:12]
    config = {"config_name": name, "data_files": ROWS, "default": True}
    front: dict[str, Any] = {"configs": [config]}
    if facts.trainer == "trl":
        front["dataset_info"] = {"config_name": name, "features": _FEATURES}
    return (
        f"---\n{yaml.safe_dump(front, sort_keys=False)}---\n\n" + "\n\n".join(_parts(facts)) + "\n"
    )


def _parts(facts: SetFacts) -> Iterator[str]:
    models = dict.fromkeys(md(printable(run.model)) for run in facts.runs)
    yield f"# What {', '.join(models)} got wrong, with right answers"
    yield (
        f"{counted(facts.samples, 'sample')} for {facts.trainer}, written by `findit export --to "
        f"training` of vlmeval_findit {__version__}. Prompts are those of the runs; answers are in "
        f"{', '.join(facts.formats)}. Paths of images are those of the machine that wrote this."
    )
    if facts.test_data:
        yield (
            f"**Test data** (`--yes-test-data`): {', '.join(map(md, facts.test_data))}. Do not "
            "report scores on it of a model that was trained on this."
        )
    yield "| queries with | |\n|---|---|\n" + "\n".join(
        f"| {name} | {count} |" for name, count in facts.errors.items()
    )
    yield "\n".join(
        f"* {md(run.question.name)} (table {run.provenance.table_sha256[:12]}…, "
        f"run {run.provenance.digest})"
        for run in facts.runs
    )
    if facts.left_out:
        yield "Left out: " + "; ".join(f"{n} {why}" for why, n in facts.left_out.items()) + "."
