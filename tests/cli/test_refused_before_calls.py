"""What is wrong with a later model, dataset or stage is refused before the first call."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chat_server import Answer, Asked, ChatServer, completion
from few_fast import every_nth_fast
from jsonl_data import write_lines
from PIL import Image

from vlmeval_findit.cli import main
from vlmeval_findit.engine import Journal, JournalView, encode_record
from vlmeval_findit.protocol import FORCE_VARIABLE, LOGPROBS_VARIABLE

DATA = ("FindIt_Demo_xyxy_json", "FindIt_Demo_xywh_json")
SECOND = DATA[1]


@pytest.fixture(autouse=True)
def _no_settings_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Flags become variables of the process; here they end with their test."""
    for name in (FORCE_VARIABLE, LOGPROBS_VARIABLE, "FINDIT_SKIP_MISSING"):
        monkeypatch.setenv(name, "")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def running() -> Iterator[ChatServer]:
    def answer(asked: Asked, number: int) -> Answer:
        return completion('[{"bbox": [0, 0, 1000, 1000]}]')

    with ChatServer(answer) as started:
        yield started


@pytest.fixture
def server(running: ChatServer) -> ChatServer:
    """Return the server, which nobody has asked yet."""
    running.asked.clear()
    return running


# --- commands, each with a second model, dataset or stage -----------------------------------------


def run_line(url: str) -> list[str]:
    asks = ["run", "--data", *DATA, "--model", "A", "B", "--base-url", url]
    return [*asks, "--space", "grid1000", "--limit", "2", "--work-dir", "out"]


def sweep_line(url: str) -> list[str]:
    models = [f"{{name: {name}, base_url: '{url}', space: grid1000}}" for name in "AB"]
    text = f"models: [{', '.join(models)}]\ndatasets: [{', '.join(DATA)}]\nlimit: 2\nwork_dir: out"
    Path("sweep.yaml").write_text(text, encoding="utf-8")
    return ["sweep", "sweep.yaml"]


def search_line(url: str) -> list[str]:
    asks = ["search", "--model", "B", "--base-url", url, "--space", "grid1000", "--data", "Demo"]
    return [*asks, "--limit", "2", "--work-dir", "out"]


# --- what is wrong with the last cell, once all was asked; nothing else is left -------------------


def of_another_space(stem: str) -> None:
    (path,) = Path("out").rglob(f"{stem}_identity.json")
    values = json.loads(path.read_text(encoding="utf-8"))
    values["space"] = {"kind": "unit"}
    path.write_text(json.dumps(values), encoding="utf-8")


def of_another_server(stem: str) -> None:
    """Let its answers be those of another server, as only the journal says."""
    for journal in Path("out").rglob("*calls.jsonl"):
        with JournalView(journal) as view:
            records = [*view.records()]
        for record in records:
            record["made_by"]["endpoint"] = "http://elsewhere/v1"
        journal.write_bytes(b"".join(map(encode_record, records)))
    _keep_journals()


def of_no_journal(stem: str) -> None:
    """Let its replies be in no journal, and in no recorded run."""
    (path,) = Path("out").rglob(f"{stem}.json")
    rows = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps([{**row, "prediction": "[1]"} for row in rows]), encoding="utf-8")
    for other in path.parent.iterdir():
        if other != path:
            other.unlink()


def with_a_diary(stem: str) -> None:
    """Let another file have the name of its journal."""
    (path,) = Path("out").rglob(f"{stem}.json")
    is_single = path.with_name(f"{stem}_calls.jsonl").exists()
    journal = path.with_name(f"{stem}_calls.jsonl") if is_single else Path("out", "calls.jsonl")
    journal.write_text("Dear diary\n" * 20, encoding="utf-8")


def without_a_folder(stem: str) -> None:
    """Let a file have the name of its folder."""
    shutil.rmtree(Path("out", "B"))
    Path("out", "B").write_text("", encoding="utf-8")


def on_its_way(stem: str) -> None:
    """Let its calls be pending in a batch."""
    for path in Path("out").rglob("*calls.jsonl"):
        with JournalView(path) as view:
            keys = [record["key"] for record in view.records()]
        path.unlink()
        with Journal(path) as journal:
            options = {"kind": "openai", "server": "http://a/v1", "model": "B", "logprobs": False}
            journal.note({"batch": "one", **options, "at": 0.0, "keys": keys})
    _keep_journals()


def _keep_journals() -> None:
    for path in [*Path("out").rglob("*")]:
        if path.is_file() and not path.name.endswith("calls.jsonl"):
            path.unlink()


def _forget_others(stem: str) -> None:
    """Remove what is known of all cells but one."""
    journal = Path("out", "calls.jsonl")
    if journal.exists():
        with JournalView(journal) as view:
            records = [
                each for each in view.records() if stem == f"{each['model']}_{each['dataset']}"
            ]
        journal.write_bytes(b"".join(map(encode_record, records)))
    for path in [*Path("out").rglob("*_*")]:
        if not path.name.startswith((f"{stem}.", f"{stem}_")):
            path.unlink()


LINES = {"run": run_line, "sweep": sweep_line, "search": search_line}
LAST = {"run": SECOND, "sweep": SECOND, "search": "FindIt_Demo_xyxy_json_coordinates"}
FAULTS = (
    of_another_space,
    of_another_server,
    of_no_journal,
    with_a_diary,
    on_its_way,
    without_a_folder,
)


@pytest.fixture(scope="module", params=LINES)
def asked(
    request: pytest.FixtureRequest, running: ChatServer, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """Return a command, and a folder in which it has asked all."""
    command = request.param
    folder = tmp_path_factory.mktemp(command)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(LINES[command](running.url)) == 0
    return command, folder


def test_without_a_fault_a_copy_goes_on(asked: tuple[str, Path], server: ChatServer) -> None:
    command, folder = asked
    shutil.copytree(folder, Path.cwd(), dirs_exist_ok=True)
    assert main(LINES[command](server.url)) == 0
    assert server.asked == []


@pytest.mark.parametrize("fault", every_nth_fast(FAULTS, 2), ids=lambda fault: fault.__name__)
def test_the_last_cell_is_looked_at_before_the_first_call(
    asked: tuple[str, Path], fault: Callable[[str], None], server: ChatServer
) -> None:
    command, folder = asked
    shutil.copytree(folder, Path.cwd(), dirs_exist_ok=True)
    line = LINES[command](server.url)
    stem = f"B_{LAST[command]}"
    _forget_others(stem)
    fault(stem)
    assert main(line) == 2
    assert server.asked == []


# --- what is wrong with the second model or dataset as it is named --------------------------------

GONE = "FindIt_Gone_xyxy_json"
"""A dataset of the user's, one of whose images is gone."""

SECOND_MODELS = {
    "no checkpoint": "checkpoint: /nowhere, like: Qwen3-VL-8B",
    "no model": "like: Nobody",
    "no provider": "provider: nobody",
    "no key": "provider: openai",
    "no address": "base_url: nowhere",
    "an unknown proxy": "base_url: 'http://elsewhere.invalid/v1'",
    "no space": "base_url: 'URL', space: diagonal",
    "a header of two lines": 'base_url: "URL", headers: {X: "a\\nb"}',
    "prices that are none": "base_url: 'URL', prices: [1]",
    "a field that is ours": "base_url: 'URL', settings: {messages: []}",
    "a device": "base_url: 'URL', resources: {device: cuda}",
}

SECOND_DATASETS = {
    "unknown": "FindIt_Nowhere_xyxy_json",
    "in no format": "FindIt_Demo_xyxz_json",
    "without a table": "FindIt_RefCOCO_xyxy_json",
    "without an image": GONE,
}


@pytest.fixture
def gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lmu").mkdir()
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    images = tmp_path / "pictures"
    images.mkdir()
    for name in ("a", "b"):
        Image.new("RGB", (60, 40), "red" if name == "a" else "blue").save(images / f"{name}.png")
    lines = [
        {"image": f"{name}.png", "expression": "it", "boxes": [[5, 6, 25, 26]]} for name in "ab"
    ]
    table = write_lines(tmp_path / "gone.jsonl", lines)
    line = ["data", "import", str(table), "--image-root", str(images), "--name", "Gone"]
    assert main(line) == 0
    (images / "b.png").unlink()


@pytest.mark.usefixtures("gone")
@pytest.mark.parametrize("command", [run_line, sweep_line])
@pytest.mark.parametrize("second", SECOND_DATASETS)
def test_the_second_dataset_is_looked_at_before_calls(
    command: Callable[[str], list[str]], second: str, server: ChatServer
) -> None:
    line = command(server.url)
    wrong = SECOND_DATASETS[second]
    line = [wrong if word == DATA[1] else word for word in line]
    sweep = Path("sweep.yaml")
    if sweep.exists():
        sweep.write_text(sweep.read_text(encoding="utf-8").replace(DATA[1], wrong))
    assert main(line) == 2
    assert server.asked == []


@pytest.mark.parametrize("second", SECOND_MODELS)
def test_the_second_model_is_looked_at_before_calls(
    second: str, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("http_proxy", "odd://proxy.invalid")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    line = sweep_line(server.url)
    keys = SECOND_MODELS[second].replace("URL", server.url)
    sweep = Path("sweep.yaml")
    text = sweep.read_text(encoding="utf-8")
    before = f"{{name: B, base_url: '{server.url}', space: grid1000}}"
    assert before in text
    space = "" if "space" in keys or "like" in keys else ", space: grid1000"
    sweep.write_text(text.replace(before, f"{{name: B, {keys}{space}}}"), encoding="utf-8")
    assert main(line) == 2
    assert server.asked == []
