"""What a probe leaves for later: the model in a sweep's file, with the space that was named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ..core.command import as_called
from ..core.files import atomic_write
from ..models.entry import ModelEntry
from .probe_text import Probed


def saved(probed: Probed, entry: ModelEntry, path: Path, urls: str | None) -> str:
    """Write a sweep's file, where something was named that runs can be scored in.

    Returns:
        What is said of it: that it is written, or why it is not.
    """
    finding, space = probed.finding, probed.space
    if finding.named is None or not finding.outcome.is_clear:
        return f"{path} is not written: nothing was named"
    if probed.unusable is not None or space is None:
        return f"{path} is not written: {probed.unusable}"
    said = space.as_dict()
    model: dict[str, Any] = {
        "name": entry.name,
        "provider": entry.provider,
        "served": entry.served,
        "checkpoint": entry.checkpoint,
        "like": entry.like,
        "space": said if len(said) > 1 else space.kind,
        "settings": dict(entry.settings),
    }
    whole = {
        "models": [{key: value for key, value in model.items() if value}],
        "datasets": [probed.dataset],
    }
    # An address may hold a key: it is for the command line.
    where = " --base-url URL" if urls else ""
    head = (
        f"# Named by run_findit.py probe: {finding.named.means}.\n"
        "# Name the datasets that you want, then:\n"
        f"#   python run_findit.py sweep {path.name}{where}\n"
        f"#   python run_findit.py probe --config {path.name}{where}\n"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as f:
        f.write(as_called(head))
        yaml.safe_dump(whole, f, sort_keys=False, allow_unicode=True, width=100)
    return f"saved: {path}"
