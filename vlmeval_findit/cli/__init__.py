"""The command line: the only place that prints.

One row of :data:`COMMANDS` is one command: its module in this folder, with a ``main(argv)``, and a
line of help.  Only the command that is called is imported.  Without a command this is VLMEvalKit's
runner: every flag of ``run.py`` is handed over.  Without any argument it is the demonstration.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from ..core.command import INTERRUPTED, NO_MORE, REFUSED, SOME_FAILED
from .plugin_files import without_plugins

COMMANDS = {
    "data list": ("data_list", "the datasets: what is on disk, and their licences"),
    "data get": ("data_get", "bring a dataset: annotations, and the images that they name"),
    "data import": ("import_data", "make a dataset of files of your own, or of a published set"),
    "data show": ("show", "print what a query asks, and the sizes of its images"),
    "data check": ("data_check", "look whether annotations and images are there, and whole"),
    "score": ("score", "score prediction files again, without the model"),
    "doctor": ("doctor", "say in which coordinates a run's answers really are"),
    "probe": ("probe", "ask a deployment about forty scenes and name its coordinates"),
    "compare": ("compare", "what differs between two runs: metrics, intervals, queries"),
    "anatomy": ("anatomy", "say what cost a run's score its points, and where"),
    "confidences": ("confidences", "average precision and calibration by the model's own tokens"),
    "search": ("search", "find the format that a model answers best in"),
    "sweep": ("sweep", "run models x datasets x formats from a file"),
    "check": ("check", "try a benchmark, a model, a space … of your own before its first run"),
    "models": ("models", "list the models: names, checkpoints, coordinate spaces, image bounds"),
    "plugins": ("plugins", "list the rows that other packages and files add, and what is broken"),
    "marks": ("marks", "list the visual marks that are drawn into pictures, or show them all"),
    "leaderboard": ("leaderboard", "models x datasets with intervals, from scored runs"),
    "report": ("report", "one page with plots and every answer on its picture"),
    "export": ("export", "scored runs for COCO tools, the hub, FiftyOne, MLflow, W&B, trackio"),
    "demo": ("demo", "the demonstration"),
}

RENAMED = {
    "fetch": "data get",
    "prepare": "data get",
    "import": "data import",
    "show": "data show",
    "push": "export --to hub",
    "track": "export --to mlflow",
    "export-coco": "export --to coco",
    "export-fiftyone": "export --to fiftyone",
}
"""Commands of 0.2 that are called otherwise now."""

USAGE = f"""\
usage: run_findit.py                          the demonstration, without a network or weights
       run_findit.py --data FindIt_… --model … [any flag of VLMEvalKit's run.py]
       run_findit.py COMMAND …

commands:
{chr(10).join(f"  {name:<17}{what}" for name, (_, what) in COMMANDS.items())}

  --version        what is installed: of this package, VLMEvalKit, Python, torch

of every command:
  --plugin FILE.py        models, spaces, benchmarks … of a file of your own (docs/plugins.md)

flags of ours, with --data:
  --images KEY=DIR        image folder of a dataset (keys: configs/datasets.yaml)
  --skip-missing-images   leave out rows without a usable image; the result says so
  --prompts CLONE         ask in the release's own words, from a clone of it
  --model Replay=PATH     answer from a recorded prediction file or a folder of such files
  --model NAME=PATH       answer from a checkpoint: a folder or an identifier (names: models)
  --like Qwen3-VL         with --model my-ft=PATH: known model whose prompts and coordinates this
                          checkpoint shares
  --force                 go on although something contradicts what a run recorded
  --confidences           record how probable the tokens of every reply were
  --dry-run               count calls, images, bytes and tokens of models over an API; ask nothing
  --max-usd DOLLARS       stop before models over an API cost more than this
  --serve vllm            start the model as servers on this machine's GPUs, and ask those
  --base-url URL[,URL]    ask OpenAI-compatible servers; --model NAME, or NAME=THE_SERVERS_NAME
                          (key, if any: FINDIT_SERVER_KEY; also --timeout, --header, --extra-body)
  --provider NAME         ask the model at openai, anthropic, google or openrouter, with its key

exit status: 0; 1 something failed (run again to go on); 2 refused; 3 spending limit or full disk;
             4 no batch service was reached; 130 stopped; probe has its own (probe --help)

a dataset name: FindIt_<Dataset>[_multilabel][_caption][_f<N>]_<representation>_<text|json>
                [_<key>][_<structure>][_cx-<definitions|formula>][_vp-<mark>][_constrained]"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    1: something failed; 2: refused, nothing was run; 3: stopped at the spending limit, or the disk
    is full; 4: no batch service was reached; 130: interrupted.
    """
    try:
        status = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has seen enough (`| head`); Python writes what is left when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SOME_FAILED
    return status


def _run(arguments: list[str]) -> int:
    try:
        arguments = without_plugins(arguments)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return REFUSED
    first = arguments[0] if arguments else "demo"
    if {"-h", "--help"} & {first, *(arguments if first.startswith("-") else ())}:
        from ..core.command import as_called

        print(as_called(USAGE))
        return 0
    try:
        if first == "--version":
            return _main_of("version", arguments[1:])
        if first.startswith("-"):
            return _main_of("run", arguments)
        for words in (2, 1):
            module, _ = COMMANDS.get(" ".join(arguments[:words] or [first]), ("", ""))
            if module:
                return _main_of(module, arguments[words:])
        if any(name.startswith(f"{first} ") for name in COMMANDS):
            return _group(first, arguments[1:])
        if first in RENAMED:
            now = RENAMED[first]
            raise ValueError(f"{first} is {now} now: python run_findit.py {now} --help")
        from ..core.spelling import nearest

        raise ValueError(f"no command {first!r}{nearest(first, COMMANDS)}")
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return INTERRUPTED
    except ModuleNotFoundError as error:
        from ..core.command import missing

        line = missing(error)
        if line is None:
            raise
        print(f"error: {line}", file=sys.stderr)
        return REFUSED
    except BrokenPipeError:
        raise
    except (ValueError, OSError) as error:
        from ..core.files import is_disk_full
        from ..core.redaction import scrub

        # Ours derive from ValueError: what was given cannot be used, and the message says why.
        print(f"error: {scrub(said_of(error))}", file=sys.stderr)
        return NO_MORE if is_disk_full(error) else REFUSED


def _group(first: str, rest: Sequence[str]) -> int:
    """Print the commands of a group, or refuse one that there is not."""
    names = {name: what for name, (_, what) in COMMANDS.items() if name.startswith(f"{first} ")}
    if rest and rest[0] not in ("-h", "--help"):
        from ..core.spelling import nearest

        said = f"{first} {rest[0]}"
        raise ValueError(f"no command {said!r}{nearest(said, names)}")
    for name, what in names.items():
        print(f"  {name:<17}{what}")
    return 0


def said_of(error: ValueError | OSError) -> str:
    """The message of an error, and what to do about it where it is of the machine's making."""
    from ..core.command import as_called
    from ..core.places import advice

    return as_called(f"{error}{advice(error) if isinstance(error, OSError) else ''}")


def _main_of(module: str, argv: Sequence[str]) -> int:
    status: int = import_module(f"{__name__}.{module}").main(argv)
    return status
