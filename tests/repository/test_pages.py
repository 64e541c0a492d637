"""Pages of the documentation: every command on them is run, or at least parsed.

``sh`` blocks of a page run in order in a copy of the clone, without a network; the ``text`` block
below one is what it prints.  ``sh parsed`` blocks need a network, a GPU, a key or a large model:
their commands are given to the real parser, their datasets and models to the real tables.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from fresh_copy import FreshCopy
from fresh_venvs import CLONE, copy_of_the_clone
from host_runs import require_host
from pages import PAGES, blocks, commands
from warm_process import WarmProcess

from vlmeval_findit.benchmarks import parse, resembles_dataset_name
from vlmeval_findit.cli import ROOT as FINDIT
from vlmeval_findit.engine import all_models
from vlmeval_findit.models import find_model
from vlmeval_findit.reproduction import CAUSES

NOT_TYPED = "pip install"  # What only the test of a fresh environment can run
STARTED = "docs/how-to/run.md"
"""The page whose programs are started, as a user starts them; those of other pages are forked."""
FEWER = {
    "docs/how-to/train.md": {
        "300": "3",
        "150": "3",
        "50": "3",
        "max_steps=60": "max_steps=1",
        "save_steps=20": "save_steps=1",
        "Rewarded-step-60": "Rewarded-step-1",
        "--limit 120": "--limit 20",
        "--limit 60": "--limit 4",
    },
    "docs/how-to/why-numbers-differ.md": {"--limit 20": "--limit 5"},
}
"""Steps of a training and rows of runs: that lines run is tested, not what the models learn."""
RUN = [page for page, path in PAGES.items() if any(block.info == "sh" for block in blocks(path))]
RUN.sort(key=lambda page: page not in FEWER)  # The longest first: see ``conftest.py``.


def _context(arguments: list[str]) -> click.Context:
    """Parse a command line, without running it."""
    command: click.Command = FINDIT
    rest = arguments if not arguments[0].startswith("-") else ["run", *arguments]
    context = command.make_context("findit", list(rest))
    while isinstance(command, click.Group):
        words = [*context._protected_args, *context.args]
        name, actual, rest = command.resolve_command(context, words)
        assert actual is not None
        command = actual
        context = command.make_context(name, rest, parent=context)
    return context


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_parsed(page: str) -> None:
    for block in blocks(PAGES[page]):
        if not block.info.startswith("sh"):
            continue
        for arguments in commands(block.text):
            values = _context(arguments).params
            for name in values.get("data") or ():
                if resembles_dataset_name(name) and "MyData" not in name:
                    parse(name)
            models = values.get("model") or ()
            for name in (models,) if isinstance(models, str) else models:
                assert "=" in name or find_model(name) or name in all_models(), name


@dataclass(frozen=True)
class Desk:
    """Where a page's lines are typed: a folder whose content is new for each page."""

    folder: Path
    env: Mapping[str, str]
    programs: Path
    """Folder of the programs that fork."""
    clone: FreshCopy

    def lay_out(self) -> Path:
        """Make home and clone as new; returns the clone."""
        for each in self.folder.iterdir():
            if each != self.clone.folder:
                shutil.rmtree(each)
        (self.folder / "home" / "LMUData").mkdir(parents=True)
        self.clone.put_back()
        return self.clone.folder

    def typed(self, lines: str, forked: bool = True) -> subprocess.CompletedProcess[str]:
        """Run lines in the clone, in bash until one fails."""
        own = [str(self.programs)] if forked else []
        path = os.pathsep.join([*own, str(Path(sys.executable).parent), self.env["PATH"]])
        return subprocess.run(
            ["bash", "-ec", lines],
            cwd=self.clone.folder,
            env={**self.env, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1800,
            check=False,
        )


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Return a desk; ``findit`` and ``python SCRIPT.py`` are forked from a warm process."""
    require_host()
    folder = tmp_path_factory.mktemp("desk")
    custom = ("FINDIT_", "LMUData", "PRED_FORMAT")
    env = {name: value for name, value in os.environ.items() if not name.startswith(custom)}
    env |= {"HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}
    env["PYTHONPATH"] = str(folder / CLONE)
    kept = copy_of_the_clone(tmp_path_factory.mktemp("kept"), compiled=True)
    # Every Python imports the package's start-up hook: the warm process finds the copy's.
    copy = FreshCopy(kept, folder / CLONE)
    desk = Desk(folder, env, tmp_path_factory.mktemp("bin"), copy)
    with closing(WarmProcess(env)) as warm:
        warm.programs(desk.programs)
        yield desk


def _as_tested(page: str, lines: str) -> str:
    """Return lines of a page, with fewer steps and rows."""
    for stated, fewer in FEWER.get(page, {}).items():
        lines = re.sub(rf"(?<!\d){stated}(?!\d)", fewer, lines)
    return lines


@pytest.mark.slow
@pytest.mark.host
@pytest.mark.parametrize("page", RUN)
def test_commands_run(page: str, desk: Desk) -> None:
    desk.lay_out()
    for block in blocks(PAGES[page]):
        if block.info != "sh" or NOT_TYPED in block.text:
            continue
        done = desk.typed(_as_tested(page, block.text), forked=page != STARTED)
        assert done.returncode == 0, f"{block.text}\n{done.stdout}"
        printed = iter(line.rstrip() for line in done.stdout.splitlines())
        for line in block.shown:
            assert line in printed, f"{block.text}\n{line!r} is not in\n{done.stdout}"


TELLS = """
import atexit, sys
def _tell():
    modules = (module for name, module in sys.modules.items() if name.startswith("vlmeval_findit"))
    print("imported:", *{module.__file__ for module in modules}, sep="\\n")
atexit.register(_tell)
"""


@pytest.mark.slow
@pytest.mark.host
@pytest.mark.parametrize("program", ["findit", "python run_findit.py"])
@pytest.mark.parametrize("forked", [True, False])
def test_a_page_runs_the_code_of_its_clone(program: str, forked: bool, desk: Desk) -> None:
    """Not that of this clone, nor of the page before."""
    for page in ("first", "second"):
        door = desk.lay_out() / "vlmeval_findit" / "cli" / "__init__.py"
        door.write_text(f"{door.read_text()}\n{TELLS}\nprint('{page} page')\n")
        done = desk.typed(f"{program} models Qwen2.5-VL", forked)
        assert done.returncode == 0, done.stdout
        assert f"{page} page\n" in done.stdout
        files = done.stdout.partition("imported:\n")[2].splitlines()
        assert str(door) in files
        clone = desk.clone.folder
        assert [each for each in files if not Path(each).is_relative_to(clone)] == []


def test_every_cause_is_on_the_page_of_reproductions() -> None:
    """In the order in which causes are looked for."""
    text = PAGES["docs/how-to/reproduce.md"].read_text(encoding="utf-8")
    table = text.split("| cause | what is looked at |")[1].split("\n\n")[0]
    _, *rows = filter(None, table.splitlines())
    names = ", ".join(row.split("|")[1].strip() for row in rows)
    assert names == ", ".join(CAUSES)
