"""VLMEvalKit's own datasets: one folder never has the answers of two models under one name."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas
import pytest
from chat_server import ChatServer, completion
from every_pair import every_pair
from few_fast import few_fast
from host_task import run_task
from PIL import Image

from vlmeval_findit.storage import read_record

pytestmark = pytest.mark.host

DATA = "Colours"  # a table of its user's, which VLMEvalKit asks
ROWS = 3
NAME = "mine"
STEM = f"{NAME}_{DATA}"


@pytest.fixture(autouse=True)
def _table(lmu: Path, asked_by_host: None) -> None:
    write_table(lmu, "Which colour?")


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[ChatServer, ChatServer]]:
    with (
        ChatServer(lambda *_: completion("A")) as one,
        ChatServer(lambda *_: completion("B")) as other,
    ):
        yield one, other


@pytest.fixture
def one(servers: tuple[ChatServer, ChatServer]) -> ChatServer:
    """Return the first server; nobody has asked either yet."""
    for server in servers:
        server.asked.clear()
    return servers[0]


def write_table(lmu: Path, question: str) -> None:
    picture = BytesIO()
    Image.new("RGB", (64, 48), "red").save(picture, "PNG")
    image = base64.b64encode(picture.getvalue()).decode()
    rows = "".join(f"{row}\t{question}\tred\tblue\tA\t{image}\n" for row in range(ROWS))
    (lmu / f"{DATA}.tsv").write_text(f"index\tquestion\tA\tB\tanswer\timage\n{rows}")


def ask(folder: Path, model: Mapping[str, Any]) -> list[str]:
    """Ask by VLMEvalKit's runner with one of our classes; returns what went wrong."""
    config = folder.parent / "config.json"
    data = {DATA: {"class": "CustomMCQDataset", "dataset": DATA}}
    config.write_text(json.dumps({"model": {NAME: model}, "data": data}))
    return run_task(["--config", str(config), "--mode", "infer"], folder)


def at(server: ChatServer, **more: Any) -> dict[str, Any]:
    return {
        "class": "FindItServer",
        "model": NAME,
        "base_url": server.url,
        "like": "Qwen3-VL",
        **more,
    }


def answers(folder: Path) -> list[str]:
    return list(pandas.read_excel(folder / NAME / f"{STEM}.xlsx")["prediction"])


# --- who is another -------------------------------------------------------------------------------

OTHERS: Mapping[str, tuple[Callable[[ChatServer, ChatServer], dict[str, Any]], str]] = {
    "another server": (lambda one, other: at(other), "endpoint: recorded http://"),
    "another name there": (
        lambda one, other: at(one, served="n"),
        "checkpoint: recorded mine, now",
    ),
    "another temperature": (lambda one, other: at(one, temperature=0.5), "setting temperature"),
    "another field": (lambda one, other: at(one, extra_body={"seed": 3}), "setting seed"),
    "another header": (lambda one, other: at(one, headers={"x-team": "a"}), "header x-team"),
    "another class": (
        lambda one, other: {"class": "FindItLocalModel", "like": "FindIt-Nano"},
        "class: recorded chat completions, now FindItLocalModel",
    ),
    "a class of VLMEvalKit's": (
        lambda one, other: {"class": "LMDeployAPI", "model": "m", "api_base": other.url},
        "class: recorded chat completions, now LMDeployAPI",
    ),
}


def finished(folder: Path) -> None: ...


def killed(folder: Path) -> None:
    """Leave what a run of an API leaves that is killed."""
    (folder / f"{STEM}.xlsx").unlink()
    (folder / f"{STEM}_checkpoint.pkl").write_bytes(pickle.dumps({"0": "A"}))


def killed_again(folder: Path) -> None:
    """Leave what a second run leaves that is killed after failed calls of the first."""
    (folder / f"{STEM}.xlsx").unlink()
    (folder / f"{STEM}_PREV.pkl").write_bytes(pickle.dumps({0: "A"}))


def killed_here(folder: Path) -> None:
    """Leave what a run of a model on this machine leaves that is killed."""
    (folder / f"{STEM}.xlsx").unlink()
    (folder / f"01_{DATA}.pkl").write_bytes(pickle.dumps({0: "A"}))


def in_another_format(folder: Path) -> None:
    pandas.read_excel(folder / f"{STEM}.xlsx").to_csv(folder / f"{STEM}.tsv", sep="\t")
    (folder / f"{STEM}.xlsx").unlink()


STATES = (finished, killed, killed_again, killed_here, in_another_format)


@every_pair("other, state", OTHERS, STATES, fast=3)
def test_another_model_is_refused_before_a_call(
    other: str,
    state: Callable[[Path], None],
    servers: tuple[ChatServer, ChatServer],
    one: ChatServer,
    tmp_path: Path,
) -> None:
    assert ask(tmp_path / "out", at(one)) == []
    assert len(one.asked) == ROWS
    state(tmp_path / "out" / NAME)
    model, words = OTHERS[other]
    (problem,) = ask(tmp_path / "out", model(*servers))
    assert "is of another run" in problem
    assert words in problem
    assert "Use another name for the model" in problem
    assert len(one.asked) == ROWS
    assert not servers[1].asked


@pytest.mark.parametrize("state", few_fast(STATES[:4], 2))
def test_the_same_model_goes_on_from_its_answers(
    state: Callable[[Path], None], one: ChatServer, tmp_path: Path
) -> None:
    assert ask(tmp_path / "out", at(one)) == []
    state(tmp_path / "out" / NAME)
    assert ask(tmp_path / "out", at(one, key="sk-other", timeout=5)) == []
    assert answers(tmp_path / "out") == ["A"] * ROWS
    assert len(one.asked) == ROWS + (0 if state is finished else ROWS - 1)


def test_another_table_is_another_run(one: ChatServer, lmu: Path, tmp_path: Path) -> None:
    assert ask(tmp_path / "out", at(one)) == []
    write_table(lmu, "Which shade?")
    (problem,) = ask(tmp_path / "out", at(one))
    assert "SHA-256 of the table: recorded" in problem
    assert len(one.asked) == ROWS


@pytest.mark.parametrize("state", STATES)
def test_answers_of_nobody_known_are_refused(
    state: Callable[[Path], None], one: ChatServer, tmp_path: Path
) -> None:
    stock = {"class": "LMDeployAPI", "model": "m", "api_base": one.url}
    assert ask(tmp_path / "out", stock) == []
    assert not list((tmp_path / "out").rglob("*answered_by*")), "VLMEvalKit alone is left alone"
    asked = len(one.asked)
    state(tmp_path / "out" / NAME)
    (problem,) = ask(tmp_path / "out", at(one))
    assert "has answers, and nothing says whose" in problem
    assert len(one.asked) == asked


def test_force_goes_on_and_is_recorded(
    servers: tuple[ChatServer, ChatServer],
    one: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ask(tmp_path / "out", at(one)) == []
    killed(tmp_path / "out" / NAME)
    monkeypatch.setenv("FINDIT_FORCE", "1")
    assert ask(tmp_path / "out", at(servers[1])) == []
    assert answers(tmp_path / "out") == ["A", "B", "B"]
    record = read_record(tmp_path / "out" / NAME / f"{STEM}_answered_by.json")
    assert record is not None
    assert record.forced[0].startswith("went on: endpoint: recorded http://")


def test_moved_answers_let_another_model_begin(
    servers: tuple[ChatServer, ChatServer], one: ChatServer, tmp_path: Path
) -> None:
    assert ask(tmp_path / "out", at(one)) == []
    (tmp_path / "out" / NAME / f"{STEM}.xlsx").unlink()
    assert ask(tmp_path / "out", at(servers[1])) == []
    assert answers(tmp_path / "out") == ["B"] * ROWS
    (problem,) = ask(tmp_path / "out", at(one))
    assert "is of another run" in problem


# --- files that a kill cut off --------------------------------------------------------------------

CUT = {
    f"{STEM}_checkpoint.pkl": pickle.dumps({str(row): "A" for row in range(ROWS)}),
    f"{STEM}_PREV.pkl": pickle.dumps({0: "A"}),
    f"01_{DATA}.pkl": pickle.dumps({0: "A"}),
    f"{STEM}.xlsx": b"PK\x03\x04 a sheet",
}


@every_pair("name, length", CUT, [0, 1, 8])
def test_a_cut_file_is_moved_aside(
    name: str,
    length: int,
    one: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from vlmeval_findit.host import who_answered

    told: list[str] = []
    monkeypatch.setattr(who_answered.log, "warning", lambda text, *more: told.append(text % more))
    assert ask(tmp_path / "out", at(one)) == []
    folder = tmp_path / "out" / NAME
    (folder / f"{STEM}.xlsx").unlink()
    (folder / name).write_bytes(CUT[name][:length])
    assert ask(tmp_path / "out", at(one)) == []
    assert answers(tmp_path / "out") == ["A"] * ROWS
    assert len(one.asked) == 2 * ROWS
    aside = folder / f"{Path(name).stem}.cut-1{Path(name).suffix}"
    assert aside.read_bytes() == CUT[name][:length]
    (line,) = [line for line in told if "answered by" not in line]
    assert f"{folder / name} cannot be read" in line
    assert f"It is now {aside.name}" in line


@pytest.mark.parametrize("suffix", ["pkl", "xlsx", "tsv", "json"])
def test_a_kill_while_writing_leaves_the_old_file(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends after the file was opened, and before all of it is written."""
    import vlmeval.smp

    class KilledError(BaseException): ...

    class Last:
        def __reduce__(self) -> Any:
            raise KilledError

        def __str__(self) -> str:
            raise KilledError

        __repr__ = __str__

    path = tmp_path / f"a.{suffix}"
    vlmeval.smp.dump(pandas.DataFrame({"index": [0], "prediction": ["A"]}), str(path))
    before = path.read_bytes()
    with pytest.raises(KilledError):
        vlmeval.smp.dump(pandas.DataFrame({"index": [Last()]}), str(path))
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_what_no_sheet_holds_is_pickled(tmp_path: Path) -> None:
    import vlmeval.smp

    vlmeval.smp.dump({"a": {1, 2}}, str(tmp_path / "b.json"))
    assert pickle.loads((tmp_path / "b.pkl").read_bytes()) == {"a": {1, 2}}
    assert [each.name for each in tmp_path.iterdir()] == ["b.pkl"]


def test_finished_answers_need_no_checkpoint(lmu: Path, tmp_path: Path) -> None:
    import vlmeval.inference
    from vlmeval.dataset import build_dataset

    from vlmeval_findit.engine import deployment_of
    from vlmeval_findit.host import VLMEvalKitModel, who_answered
    from vlmeval_findit.models import ModelEntry

    model = "Qwen3-VL-8B"  # Its checkpoint is not here
    files = who_answered.AnswerFiles(tmp_path, model, DATA, f"{model}_{DATA}")
    table = pandas.DataFrame({"index": range(ROWS), "prediction": ["A"] * ROWS})
    local = VLMEvalKitModel(deployment_of(ModelEntry(model)).entry)
    who_answered.write_record(files, who_answered.who_answers(files, local, lmu / f"{DATA}.tsv"))
    table.to_excel(tmp_path / f"{model}_{DATA}.xlsx")
    how = {"model_name": model, "dataset": build_dataset(DATA), "work_dir": str(tmp_path)}
    assert vlmeval.inference.infer_data_job(model, **how) == model
