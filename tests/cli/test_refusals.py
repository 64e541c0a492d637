"""What commands refuse, in files to read side by side: ``golden/refusals/<command>.txt``.

To add a refusal, add its line ``$ …`` to its command's file, and ``[2]`` below it.  Then, and after
every change of messages, write the answers again with
``FINDIT_WRITE_GOLDEN=1 python -m pytest -n 0 tests/cli/test_refusals.py``.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fresh_copy import FreshCopy
from messages import Refusal, refusal_files, refusals
from paths import ROOT
from refusal_files import make_folder

from vlmeval_findit.cli import main
from vlmeval_findit.core import plugin_rows, vlmevalkit
from vlmeval_findit.models import MODELS


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


@pytest.fixture(scope="module")
def copy(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> FreshCopy:
    """Return where lines are typed."""
    # Images of rendered sets are drawn once.
    (folder / "lmu").mkdir(exist_ok=True)
    return FreshCopy(folder, tmp_path_factory.mktemp("typed") / "here", shared=["lmu"])


@pytest.fixture
def environment(copy: FreshCopy, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the environment of a line; what its command writes, no other sees."""
    copy.put_back()
    here = copy.folder
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LMUData", str(here / "lmu"))
    monkeypatch.setenv("FINDIT_TABLES", str(here))
    monkeypatch.setenv("FINDIT_IMAGES", f"Pascal={here / 'pictures'}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.chdir(here)
    return dict(os.environ)


def answered(typed: str, environment: dict[str, str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run what was typed; return what was printed, and the exit status."""
    words = shlex.split(typed)
    os.environ.clear()
    os.environ.update(environment)
    while "=" in words[0] and not words[0].startswith("-"):
        name, _, value = words.pop(0).partition("=")
        os.environ[name] = value
    try:
        status = main(words)
    finally:
        if plugin_rows.FILES_VARIABLE in os.environ:
            plugin_rows.forget()
        os.environ.clear()
        os.environ.update(environment)
    printed = capsys.readouterr()
    # An empty line ends an entry of a file.
    text = re.sub(r"\n{2,}", "\n", printed.err.strip() or printed.out.strip())
    signs = {
        str(Path.cwd()): "DIR",
        str(ROOT): "CLONE",
        environment["LMUData"]: "LMUData",
        ", ".join(MODELS): "MODELS",  # A new model changes no answer
    }
    for long, sign in signs.items():
        text = text.replace(long, sign)
    text = re.sub(r"(models with a name there are ).*?(\. Type)", r"\1MODELS\2", text)
    return f"{text}\n[{status}]"


REFUSED = [
    pytest.param(path, refusal, id=f"{path.stem}: {refusal.line}")
    for path in refusal_files().values()
    if path.exists()
    for refusal in refusals(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("path", "refusal"), REFUSED)
def test_what_a_command_refuses_is_what_its_file_says(
    path: Path,
    refusal: Refusal,
    environment: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    actual = answered(refusal.typed, environment, capsys)
    expected = f"{refusal.printed}\n[{refusal.status}]"
    if os.environ.get("FINDIT_WRITE_GOLDEN") == "1":
        entry = f"$ {refusal.line}\n"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(f"{entry}{expected}", f"{entry}{actual}"), encoding="utf-8")
        return
    assert actual == expected
