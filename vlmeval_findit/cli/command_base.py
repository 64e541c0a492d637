"""The base of all commands: their help, and the options that they share."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import TextWrapper, wrap
from typing import Any, TextIO, TypeVar

import click
from click.shell_completion import CompletionItem

from ..core import (
    as_called,
    clear_leftovers,
    not_there,
    printable_lines,
    remember_file,
    remember_folder,
    results_folder,
)
from ..data import BoxForm

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any] | click.Command)

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 80, "show_default": True}
"""Settings of every command's context."""

PLUGIN = "--plugin"
_QUIET = "vlmeval_findit.quiet"
_VERBOSE = "vlmeval_findit.verbose"
_HELP_ALL = "vlmeval_findit.help_all"

Decorator = Callable[[AnyCommand], AnyCommand]

Section = Callable[[], Sequence[tuple[str, str]]]
"""Makes the terms, with their definitions, of a section of a help."""


class DeclaredOption(click.Option):
    """An option that knows its declaration: commands that share it have it of the same one."""

    def __init__(self, names: Sequence[str], *, declaration: object, **settings: Any) -> None:
        super().__init__(names, **settings)
        self.declaration = declaration


def declare(*names: str, **settings: Any) -> Decorator[Any]:
    """Declare an option, as :func:`click.option`, which several commands may share."""
    return click.option(*names, cls=DeclaredOption, declaration=object(), **settings)


def option(flag: str, metavar: str, text: str, **settings: Any) -> Decorator[Any]:
    """Make an option of a command; ``text`` is its help."""
    return declare(flag, metavar=metavar, help=text, **settings)


def switch(flag: str, text: str) -> Decorator[Any]:
    """Make an option of a command that takes no value."""
    return declare(flag, is_flag=True, help=text)


class Command(click.Command):
    """A command with ``--plugin``, ``--verbose`` and ``--quiet``.

    Its help is its callback's docstring, followed by its options, first those that are in none of
    ``groups`` (names by heading), by ``examples``, one command for each line, and by ``sections``,
    which are built when the help is printed: plug-ins may add to their tables. Options that are
    ``rare`` are described by ``--help-all``.
    """

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        sections: Mapping[str, Section] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        rare: Collection[str] = (),
        **settings: Any,
    ) -> None:
        settings["context_settings"] = {**HELP, **settings.get("context_settings", {})}
        super().__init__(*args, **settings)
        self.help = as_called(self.help or "")
        self.examples = examples
        self.sections = sections or {}
        self.groups = groups or {}
        self.rare = frozenset(rare)
        self.params += shared_options()
        if rare:
            self.params.append(_help_all())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        shows_all = ctx.meta.get(_HELP_ALL, False)
        not_shown: list[str] = []
        headings = {name: heading for heading, names in self.groups.items() for name in names}
        rows: dict[str, list[tuple[str, str]]] = {"Options": [], **{key: [] for key in self.groups}}
        for option in self.get_params(ctx):
            row = option.get_help_record(ctx)
            if row is None or not isinstance(option, click.Option):
                continue
            if option.name in self.rare and not shows_all:
                not_shown.append(option.opts[0])
            else:
                rows[headings.get(option.name or "", "Options")].append(row)
        for heading, listed in rows.items():
            if listed:
                with formatter.section(heading):
                    formatter.write_dl(listed)
        if not_shown:
            with formatter.section(f"{len(not_shown)} more, described by --help-all"):
                width = formatter.width - formatter.current_indent
                for line in wrap(" ".join(not_shown), width, break_on_hyphens=False):
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{as_called(example)}\n")
        super().format_epilog(ctx, formatter)
        for heading, make in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl(make())


def _help_all() -> click.Option:
    def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta[_HELP_ALL] = True
            say(ctx.get_help())
            ctx.exit()

    return click.Option(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show all options and exit.",
        show_default=False,
    )


def shared_options() -> list[click.Option]:
    """Make the options that may precede or follow a command."""
    return [
        click.Option(
            [PLUGIN],
            type=PATH,
            multiple=True,
            expose_value=False,
            is_eager=True,
            callback=_use_plugins,
            metavar="FILE.py",
            help="Models, spaces, benchmarks … from a file of yours (docs/how-to/benchmarks.md).",
        ),
        _switch("-v", "--verbose", _VERBOSE, "Log more; show where an error was raised."),
        _switch("-q", "--quiet", _QUIET, "Print results and errors only."),
    ]


def _switch(short: str, long: str, key: str, text: str) -> click.Option:
    def remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        meta = ctx.find_root().meta
        meta[key] = meta.get(key, False) or value
        if value:
            logging.basicConfig(level=logging.INFO if key == _VERBOSE else logging.ERROR)

    return click.Option(
        [short, long],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=remember,
        help=text,
        show_default=False,
    )


def is_quiet() -> bool:
    """Tell whether ``--quiet`` is set: no progress, no notes."""
    return _meta(_QUIET)


def is_verbose() -> bool:
    """Tell whether ``--verbose`` is set."""
    return _meta(_VERBOSE)


def host_log_level() -> int:
    """Return the level below which VLMEvalKit's lines are not shown; 0: all are."""
    if is_verbose():
        return logging.NOTSET
    return logging.ERROR if is_quiet() else logging.WARNING


def _meta(key: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().meta.get(key))


def say(text: object = "", file: TextIO | None = None, flush: bool = False) -> None:
    """Print lines, to stdout unless told otherwise; all that commands print goes through here.

    Our command has the name that it was called by. A text may quote a file or a server: control
    characters in it are not for the terminal.
    """
    print(printable_lines(as_called(str(text))), file=file, flush=flush)


def say_traceback(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Print an error with the place where it was raised."""
    say("".join(traceback.format_exception(kind, error, trace)).removesuffix("\n"), sys.stderr)


def print_note(text: str) -> None:
    """Print lines to stderr; on a terminal they are folded between words."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        wrapper = TextWrapper(width, break_long_words=False, break_on_hyphens=False)
        text = "\n".join(map(wrapper.fill, as_called(text).split("\n")))
    say(text, file=sys.stderr)


def error_text(error: ValueError | OSError) -> str:
    """Return the message of an error, and what to do about it if the operating system refused."""
    from ..core import scrub
    from ..storage import folder_advice

    if not isinstance(error, OSError):
        return as_called(scrub(str(error)))
    text = str(error)
    if error.filename and error.strerror:
        is_missing = isinstance(error, FileNotFoundError)
        why = not_there(Path(os.fsdecode(error.filename))) if is_missing else error.strerror
        text = f"{error.filename}: {why}"
    return as_called(scrub(f"{text}{folder_advice(error)}"))


# --- options of several commands ------------------------------------------------------------------

PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
"""The type of files and folders, which need not exist."""


class _Written(click.Path):
    """A path that a command writes, refused before it has computed anything.

    What killed commands left beside it is made good.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        return self.begin(path, param.opts[0] if param is not None else "FILE")

    def begin(self, path: Path, named: str) -> Path:
        """Refuse a path that cannot be written; else make good what killed commands left there.

        Args:
            path: which is written.
            named: the flag by which another can be named.
        """
        from ..storage import is_writable

        existing = next(each for each in (path, *path.absolute().parents) if each.exists())
        if existing != path and not existing.is_dir():
            raise ValueError(f"{named} {path}: {existing} is not a folder")
        if existing.is_dir() and not is_writable(existing):
            raise ValueError(f"{named} {path}: {existing} cannot be written to. Name another")
        clear_leftovers(path)
        return path


class _WrittenFile(_Written):
    """A file that a command writes; of two commands at once, one is refused."""

    def begin(self, path: Path, named: str) -> Path:
        remember_file(super().begin(path, named))
        return path


class _WrittenFolder(_Written):
    """A folder whose files are of one command; of two at once, one is refused."""

    def begin(self, path: Path, named: str) -> Path:
        begin_folder(super().begin(path, named))
        return path


def begin_folder(path: Path) -> None:
    """Make good what killed commands left in a folder that is written, and remember its files."""
    clear_leftovers(path / "any file")
    remember_folder(path)


WRITTEN = _Written(path_type=Path)
"""The type of what several commands may write to at once."""

WRITTEN_FILE = _WrittenFile(path_type=Path, dir_okay=False)
WRITTEN_FOLDER = _WrittenFolder(path_type=Path)
"""The types of files and folders that one command at a time writes."""

BESIDE_RUNS = "in the folder that is named, else in outputs"
"""Where :func:`beside_runs` is, for a help."""


def beside_runs(runs: Sequence[Path], name: str) -> Path:
    """Return where a command writes a file or folder of runs, unless it is told.

    It is in the folder that is named, or that has all that are named; else, or where that is the
    current folder, in the folder of results.
    """
    if len(runs) == 1 and runs[0].is_dir():
        return runs[0] / name
    parents = {path.parent for path in runs}
    is_one = len(parents) == 1 and all(path.is_dir() for path in runs)
    if is_one and Path() not in parents:
        return parents.pop() / name
    return results_folder() / name


Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completion(names: Callable[[], Iterable[str]]) -> Completion:
    """Make a ``shell_complete`` of an option or argument from the names that it takes."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in sorted({*names()}) if name.startswith(incomplete)]

    return complete


def _model_names() -> Iterable[str]:
    from ..engine import all_models  # late, as most commands complete nothing

    return all_models()


def _dataset_names() -> Iterable[str]:
    from ..benchmarks import all_datasets

    return all_datasets()


complete_models = completion(_model_names)
complete_datasets = completion(_dataset_names)

runs_argument = click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=PATH)
"""Scored prediction files, or folders of them."""


def _runs_or_results(
    _: click.Context, __: click.Parameter, runs: tuple[Path, ...]
) -> tuple[Path, ...]:
    """Take the folder that ``run`` writes to, where no run is named."""
    if runs:
        return runs
    folder = results_folder()
    if not folder.is_dir():
        raise ValueError(
            f"name a run: a scored prediction file, or a folder of them; there is no {folder} "
            "here, where runs are without --work-dir. Make some: run_findit.py demo"
        )
    print_note(f"no run is named: all of {folder}")
    return (folder,)


results_argument = click.argument(
    "runs", metavar="[RUN...]", nargs=-1, type=PATH, callback=_runs_or_results
)
"""As :data:`runs_argument`, by default the folder of results: nothing in it is changed."""

json_option = click.option(
    "--json",
    "json_file",
    type=WRITTEN_FILE,
    metavar="FILE",
    help="Also write the results to this file, as JSON; its folder is made.",
)

space_option = option(
    "--space", "SPACE", "Coordinate space: a name, or JSON with bounds. Names: score --help."
)

box_option = click.option(
    "--box",
    type=click.Choice([form.value for form in BoxForm]),
    callback=lambda _, __, value: value and BoxForm(value),
    help="Boxes without names of their numbers: [x1, y1, x2, y2], or [x, y, width, height].",
)

force_option = switch(
    "--force", "Go on despite contradictions to the run's record; the result names them."
)

reviews_option = click.option(
    "--reviews",
    "reviews",
    metavar="FILE",
    multiple=True,
    type=PATH,
    help="Also score with these reviews of labels (`audit --review`), next to the score without "
    "them; again for another file.",
)

figures_option = click.option(
    "--figures",
    "figures_file",
    metavar="FILE",
    type=PATH,
    help="Published figures of yours, before those known here: `figures --template` writes a file.",
)

data_name_option = click.option(
    "--data",
    "dataset",
    metavar="NAME",
    shell_complete=complete_datasets,
    help="The dataset, of a file whose name does not end in it.",
)


# --- plug-ins -------------------------------------------------------------------------------------


def _use_plugins(_: click.Context, __: click.Parameter, paths: tuple[Path, ...]) -> None:
    """Make the rows of files known, here and in the processes that are started.

    Raises:
        PluginError: a file that a flag or the variable names does not exist, or cannot be used.
    """
    from ..core import FILES_VARIABLE, PluginError, named_files, reported, unreported

    before = named_files()
    if not paths and not before:
        return
    from ..scoring import plugin_tables

    named = {str(path.resolve()): f"{PLUGIN} {path}" for path in paths}
    for file in before:
        named.setdefault(file, f"{FILES_VARIABLE}: {file}")
    for file, where in named.items():
        if not Path(file).is_file():
            raise PluginError(f"{where}: the file {not_there(Path(file))}")
        if os.pathsep in file:
            raise PluginError(f"{where}: its path contains {os.pathsep!r}: move the file")
    os.environ[FILES_VARIABLE] = os.pathsep.join(dict.fromkeys([*before, *named]))
    with unreported():
        for table in plugin_tables().values():
            table.added()
    if broken := [str(row) for row in reported() if row.plugin.origin in named]:
        raise PluginError("\n".join(broken))
