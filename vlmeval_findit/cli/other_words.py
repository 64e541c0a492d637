"""What people type who know other programs, and what it is called here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..core import as_called

_RUN = "run (asks models, and scores)"
_SCORE = "score (scores prediction files)"
_LIST = "data list (the datasets)"
_GET = "data get (gets a published dataset)"
_REPORT = "report (one page with plots and every answer)"
_ERRORS = "errors (which error types cost a run its points)"

COMMANDS: dict[str, Sequence[str]] = {
    "ask": [_RUN],
    "bench": [_RUN],
    "benchmark": [_RUN],
    "eval": [_RUN, _SCORE],
    "evaluate": [_RUN, _SCORE],
    "test": [_RUN, "check (tries a benchmark or a model of yours)"],
    "val": [_RUN],
    "predict": ["run --mode infer (asks models, scores nothing)"],
    "infer": ["run --mode infer (asks models, scores nothing)"],
    "inference": ["run --mode infer (asks models, scores nothing)"],
    "list": [_LIST, "models (the models)"],
    "ls": [_LIST, "models (the models)"],
    "list datasets": [_LIST],
    "list models": ["models (the models)"],
    "list tasks": [_LIST],
    "dataset": [_LIST, _GET],
    "datasets": [_LIST, _GET],
    "tasks": [_LIST],
    "download": [_GET],
    "fetch": [_GET],
    "prepare": [_GET],
    "import": ["data import (makes a dataset of your files)"],
    "convert": ["data import (makes a dataset of your files)"],
    "show": ["data show (prints what a query asks)", _REPORT],
    "view": [_REPORT],
    "visualize": [_REPORT],
    "visualise": [_REPORT],
    "plot": [_REPORT],
    "analyze": [_ERRORS, _REPORT],
    "analyse": [_ERRORS, _REPORT],
    "board": ["leaderboard (models x datasets)"],
    "rank": ["leaderboard (models x datasets)"],
    "summarize": ["leaderboard (models x datasets)"],
    "results": ["leaderboard (models x datasets)", _REPORT],
    "review": ["audit --review review.html (a page on which a person judges doubtful labels)"],
    "diff": ["compare (how two runs differ)"],
    "replicate": ["reproduce (whether a setup gives a model's published number)"],
    "verify": ["reproduce (whether a setup gives a model's published number)"],
    "push": ["export --to hub"],
    "upload": ["export --to hub"],
    "train": ["watch-checkpoints (evaluates the checkpoints of a training)"],
    "version": ["--version"],
}
"""Commands of other programs -> ours."""

FLAGS = {
    "-m": "--model",
    "--models": "--model",
    "--model-name": "--model",
    "--model_name": "--model",
    "--model-path": "--model NAME=PATH",
    "--model_path": "--model NAME=PATH",
    "--pretrained": "--model NAME=CHECKPOINT",
    "--model-args": "--model NAME=CHECKPOINT",
    "--model_args": "--model NAME=CHECKPOINT",
    "-d": "--data",
    "-t": "--data",
    "--dataset": "--data",
    "--datasets": "--data",
    "--task": "--data",
    "--tasks": "--data",
    "-o": "--work-dir",
    "--out": "--work-dir",
    "--output": "--work-dir",
    "--output-dir": "--work-dir",
    "--output_dir": "--work-dir",
    "--output_path": "--work-dir",
    "--log-dir": "--work-dir",
    "-n": "--limit",
    "--num-samples": "--limit",
    "--max-samples": "--limit",
    "--batch_size": "--batch-size",
    "--api-base": "--base-url",
    "--url": "--base-url",
    "-V": "--version",
}
"""Flags of other programs' runs -> ours."""


def our_command(words: Sequence[str]) -> str:
    """Return `` Type: …`` for a command of another program; "" if none is known.

    >>> our_command(["view", "outputs"]).endswith(" report (one page with plots and every answer)")
    True
    """
    for name in (" ".join(words[:2]), *words[:1]):
        if name in COMMANDS:
            typed = " or ".join(f"run_findit.py {row}" for row in COMMANDS[name])
            return as_called(f" Type: {typed}")
    return ""


def refuse_other_flags(words: Sequence[str]) -> None:
    """Refuse a flag of another program, with ours; ``words`` are none of VLMEvalKit's.

    >>> refuse_other_flags(["--tasks", "RefCOCO"])
    Traceback (most recent call last):
    ValueError: unknown flag '--tasks': it is --data here
    """
    for word in words:
        name = word.partition("=")[0]
        if name in FLAGS:
            raise ValueError(f"unknown flag {name!r}: it is {FLAGS[name]} here")


def with_help_flag(words: Sequence[str]) -> list[str]:
    """Return a command line with ``--help`` in place of the word ``help``.

    A file or folder of that name is meant where there is one.

    >>> with_help_flag(["help"]), with_help_flag(["help", "run"]), with_help_flag(["data", "help"])
    (['--help'], ['run', '--help'], ['data', '--help'])
    """
    if list(words[:1]) == ["help"]:
        return [*words[1:], "--help"]
    has_flags = any(word.startswith("-") for word in words)
    if list(words[-1:]) == ["help"] and not has_flags and not Path("help").exists():
        return [*words[:-1], "--help"]
    return list(words)
