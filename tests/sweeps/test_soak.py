"""``benchmarks/soak.py``, small: misbehaving servers, a limit, and kills."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT, python_path

SMALL = ("--kills", "3", "--rows", "4", "--representations", "[xyxy, xywh]", "--usd", "0.1")


@pytest.mark.slow
def test_misbehaving_servers_and_kills_leave_what_a_quiet_run_leaves(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "soak.py"), str(tmp_path / "soak"), *SMALL],
        env={**os.environ, "PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["calls"] == 16
    assert figures["kills"] > 0
    assert figures["lost"] > 0
