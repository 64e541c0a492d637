"""What is wrong with the last of three models or datasets is refused before the first is paid."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from few_fast import every_nth_fast
from wrong_models import WRONG, Wrong, folder

from vlmeval_findit.cli import main

DATA = "FindIt_Demo_xyxy_json"

__all__ = ["folder"]
# Keys that a model of a file has itself; all else is of its settings
KEYS = frozenset(
    {"base_url", "provider", "like", "system", "prompt_template", "headers", "space"}
    | {"temperature", "dtype", "device", "batch_size"}
)
IN_FILES = [name for name, wrong in WRONG.items() if wrong.arguments != {"key": "k"}]


def entry_of(wrong: Wrong) -> dict[str, Any]:
    """Return the entry of a file that says what a model is asked as."""
    name, _, checkpoint = wrong.model.partition("=")
    stated = {key: value for key, value in wrong.arguments.items() if key in KEYS}
    settings = {key: wrong.arguments[key] for key in wrong.arguments.keys() - KEYS - {"key"}}
    more = {"settings": settings} if settings else {}
    if name in ("Mine", "FindIt-Nanno"):  # whom no table knows, the file must say the space of
        stated.setdefault("space", "unit")
    return {"name": name, **({"checkpoint": checkpoint} if checkpoint else {}), **stated, **more}


def sweep_of(models: list[Any], datasets: list[str], server: ChatServer) -> list[str]:
    text = json.dumps({"models": models, "datasets": datasets, "limit": 1, "work_dir": "out"})
    Path("sweep.yaml").write_text(text.replace("SERVER", server.url))
    return ["sweep", "sweep.yaml"]


GOOD = [{"name": "A", "base_url": "SERVER", "space": "unit"}, "FullImage"]


@pytest.mark.parametrize("what", every_nth_fast(IN_FILES, 3))
@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_the_last_model_of_a_sweep(
    what: str,
    dry: list[str],
    server: ChatServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = WRONG[what]
    if "key" in wrong.arguments:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
    if dry and what in ("no key", "a GPU"):  # a dry run needs neither keys nor devices
        return
    asked = len(server.asked)
    assert main([*sweep_of([*GOOD, entry_of(wrong)], [DATA], server), *dry]) == 2
    assert "sweep.yaml" in capsys.readouterr().err
    assert len(server.asked) == asked
    assert not list(Path("out").rglob("*.jsonl"))


# --- datasets -------------------------------------------------------------------------------------

WRONG_DATA: Mapping[str, tuple[str, str]] = {
    "a name": ("FindIt_Demo_xyxy_jsn", "did you mean json?"),
    "a table": ("FindIt_Nowhere_xyxy_json", "Nowhere"),
    "a table that is not here": ("FindIt_Pascal_xyxy_json", "Pascal"),
    "nobody's": ("MMStarr", "MMStar"),
}


@pytest.mark.parametrize("what", WRONG_DATA)
@pytest.mark.parametrize("command", ["run", "run --samples", "sweep"])
def test_the_last_dataset(
    what: str, command: str, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    name, words = WRONG_DATA[what]
    data = [DATA, "FindIt_Demo_xywh_json", name]
    line = sweep_of(GOOD[:1], data, server)
    if command != "sweep":
        model = ["--model", "A", "--base-url", server.url, "--space", "unit", "--limit", "1"]
        samples = ["--samples", "2", "--temperature", "1"] if "samples" in command else []
        line = ["run", "--data", *data, *model, *samples, "--work-dir", "out"]
    asked = len(server.asked)
    assert main(line) == 2
    assert words in capsys.readouterr().err
    assert len(server.asked) == asked
    assert not list(Path("out").rglob("*.jsonl"))
