"""Entries of every kind of deployment, with what version 1.1.0.dev0 of November 2026 made of them.

``golden/deployments/described.json`` has their keys and descriptions, ``journals/`` what they
answered there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from paths import ROOT

from vlmeval_findit.cli import all_deployments, with_options
from vlmeval_findit.core import validate
from vlmeval_findit.engine import Deployment
from vlmeval_findit.models import (
    SHIPPED,
    BatchKind,
    Budget,
    ModelEntry,
    ModelOptions,
    entry_values,
)
from vlmeval_findit.sweeps import Sweep

GOLDEN = ROOT / "tests" / "golden" / "deployments"
SYSTEM = "Be short."
"""Of the file ``system.txt`` of some entries."""


class Row(NamedTuple):
    """An entry of a sweep's file, with the flags of its command line."""

    name: str
    model: Mapping[str, Any]
    flags: Mapping[str, Any]
    access: str  # what it was called
    key: Mapping[str, Any]
    described: Mapping[str, Any]  # by the name of a variant

    def __str__(self) -> str:
        return self.name

    @property
    def entry(self) -> ModelEntry:
        return validate(ModelEntry, entry_values(self.values))

    @property
    def values(self) -> Any:
        """The entry as a file has it, with the shipped checkpoints."""
        text = json.dumps(self.model)
        for mark, name in (("NANO-PX", "FindIt-Nano-px"), ("NANO", "FindIt-Nano")):
            text = text.replace(f'"{mark}"', json.dumps(SHIPPED[name]))
        return json.loads(text)

    @property
    def options(self) -> ModelOptions:
        flags = dict(self.flags)
        if "batch" in flags:
            flags["batch"] = BatchKind(flags["batch"])
        if "header" in flags:
            flags["header"] = tuple(flags["header"])
        return ModelOptions(**flags)

    @property
    def words(self) -> list[str]:
        """The flags as they are typed."""
        words = []
        for name, value in self.flags.items():
            for each in value if isinstance(value, list) else [value]:
                words += [f"--{name.replace('_', '-')}", str(each)]
        return words

    @property
    def journal(self) -> Path | None:
        """What was answered then; None: nothing."""
        path = GOLDEN / "journals" / f"{re.sub('[^a-z]+', '-', self.name.lower()).strip('-')}.jsonl"
        return path if path.exists() else None

    def deployment(self) -> Deployment:
        sweep = with_options(Sweep(models=(self.entry,)), self.options)
        (made,) = all_deployments(sweep, self.options, Budget(), asks=False)
        return made


ROWS = [Row(**row) for row in json.loads((GOLDEN / "described.json").read_text(encoding="utf-8"))]
