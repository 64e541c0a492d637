"""Runs of the real VLMEvalKit in processes of their own, for the end-to-end tests."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
RUN_FINDIT = [str(REPOSITORY / "run_findit.py")]
STOCK = ["-m", "vlmeval"]


def require_host() -> None:
    """Skip without VLMEvalKit; fail where the environment promises it (FINDIT_REQUIRE_HOST=1)."""
    if importlib.util.find_spec("vlmeval") is None:
        reason = "VLMEvalKit is not installed: pip install '.[vlmeval]'"
        if os.environ.get("FINDIT_REQUIRE_HOST") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


def environment(lmu: Path, **more: str) -> dict[str, str]:
    """The environment of a run: its own LMUData, none of the user's FindIt settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FINDIT_", "PRED_FORMAT"))}
    lmu.mkdir(parents=True, exist_ok=True)
    return {**kept, "LMUData": str(lmu), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **more}


def run(
    program: Sequence[str], arguments: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run Python on a program with arguments; output and errors together in ``stdout``."""
    return subprocess.run(
        [sys.executable, *program, *arguments],
        cwd=cwd,
        env=dict(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )


def predictions(work_dir: Path, model: str, dataset: str) -> Path:
    """The one prediction file of a run, wherever this version of the host puts it."""
    found = [p for p in work_dir.glob(f"{model}/**/{model}_{dataset}.*") if p.suffix != ".pkl"]
    assert len(found) == 1, found
    return found[0]


def figures(predictions_file: Path) -> dict[str, float]:
    """The figures that a score left beside a prediction file."""
    path = predictions_file.with_name(f"{predictions_file.stem}_provenance.json")
    return json.loads(path.read_text())["figures"]


def replies(predictions_file: Path) -> dict[int, str]:
    """The replies of a JSON prediction file by index."""
    return {row["index"]: row["prediction"] for row in json.loads(predictions_file.read_text())}
