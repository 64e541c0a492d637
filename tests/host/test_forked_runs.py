"""A run that is forked from a warm process ends as a started one does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from host_runs import environment, run

ENDS = {
    "through": "print('done')",
    "a status": "sys.exit(3)",
    "a status over a byte": "sys.exit(259)",
    "words": "sys.exit('why')",
    "an error": "raise ValueError('why')",
    "exit functions": "atexit.register(print, 'last')\nsys.exit(2)",
    "a thread": "threading.Thread(target=lambda: (time.sleep(0.2), print('last'))).start()",
    "a pool": "ThreadPoolExecutor(1).submit(lambda: (time.sleep(0.2), print('last')))",
    "at once": "print('done', flush=True)\nos._exit(4)",
    "a signal": "os.kill(os.getpid(), 15)",
}
IMPORTS = (
    "import atexit, os, sys, threading, time\nfrom concurrent.futures import ThreadPoolExecutor\n"
)


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_a_forked_run_ends_as_a_started_one(end: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(IMPORTS + ENDS[end])
    forked = run([str(script)], [], tmp_path, environment(tmp_path / "lmu"))
    started = subprocess.run(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        text=True,
        check=False,
    )
    assert forked.returncode == started.returncode
    assert forked.stdout.splitlines()[-1:] == started.stdout.splitlines()[-1:]
