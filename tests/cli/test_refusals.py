"""What commands refuse, in a file to read side by side: ``golden/refusals.txt``.

To add a refusal, add its line ``$ …`` there.  Then, and after every change of messages, write the
answers again with ``FINDIT_WRITE_GOLDEN=1 python -m pytest tests/cli/test_refusals.py``.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT
from refusal_files import make_folder

from vlmeval_findit.cli import main
from vlmeval_findit.core import plugin_rows, vlmevalkit
from vlmeval_findit.models import MODELS

sys.path.append(str(ROOT / "docs"))
from messages import REFUSALS, whole


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder of files to refuse, in which a VLMEvalKit is that must not be imported."""
    pytest.importorskip("transformers")
    made = tmp_path_factory.mktemp("refusals")
    package = made / "site" / "vlmeval"
    find_spec = importlib.util.find_spec
    spec = importlib.util.spec_from_file_location(
        "vlmeval", package / "__init__.py", submodule_search_locations=[str(package)]
    )

    def find(name: str, *rest: Any) -> Any:
        return spec if name == "vlmeval" else find_spec(name, *rest)

    with pytest.MonkeyPatch.context() as patch:
        make_folder(made, patch)
        patch.setattr(importlib.util, "find_spec", find)
        _forget_vlmevalkit()
        yield made
    _forget_vlmevalkit()


def _forget_vlmevalkit() -> None:
    vlmevalkit.host_version.cache_clear()
    vlmevalkit._text.cache_clear()


@pytest.fixture
def environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the environment of every line: commands set variables of their process."""
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    (folder / "lmu").mkdir(exist_ok=True)
    monkeypatch.setenv("LMUData", str(folder / "lmu"))
    monkeypatch.setenv("FINDIT_TABLES", str(folder))
    monkeypatch.setenv("FINDIT_IMAGES", f"Pascal={folder / 'pictures'}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.chdir(folder)
    return dict(os.environ)


def answered(line: str, environment: dict[str, str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run what was typed; return what was printed, and the exit status."""
    words = shlex.split(whole(line))
    os.environ.clear()
    os.environ.update(environment)
    while "=" in words[0] and not words[0].startswith("-"):
        name, _, value = words.pop(0).partition("=")
        os.environ[name] = value
    try:
        status = main(words)
    finally:
        os.environ.clear()
        os.environ.update(environment)
        plugin_rows.forget()
    printed = capsys.readouterr()
    # An empty line ends an entry of the file.
    text = re.sub(r"\n{2,}", "\n", printed.err.strip() or printed.out.strip())
    signs = {
        str(Path.cwd()): "DIR",
        str(ROOT): "CLONE",
        environment["LMUData"]: "LMUData",
        ", ".join(MODELS): "MODELS",  # A new model changes no line of the file
    }
    for long, sign in signs.items():
        text = text.replace(long, sign)
    text = re.sub(r"(models with a name there are ).*?(\. Type)", r"\1MODELS\2", text)
    return f"{text}\n[{status}]"


def test_what_commands_refuse_is_what_the_file_says(
    environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    entries = REFUSALS.read_text(encoding="utf-8").split("\n\n")
    actual = []
    for entry in entries:
        line = entry.partition("\n")[0]
        if line.startswith("$ "):
            actual.append(f"{line}\n{answered(line[2:], environment, capsys)}")
        else:
            actual.append(entry)
    if os.environ.get("FINDIT_WRITE_GOLDEN") == "1":
        REFUSALS.write_text("\n\n".join(actual) + "\n", encoding="utf-8")
        return
    for written_now, expected in zip(actual, entries, strict=True):
        assert written_now.strip() == expected.strip()
