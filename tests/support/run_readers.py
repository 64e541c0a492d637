"""Who reads several scored runs, as functions of two prediction files below ``outputs``."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from stored_reproductions import stored

import vlmeval_findit as findit
from vlmeval_findit.cli import main, watch_checkpoints
from vlmeval_findit.export import TARGETS
from vlmeval_findit.reproduction import compare_reproductions
from vlmeval_findit.storage import MORE_SAMPLES, RunFiles

Reader = Callable[[Path, Path], None]


def called(*words: str) -> Reader:
    def call(*paths: Path) -> None:
        main([word.format(*paths) for word in words])

    return call


def watch(*paths: Path) -> None:
    watch_checkpoints._print_curves("M", Path("outputs"), None, set())


def _search(*paths: Path) -> None:
    asked = "--model", "FindIt-Nano", "--data", "Pascal", "--work-dir", "outputs"
    main(["search", *asked, "--dry-run"])


def _samples(first: Path, second: Path) -> None:
    """Print the samples of a run, of which the second is another model's answers."""
    folder = first.parent / MORE_SAMPLES / "2"
    folder.mkdir(parents=True)
    for name in ("predictions", "provenance", "details", "score", "identity"):
        source = getattr(RunFiles(second), name)
        target = getattr(RunFiles(folder / first.name), name)
        text = source.read_text(encoding="utf-8").replace(second.name, first.name)
        target.write_text(text.replace("M-step-2", "M-step-1"), encoding="utf-8")
    main(["samples", str(first)])


def _reproductions(first: Path, second: Path) -> None:
    provenances = [json.loads(RunFiles(path).provenance.read_text()) for path in (first, second)]
    here, there = (replace(stored(), made_with=each["scored_with"]) for each in provenances)
    compare_reproductions(here, there, "theirs.json")


# By the module that loads the runs
READERS: Mapping[str, Mapping[str, Reader]] = {
    "cli.leaderboard": {
        "leaderboard": called("leaderboard", "outputs"),
        "report": called("report", "outputs"),
    },
    "cli.compare": {"compare": called("compare", "{0}", "{1}")},
    "cli.errors": {"errors": called("errors", "{0}", "--against", "{1}")},
    "cli.export": {
        f"export {target}": called("export", "outputs", "--to", target) for target in TARGETS
    },
    "cli.watch_checkpoints": {"watch-checkpoints": watch},
    "cli.average_precision": {"ap": called("ap", "outputs")},
    "cli.audit": {"audit": called("audit", "outputs")},
    "cli.search": {"search --dry-run": _search},
    "analysis.sample_scores": {"samples": _samples},
    "api.dataframes": {
        "findit.compare": lambda *paths: print(findit.compare(*paths)),
        "findit.load_scores": lambda *_: print(findit.load_scores("outputs")),
        "findit.load_runs": lambda *_: print(findit.load_runs("outputs")),
    },
    "api.trainers": {},  # A single checkpoint
    "cli.reproduce": {"reproduce --against": _reproductions},
}


def all_said(read: Reader, paths: tuple[Path, Path], capsys: Any) -> str:
    """Return all that a reader says: its output, its warnings, and why it refuses."""
    refusal = ""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            read(*paths)
        except (ValueError, SystemExit) as error:
            refusal = str(error)
    shown = capsys.readouterr()
    return "\n".join([shown.out, shown.err, refusal, *(str(each.message) for each in warned)])
