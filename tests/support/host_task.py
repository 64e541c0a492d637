"""VLMEvalKit's runner called from a program, as evalscope and ms-swift call it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

FOREIGN = ["evalscope", "eval", "--data", "FindIt_Nothing", "--temperature", "9", "--config", "x"]
"""The command line of the calling program: no number may depend on it."""


def run_task(
    words: Sequence[str], work_dir: Path, argv: Sequence[str] | None = FOREIGN
) -> list[str]:
    """Run VLMEvalKit's loop in this process.

    Args:
        words: the runner's flags, as its parser takes them.
        work_dir: its folder of results.
        argv: the command line of the calling program; None: that of the runner.

    Returns:
        What went wrong with FindIt's datasets, a line each.
    """
    from vlmeval import run

    from vlmeval_findit.host import OUTCOMES

    OUTCOMES.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "githash", lambda **_: "none")
        patch.setattr(run, "setup_logger", lambda **_: None)
        patch.setattr("sys.argv", ["run.py", *words, "--work-dir", str(work_dir)])
        arguments = run.parse_args()
        if argv is not None:
            patch.setattr("sys.argv", list(argv))
        run.run_task(arguments)
    return [*map(str, OUTCOMES.bad()), *OUTCOMES.unfinished()]
