"""What a command leaves when its process ends."""

from __future__ import annotations

import subprocess
import sys

SAYS_HOW_MANY = """
import atexit, gc
atexit.register(lambda: print(gc.get_freeze_count(), len(gc.get_objects())))
from vlmeval_findit.cli import main
main(["models"])
"""


def test_python_looks_for_no_garbage_when_it_ends() -> None:
    command = [sys.executable, "-c", SAYS_HOW_MANY]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    frozen, looked_at = map(int, done.stdout.split()[-2:])
    assert looked_at < frozen / 100
