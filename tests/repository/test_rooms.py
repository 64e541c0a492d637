"""The rooms of the package, and what each may import: only rooms that come before it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

from paths import ROOT
from syntax_trees import nodes_of, tree_of

from vlmeval_findit.scoring import recorded_scorer

PACKAGE = ROOT / "vlmeval_findit"

# In the order in which they build on each other, with what each is for
ROOMS = {
    "core": "What every room needs: texts, files, configuration, secrets, plug-ins.",
    "protocol": "What a benchmark is: variants, queries, messages, metrics, replies, their costs.",
    "statistics": "Influences, intervals and tests: arrays in, numbers out.",
    "storage": "What lies on disk: tables, images, prediction files, identities, locks.",
    "boxes": "Boxes: representations, reading, writing, coordinate spaces, matching.",
    "marks": "Visual marks drawn on images.",
    "serving": "Starts model servers on this machine.",
    "models": "Who answers: a row a model, on this machine or over HTTP.",
    "benchmarks": "A folder a benchmark; the prefix of a dataset's name says which.",
    "coords": "In which coordinates a deployment really answers.",
    "data": "Downloads, custom datasets, the demonstration, rendered scenes.",
    "scoring": "The way from a prediction file to its score.",
    "analysis": "What scored runs say: errors, calibration, samples, the best format.",
    "engine": "Who answers calls and when, the journal, the files of a cell.",
    "sweeps": "Models x tables x formats: settings, stages, races, dry runs.",
    "reproduction": "Whether a setup gives the published number, and if not, why.",
    "leaderboard": "Models x datasets, of runs that can be compared.",
    "report": "A page with plots and every answer on its image.",
    "api": "The public Python API.",
    "export": "Runs for the hub, trackers, FiftyOne and COCO.",
    "host": "The only room that touches VLMEvalKit.",
    "cli": "The command line.",
}
ORDER = tuple(ROOMS)

# Modules that lie in no room, and what they may import
COMMANDS = {
    # By the names of its modules, and not before somebody asks for one.
    "__init__": ("boxes", "benchmarks", "api"),
    "__main__": ("cli",),
    "_autoload": ("host",),
}


def rooms_of(path: Path) -> Iterator[str]:
    """Yield the rooms that a module of the package imports, at its top or later, for types too."""
    package = ".".join((PACKAGE.name, *path.parts[:-1]))
    for node in nodes_of(PACKAGE / path):
        match node:
            case ast.ImportFrom():
                base = resolve_name("." * node.level + (node.module or ""), package)
                names = [f"{base}.{alias.name}" for alias in node.names]
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.Constant(value=str(value)):
                names = [value]  # perhaps of a module that is imported by its name
            case _:
                continue
        for first, room, *_ in (f"{name}..".split(".") for name in names):
            if first == PACKAGE.name and room in ROOMS:
                yield room


def test_rooms_import_earlier_rooms_only() -> None:
    climbing: dict[tuple[str, str], set[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        path = file.relative_to(PACKAGE)
        room = path.parts[0] if len(path.parts) > 1 else path.stem
        may = ORDER[: ORDER.index(room) + 1] if room in ROOMS else COMMANDS[room]
        for other in rooms_of(path):
            if other not in may:
                climbing.setdefault((room, other), set()).add(path.as_posix())
    assert not climbing


def modules_of(path: Path) -> Iterator[Path]:
    """Yield the modules of its own room that a module imports, at its top or later, for types too.

    So does a name that another function imports, as of a module that is loaded late.
    """
    package = ".".join((PACKAGE.name, *path.parts[:-1]))
    for node in nodes_of(PACKAGE / path):
        match node:
            case ast.ImportFrom():
                base = resolve_name("." * node.level + (node.module or ""), package)
                names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
            case ast.Constant(value=str(value)) if re.fullmatch(r"\.+\w[\w.]*", value):
                names = [resolve_name(value, package)]
            case _:
                continue
        for name in names:
            _, *parts = name.split(".")
            module = Path(*parts).with_suffix(".py") if parts else path
            if module.parts[:1] == path.parts[:1] and (PACKAGE / module).is_file():
                yield module


def test_no_module_of_a_room_imports_in_a_circle() -> None:
    """Two modules that need each other are one, or their common part is a third."""
    files = (file.relative_to(PACKAGE) for file in PACKAGE.rglob("*/*.py"))
    imported = {file: {*modules_of(file)} - {file} for file in files}
    TopologicalSorter(imported).prepare()  # a CycleError names the modules


def test_every_room_says_what_it_is_for() -> None:
    """In its docstring, in the package's table and in the page of the structure."""
    package = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    page = (ROOT / "docs/design/structure.md").read_text(encoding="utf-8")
    for room, purpose in ROOMS.items():
        module = tree_of(PACKAGE / room / "__init__.py")
        docstring = ast.get_docstring(module) or ""
        assert docstring.startswith(purpose), room
        assert f"``{room}``" in package
        assert f"| `{room}/` |" in page


def test_a_scorer_is_all_that_scoring_may_import() -> None:
    assert recorded_scorer.ROOMS == ORDER[: ORDER.index("scoring") + 1]


def test_every_folder_is_a_room() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == set(ROOMS)
    assert {path.stem for path in PACKAGE.glob("*.py")} == set(COMMANDS)


def test_the_engine_loads_no_benchmark_and_nothing_heavy() -> None:
    """Whatever is asked, it is answered alike; a sweep that is refused has waited for nothing."""
    folder = PACKAGE / "engine"
    paths = [path.relative_to(folder).with_suffix("") for path in folder.rglob("*.py")]
    modules = ["vlmeval_findit.engine." + ".".join(path.parts) for path in paths]
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    actual = set(done.stdout.split())
    assert {"vlmeval_findit.engine.retry_scheduler", "vlmeval_findit.scoring.row_scoring"} <= actual
    assert not {"torch", "transformers", "vlmeval", "ray", "aiohttp.web", "sklearn"} & actual
    rooms = ORDER[ORDER.index("sweeps") :]
    assert not {f"vlmeval_findit.{room}" for room in rooms} & actual
    # A benchmark's package says its prefix; its modules are what it is, and only the coordinate
    # check, which looks at every score, must know one of them: FindIt's questions.
    of_benchmarks = {item.split(".", 2)[2] for item in actual if "findit.benchmarks." in item}
    modules_of = {item for item in of_benchmarks if "." in item}
    assert modules_of <= {"findit.variant", "findit.findit_datasets"}


def test_commands_over_scores_load_no_event_loop() -> None:
    """They ask nobody: asyncio and ssl would be 3 MiB and 30 ms of each."""
    commands = "leaderboard, compare, errors, export"
    code = f"import sys; from vlmeval_findit.cli import {commands}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"asyncio", "ssl", "aiohttp"} & set(done.stdout.split())
