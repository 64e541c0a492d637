"""A process that has imported what VLMEvalKit imports, and forks itself for every run.

Half of a short run's processor goes into torch and transformers.  Neither VLMEvalKit nor this
package is imported before the fork, beyond what the start-up hook does in every process.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

OF_A_RUN = ("LMUData", "MMEVAL_ROOT", "PRED_FORMAT", "FINDIT_", "PYTEST_")
"""Beginnings of the variables that may differ from one run to the next: nothing that is imported
before the fork reads them."""


IMPORTED = (
    "torch",
    "torchvision.transforms",
    "transformers.modeling_utils",
    "openai",
    "cv2",
    "pandas",
    "matplotlib.pyplot",
    "sklearn.metrics",
    "datasets",
    "nltk",
    "scipy.stats",
    "networkx",
    "av",
)
"""What VLMEvalKit imports of others, where most of the time goes."""


class WarmProcess:
    """Runs Python programs one after the other, each in a fork."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.end)

    def end(self) -> None:
        """End it, as the end of its input would."""
        self._process.communicate()

    def run(self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], output: Path) -> int:
        """Run ``python *arguments``; its output and errors go into a file.

        Returns:
            The exit status, negative for a signal's number as of :mod:`subprocess`.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"arguments": list(arguments), "cwd": str(cwd), "env": dict(env)}
        self._process.stdin.write(json.dumps({**asked, "output": str(output)}) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def can_run(program: Sequence[str], env: Mapping[str, str], warm: Mapping[str, str]) -> bool:
    """Return whether a run may be forked from a process that began with the variables ``warm``."""
    if program[0] == "-c":
        return False  # It imports in another order
    changed = {name for name in {*env, *warm} if env.get(name) != warm.get(name)}
    return all(name.startswith(OF_A_RUN) for name in changed)


@cache
def warm_process(variables: tuple[tuple[str, str], ...]) -> WarmProcess:
    """Return the process for runs that begin with these variables; it ends with its parent."""
    return WarmProcess(dict(variables))


# --- the process ----------------------------------------------------------------------------------


def _serve() -> list[str]:
    """Fork for every line that comes; returns in the fork, with the arguments of its program."""
    for module in IMPORTED:
        with suppress(ImportError):
            import_module(module)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            answers.close()
            os.chdir(asked["cwd"])
            os.environ.clear()
            os.environ.update(asked["env"])
            output = os.open(asked["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            nothing = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((nothing, 0), (output, 1), (output, 2)):
                os.dup2(source, target)
            return asked["arguments"]
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)
    sys.exit()


if __name__ == "__main__":
    program, *rest = _serve()
    if program == "-m":
        sys.path[0] = ""
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(program).parent)
        sys.argv = [program, *rest]
        runpy.run_path(program, run_name="__main__")
