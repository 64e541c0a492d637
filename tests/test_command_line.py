"""The command line as a process: whoever reads may stop reading."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("arguments", [["--help"], ["models"], ["score", "--help"]])
def test_who_stops_reading_is_told_no_error(arguments: list[str]) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "wb") as output:
        found = subprocess.run(
            [sys.executable, "-m", "vlmeval_findit", *arguments],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert found.stderr == ""
    assert found.returncode in (0, 1)
