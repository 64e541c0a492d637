"""A checkpoint's own Python code is never run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

from vlmeval_findit.models import SHIPPED

NANO = Path(SHIPPED["FindIt-Nano"])


@pytest.mark.slow
@pytest.mark.parametrize("file", ["config.json", "processor_config.json"])
def test_a_yes_on_standard_input_runs_no_code(tmp_path, file: str) -> None:
    pytest.importorskip("transformers")
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(NANO, checkpoint)
    name = "AutoConfig" if file == "config.json" else "AutoProcessor"
    path = checkpoint / file
    values = json.loads(path.read_text()) if path.is_file() else {}
    values["auto_map"] = {name: "evil.Evil"}
    if file == "config.json":
        values["model_type"] = "evil"
    path.write_text(json.dumps(values))
    (checkpoint / "evil.py").write_text(f"open({str(tmp_path / 'written')!r}, 'w')\n")
    command = [sys.executable, "run_findit.py", "run", "--data", "FindIt_Scenes_mini_xyxy_json"]
    command += ["--model", f"X={checkpoint}", "--like", "FindIt-Nano", "--space", "grid1000"]
    done = subprocess.run(
        [*command, "--limit", "2", "--work-dir", str(tmp_path / "out")],
        input="y\n" * 20,
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
    )
    assert not (tmp_path / "written").exists(), done.stdout + done.stderr
    if file == "config.json":
        assert done.returncode != 0
