"""``docs/start.md``: its commands run in their order and print what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from fresh_venvs import copy_of_the_clone
from host_runs import require_host
from paths import ROOT

pytestmark = pytest.mark.host

PAGE = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
LEFT_OUT = "…"


class Step(NamedTuple):
    """Commands of the page, and the lines that it shows of their output."""

    commands: str
    shown: list[str]


def steps(page: str) -> Iterator[Step]:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for at, (kind, text) in enumerate(blocks):
        if kind == "":
            following = blocks[at + 1] if at + 1 < len(blocks) else ("", "")
            shown = following[1].splitlines() if following[0] == "text" else []
            yield Step(text, [line.rstrip() for line in shown if line != LEFT_OUT])


def test_the_page_installs_the_demonstrations_extra() -> None:
    install, *_ = steps(PAGE)
    assert "pip install -e '.[demo]'" in install.commands
    assert "pip install -e '.[demo]'" in (ROOT / "docs" / "install.md").read_text()


def test_the_first_hour(tmp_path: Path) -> None:
    """All but the installation, which this environment is."""
    require_host()
    pytest.importorskip("fastapi", reason="fastapi is absent: pip install 'transformers[serving]'")
    clone = copy_of_the_clone(tmp_path)
    (tmp_path / "home" / "LMUData").mkdir(parents=True)
    own = ("FINDIT_", "LMUData", "PRED_FORMAT")
    env = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    env |= {"HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(clone)}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    _, *rest = steps(PAGE)
    assert len(rest) >= 7
    for step in rest:
        done = subprocess.run(
            ["bash", "-ec", step.commands],
            cwd=clone,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{step.commands}\n{done.stdout}"
        printed = iter(line.rstrip() for line in done.stdout.splitlines())
        for line in step.shown:
            assert line in printed, f"{step.commands}\n{line!r} is not in\n{done.stdout}"
