"""The command line.

A command is a row of :data:`GROUPS` and a Click command of a module of this folder, which returns
the exit status: ``command``, unless the row names another. Only its module is imported.
"""

from __future__ import annotations

import atexit
import gc
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click
from click.shell_completion import CompletionItem, shell_complete

from ..core import (
    EXIT_INTERRUPTED,
    EXIT_LIMIT_REACHED,
    EXIT_REFUSED,
    EXIT_SOME_FAILED,
    TYPING_ERROR,
    as_called,
    closest,
    ended,
    install_command,
    missing_extra,
    printable_logs,
    program,
    read_env_file,
    remembering_places,
    take_memory_piecewise,
)
from .command_base import (
    HELP,
    PLUGIN,
    error_text,
    is_verbose,
    print_note,
    say,
    say_traceback,
    shared_options,
)
from .other_words import flags_of, our_command, unknown_flag, with_help_flag
from .placeholders import explained
from .unread_output import unread_output

GROUPS = {
    "Ask models": {
        "run": ("run.run_command", "ask models, and score; takes VLMEvalKit's flags, too"),
        "search": ("search", "find the format that a model answers best in"),
        "sweep": ("sweep.sweep_command", "run models x datasets x formats from a file"),
        "watch-checkpoints": ("watch_checkpoints", "evaluate the checkpoints of a training"),
        "reproduce": ("reproduce", "whether a setup gives a model's published number"),
        "figures": ("figures", "whose published figures are known; a file for others"),
        "demo": ("demo", "the demonstration: two small models, no network, no GPU"),
    },
    "Get data": {
        "data list": ("data_show.list_datasets", "the datasets: files on disk, and licences"),
        "data get": ("data_get", "get a dataset: annotations, and the images they name"),
        "data import": ("data_import", "make a dataset of your files, or a published set"),
        "data show": ("data_show", "print what a query asks, and the sizes of its images"),
        "data stats": ("data_stats", "images, objects, sizes and words of datasets"),
        "data remove": ("data_remove", "delete what an import made: tables, not images"),
        "data reviews": ("data_reviews", "what reviews of labels say; joins reviewers' files"),
        "data check": ("data_get.check", "check that annotations and images are complete"),
    },
    "Look at results": {
        "score": ("score", "score prediction files again, without the model"),
        "leaderboard": ("leaderboard", "models x datasets with intervals, from scored runs"),
        "compare": ("compare", "how two runs differ: metrics, intervals, queries"),
        "errors": ("errors", "which error types cost a run its points, and where"),
        "audit": ("audit", "labels that are probably wrong, by what several models answered"),
        "samples": (
            "calibration.samples",
            "several replies to each query: mean, consensus, pass@k",
        ),
        "calibration": ("calibration", "average precision and calibration by token probabilities"),
        "ap": ("average_precision", "mAP without confidences, as ODinW-13 has it, and its bounds"),
        "coords": ("coords", "in which coordinates a run's answers are; --model: a deployment's"),
        "report": ("report", "one page with plots and every answer on its image"),
        "export": ("export", "for COCO tools, the hub, FiftyOne, MLflow, W&B, trackio"),
    },
    "Names and plug-ins": {
        "formats": ("formats", "the formats: ways to write a box, each with an example"),
        "models": ("models", "the models: names, checkpoints, coordinate spaces, image bounds"),
        "check": ("check", "what plug-ins add; NAME: try your benchmark, model, space …"),
    },
}
"""Heading -> command -> its module and a line of help."""

OLD_WORDS = {
    "probe": ("probe", "ask a deployment about forty scenes: coords --model NAME"),
    "plugins": ("check.plugins", "what plug-ins add: check without a NAME"),
}
"""Commands that are part of another one: typed as ever, and not listed."""

# Command -> its module and a line of help
COMMANDS = {name: row for rows in GROUPS.values() for name, row in rows.items()} | OLD_WORDS

_COMPLETE = "_FINDIT_COMPLETE"
"""The environment variable in which a shell requests completions."""

_SWITCHES = re.compile("-[hqv]+|--help|--version|--verbose|--quiet")
"""Options without a value that may precede the command, as --plugin may."""

_EPILOG = """\
\b
Examples:
  python run_findit.py run --data FindIt_Scenes_mini_xyxy_json --model FindIt-Nano
  python run_findit.py search --model FindIt-Nano-px --data Scenes_mini --limit 10
  python run_findit.py report outputs

\b
"run" may be left out before --data. A dataset's name:
  FindIt_<Dataset>[_multilabel][_caption][_f<N>]_<representation>_<text|json>
         [_<key>][_<structure>][_cx-<definitions|formula>][_vp-<mark>]
         [_constrained]

\b
Exit status: 0; 1 something failed (run again to go on); 2 refused;
3 spending limit or full disk; 4 no batch service was reached; 130 stopped.

\b
Completion in bash (likewise zsh, fish):
  eval "$(_FINDIT_COMPLETE=bash_source findit)"
"""


class Commands(click.Group):
    """Commands whose modules are imported when they are called.

    Args:
        prefix: words before each name in :data:`COMMANDS`, with a trailing blank.
    """

    def __init__(self, name: str, prefix: str = "", help: str = "", epilog: str = "") -> None:
        super().__init__(name, help=help, epilog=epilog, context_settings=HELP)
        self.prefix = prefix

    def list_commands(self, ctx: click.Context) -> list[str]:
        listed = [name for name in COMMANDS if name not in OLD_WORDS]
        names = [name for name in listed if name.startswith(self.prefix)]
        words = (name.removeprefix(self.prefix).partition(" ")[0] for name in names)
        return list(dict.fromkeys(words))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = f"{self.prefix}{cmd_name}"
        if name in COMMANDS:
            command = command_named(name)
            command.name = cmd_name
            return command
        if cmd_name in self.list_commands(ctx):
            return Commands(cmd_name, f"{name} ", help=f"Commands of {name}.")
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = f"{self.prefix}{args[0]}"
        if args[0] in self.list_commands(ctx) or name in OLD_WORDS:
            return super().resolve_command(ctx, args)
        if instead := our_command(f"{self.prefix}{' '.join(args)}".split()):
            raise ValueError(f"unknown command {name!r}.{instead}")
        near = closest(name, COMMANDS, TYPING_ERROR)
        meant = f": did you mean {near}?" if near else f". Type: {program()} --help"
        raise ValueError(f"unknown command {name!r}{meant}")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, rows in GROUPS.items():
            listed = [(name, row[1]) for name, row in rows.items() if name.startswith(self.prefix)]
            if listed:
                with formatter.section(heading):
                    formatter.write_dl(listed)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # Click imports every command for its line of help.
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        helps = {name: COMMANDS.get(f"{self.prefix}{name}", ("", ""))[1] for name in names}
        return [CompletionItem(name, help=helps[name]) for name in names]


def command_named(name: str) -> click.Command:
    """Return the command of a name of :data:`COMMANDS`."""
    module, _, attribute = COMMANDS[name][0].partition(".")
    command: click.Command = getattr(_import(f"{__package__}.{module}"), attribute or "command")
    return command


def flags_by_command() -> dict[str, set[str]]:
    """Return the flags of every command that is listed."""
    listed = [name for name in COMMANDS if name not in OLD_WORDS]
    return {name: flags_of(command_named(name)) for name in listed}


def _import(name: str) -> ModuleType:
    """Import a command's module, and never look for garbage among what it imports: that stays."""
    if name in sys.modules:
        return import_module(name)
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.enable()
        gc.freeze()


# When Python ends, all that is left goes with it: to look for garbage first takes 0.1 s.
atexit.register(gc.freeze)


def _print_versions(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Print the versions of this package, VLMEvalKit, Python and the engines; import none."""
    if not value:
        return
    import platform

    from .. import __version__
    from ..core import host_version, installed, package_folder
    from ..protocol import ENGINE_PACKAGES

    say(f"vlmeval-findit {__version__}, {Path(__file__).resolve().parents[1]}")
    folder = package_folder()
    for name, number in host_version().items():
        say(f"{name} {number}, {folder}")
    if folder is None:
        say(f"VLMEvalKit is not installed: {install_command('run')}")
    engines = installed([name for names in ENGINE_PACKAGES.values() for name in names])
    for name, number in {"Python": platform.python_version(), **engines}.items():
        say(f"{name} {number}")
    ctx.exit()


ROOT = Commands(
    "findit",
    help="Measure where multimodal models put boxes: FindIt and other benchmarks.",
    epilog=as_called(_EPILOG),
)
"""The command ``findit``."""

_VERSION = click.Option(
    ["--version"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_versions,
    help="What is installed: this package, VLMEvalKit, Python, torch.",
    show_default=False,
)
ROOT.params += [_VERSION, *shared_options()]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status, as ``--help`` lists them."""
    arguments = with_help_flag(sys.argv[1:] if argv is None else argv)
    if _lacks_command(arguments):
        arguments = ["run", *arguments]
    sys.excepthook = say_traceback
    take_memory_piecewise()
    with unread_output(), printable_logs(), remembering_places():
        return _run(arguments)


def _lacks_command(arguments: Sequence[str]) -> bool:
    """Tell whether an option of ``run`` comes first: the word ``run`` may be left out."""
    words = iter(arguments)
    for word in words:
        if word == PLUGIN:
            next(words, None)
        elif not _SWITCHES.fullmatch(word) and not word.startswith(f"{PLUGIN}="):
            return word.startswith("-")
    return False


def _run(arguments: list[str]) -> int:
    try:
        if instruction := os.environ.get(_COMPLETE):
            return shell_complete(ROOT, {}, program(), _COMPLETE, instruction)
        if not arguments:
            _print_commands()
            return 0
        for note in read_env_file():
            print_note(note)
        with ROOT.make_context(program(), arguments) as context:
            try:
                status: int = ROOT.invoke(context)
            except (ValueError, OSError) as error:
                if is_verbose():
                    say_traceback(type(error), error, error.__traceback__)
                raise
        return status
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        return 0
    except click.UsageError as error:
        print_note(f"error: {explained(_usage_text(error), arguments)}")
        return EXIT_REFUSED
    except (KeyboardInterrupt, click.Abort):
        say("stopped", file=sys.stderr)
        return EXIT_INTERRUPTED
    except ModuleNotFoundError as error:
        if (line := missing_extra(error)) is None:
            raise
        print_note(f"error: {line}")
        return EXIT_REFUSED
    except (ValueError, OSError) as error:
        from ..core import is_disk_full

        # FindIt's errors derive from ValueError: the message says why an input cannot be used.
        print_note(f"error: {explained(error_text(error), arguments)}")
        return EXIT_LIMIT_REACHED if is_disk_full(error) else EXIT_REFUSED
    except Exception as error:
        from ..core import error_line, raised_in

        if not (place := raised_in(error)):
            raise
        print_note(f"error: plug-in {place} raised {error_line(error)}")
        return EXIT_SOME_FAILED


def _usage_text(error: click.UsageError) -> str:
    """Return Click's message in one line, with what to type; flags of others lead to ours."""
    context = error.ctx
    called = context.command_path if context else program()
    if context is not None and isinstance(error, click.NoSuchOption):
        name = called.removeprefix(program()).strip()
        flags = sorted(flags_of(context.command))
        return unknown_flag(error.option_name, flags, name, flags_by_command)
    text = " ".join(error.format_message().split())
    choices = getattr(getattr(error, "param", None), "type", None)
    typed = re.search(r"'([^']*)' is not one of", text)
    if typed and isinstance(choices, click.Choice):
        near = closest(typed[1], choices.choices)
        if near:
            text = f"{text} Did you mean {near}?"
    return f"{ended(text)} Type: {called} --help"


def _print_commands() -> None:
    context = click.Context(ROOT, info_name=program())
    formatter = context.make_formatter()
    ROOT.format_help_text(context, formatter)
    ROOT.format_commands(context, formatter)
    say(formatter.getvalue())
    say(f"Begin with: {program()} demo")
    say(f"Options, examples, names of datasets, exit statuses: {program()} --help")
