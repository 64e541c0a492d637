"""Says what was typed for itself, where a help has it in the place of something else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..core import as_called

_MODEL = "a model: run_findit.py models"
_DATASET = "a dataset: run_findit.py data list"
_RUN = "a folder of runs, as outputs/FindIt-Nano"
_FILE = "a file of yours"

STANDS_FOR = {
    "CHECKPOINT": "a folder with a checkpoint, or its name on the hub",
    "CLONE": "the folder of a clone",
    "CONFIG": _FILE,
    "DATA": _DATASET,
    "DATASET": _DATASET,
    "DIR": "a folder",
    "FILE": _FILE,
    "FOLDER": "a folder",
    "FORMAT": "a format: run_findit.py formats",
    "IDENTIFIER": "a checkpoint's name on the hub",
    "JSON": "a value in JSON",
    "KEY": "a word of yours",
    "LEFT": _MODEL,
    "MODEL": _MODEL,
    "NAME": "a name",
    "NAMES": "names",
    "PART": "a part of a name",
    "PATH": "a file or folder",
    "POINTS": "a number",
    "PROGRAM": "vllm, sglang or transformers",
    "RIGHT": _MODEL,
    "RUN": _RUN,
    "SECONDS": "a number",
    "SERVED": "the name of a model at its server",
    "SET": "a set of a published figure: run_findit.py figures",
    "SHAPE": "the shape of a mark",
    "SLICE": "what queries differ in, as label or size",
    "SPACE": "a coordinate space: run_findit.py score --help",
    "STEP": "a number",
    "TARGET": "a target: run_findit.py export --help",
    "TYPE": "an error type: run_findit.py errors --help",
    "URL": "an address, as http://localhost:8000/v1",
    "USD": "an amount",
    "VALUE": "a value",
}
"""Word of a help -> what is to be typed for it, and where that is listed; letters name models."""

_NAMES = {
    "--model": _MODEL,
    "models": _MODEL,
    "--like": _MODEL,
    "--reads-like": _MODEL,
    "--data": _DATASET,
    "show": _DATASET,
    "get": _DATASET,
    "stats": _DATASET,
    "remove": _DATASET,
    "--provider": "a provider: openrouter, openai, anthropic, google",
    "--encoder": "a dual encoder, as SigLIP",
}
"""What a name is of, by the word before it."""

_BRACKETS = "[](){}<>.…"


def explained(refusal: str, words: Sequence[str]) -> str:
    """Return a refusal of words, with what is to be typed for those that a help has for others.

    Where it is about such a word, nothing else is said: what it advises is about other mistakes.

    >>> explained("unknown model 'MODEL'. Install …", ["models", "MODEL"]).endswith(" models")
    True
    >>> explained("a.yaml is empty", ["sweep", "[FILE.yaml]"])
    'a.yaml is empty (FILE stands for a file of yours)'
    >>> explained("unknown model 'a'", ["run", "--model", "a"])
    "unknown model 'a'"
    """
    notes = _copied(words)
    about = [note for note, typed in notes.items() if _is_about(refusal, *typed)]
    if about:
        return as_called("; ".join(about))
    return as_called(f"{refusal} ({'; '.join(notes)})") if notes else refusal


def _is_about(refusal: str, *words: str) -> bool:
    """Return whether a refusal is of a word: it quotes it, begins with it or names its flag."""
    typed = "|".join(map(re.escape, words))
    return re.search(rf"'({typed})'|^(--[a-z-]+ )?({typed}):", refusal) is not None


def _copied(words: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return what words stand for that were copied from a help -> what was typed, and its part."""
    notes: dict[str, tuple[str, str]] = {}
    for before, word in zip(["", *words], words, strict=False):
        if Path(word).exists():
            continue
        for part in re.split("[=_]", word):
            plain = re.sub(r"\.[a-z]+$", "", part.strip(_BRACKETS))
            if plain not in STANDS_FOR:
                continue
            meant = STANDS_FOR[plain]
            if plain == "NAME":
                meant = _NAMES.get(before, meant)
            notes[f"{plain} stands for {meant}"] = word, part
    return notes
