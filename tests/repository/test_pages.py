"""Pages of the documentation: every command on them is run, or at least parsed.

``sh`` blocks of a page run in order in a copy of the clone, without a network; the ``text`` block
below one is what it prints.  ``sh parsed`` blocks need a network, a GPU, a key or a large model:
their commands are given to the real parser, their datasets and models to the real tables.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from fresh_venvs import copy_of_the_clone
from host_runs import require_host
from pages import PAGES, blocks, commands

from vlmeval_findit.benchmarks import parse, resembles_dataset_name
from vlmeval_findit.cli import ROOT as FINDIT
from vlmeval_findit.engine import all_models
from vlmeval_findit.models import find_model
from vlmeval_findit.reproduction import CAUSES

RUN = [page for page, path in PAGES.items() if any(block.info == "sh" for block in blocks(path))]
NOT_TYPED = "pip install"  # What only the test of a fresh environment can run


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


@pytest.mark.slow
@pytest.mark.host
@pytest.mark.parametrize("page", RUN)
def test_commands_run(page: str, tmp_path: Path) -> None:
    require_host()
    clone = copy_of_the_clone(tmp_path)
    (tmp_path / "home" / "LMUData").mkdir(parents=True)
    custom = ("FINDIT_", "LMUData", "PRED_FORMAT")
    env = {name: value for name, value in os.environ.items() if not name.startswith(custom)}
    env |= {"HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(clone)}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    for block in blocks(PAGES[page]):
        if block.info != "sh" or NOT_TYPED in block.text:
            continue
        done = subprocess.run(
            ["bash", "-ec", block.text],
            cwd=clone,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1800,
            check=False,
        )
        assert done.returncode == 0, f"{block.text}\n{done.stdout}"
        printed = iter(line.rstrip() for line in done.stdout.splitlines())
        for line in block.shown:
            assert line in printed, f"{block.text}\n{line!r} is not in\n{done.stdout}"


def test_every_cause_is_on_the_page_of_reproductions() -> None:
    """In the order in which causes are looked for."""
    text = PAGES["docs/how-to/reproduce.md"].read_text(encoding="utf-8")
    table = text.split("| cause | what is looked at |")[1].split("\n\n")[0]
    _, *rows = filter(None, table.splitlines())
    names = ", ".join(row.split("|")[1].strip() for row in rows)
    assert names == ", ".join(CAUSES)
