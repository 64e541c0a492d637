"""A run whose process may have few open files makes fewer calls at a time, and says so."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

from chat_server import Answer, Asked, ChatServer, completion
from host_runs import environment

DATA = "FindIt_Scenes_mini_xyxy_json"

IN_FEW_FILES = """
import resource, sys
from vlmeval_findit.cli import main
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
sys.exit(main(sys.argv[1:]))
"""


def test_fewer_calls_at_a_time_and_nothing_fails(tmp_path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= 64

    def right(asked: Asked, number: int) -> Answer:
        return completion("[]")

    with ChatServer(right) as server:
        words = ["run", "--data", DATA, "--model", "Qwen3-VL", "--base-url", server.url]
        done = subprocess.run(
            [sys.executable, "-c", IN_FEW_FILES, *words, "--api-nproc", "100"],
            cwd=tmp_path,
            env=environment(tmp_path / "lmu"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert len(server.asked) == 50
    assert "calls at a time instead of 100: this process may have 64 open files" in done.stderr
    assert "another program" not in done.stderr
    assert "failed 0" in done.stderr
