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


def placeholder_note(words: Sequence[str]) -> str:
    """Return sentences on words that were copied from a help; "" if there are none.

    >>> placeholder_note(["models", "MODEL"]).endswith(" models)")
    True
    >>> placeholder_note(["sweep", "[FILE.yaml]"])
    ' (FILE stands for a file of yours)'
    >>> placeholder_note(["run", "--data", "FindIt_RefCOCO_xyxy_json"])
    ''
    """
    notes: dict[str, None] = {}
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
            notes[f"{plain} stands for {meant}"] = None
    return as_called(f" ({'; '.join(notes)})") if notes else ""
