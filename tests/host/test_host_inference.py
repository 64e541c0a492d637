"""VLMEvalKit's inference of our datasets by our engine: its own function, in this process.

``infer_data_job`` is what both hosts call.  Every test calls it as they do.
"""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from chat_server import ChatServer, completion
from engine_fakes import Killed
from host_runs import environment, require_host, run
from paths import SUPPORT
from provider_servers import GOOGLE, address
from provider_servers import KEY as PROVIDER_KEY

from vlmeval_findit.protocol import FAILED_ANSWER, IdentityError
from vlmeval_findit.scoring import score_file
from vlmeval_findit.storage import read_predictions

pytestmark = pytest.mark.host

DATA = "FindIt_Demo_xyxy_json"
ROWS = 19


class Model:
    """One of the host's kind: counts its calls; ``on_call`` may raise, or return another reply."""

    def __init__(self, on_call: Callable[[int], Any] = lambda number: None) -> None:
        self.calls = 0
        self._on_call = on_call

    def set_dump_image(self, dump: Callable[..., Any]) -> None:
        self.dump = dump

    def generate(self, message: Any, dataset: str) -> Any:
        self.calls += 1
        reported = self._on_call(self.calls)
        return f'[{{"bbox": [1, 2, {self.calls}, 900]}}]' if reported is None else reported


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return the host with a model ``Mine`` (in thousandths) whose class is the host's own."""
    require_host()
    import vlmeval.config
    import vlmeval.dataset
    import vlmeval.inference

    from vlmeval_findit.host import OUTCOMES, register

    register()
    OUTCOMES.clear()
    monkeypatch.setenv("PRED_FORMAT", "json")
    monkeypatch.setenv("FINDIT_SPACE", "grid1000")
    yield SimpleNamespace(
        job=vlmeval.inference.infer_data_job,
        dataset=vlmeval.dataset.build_dataset,
        models=vlmeval.config.supported_VLM,
        outcomes=OUTCOMES,
    )
    vlmeval.config.supported_VLM.pop("Mine", None)
    OUTCOMES.clear()


def ask(host: Any, model: Any, folder: Path, name: str = "Mine", **options: Any) -> Any:
    """As the host's loop does it."""
    folder.mkdir(parents=True, exist_ok=True)
    options = {"api_nproc": 4, "retry_failed": True, "use_vllm": False, **options}
    return host.job(model, str(folder), name, host.dataset(DATA), **options)


def replies(folder: Path, suffix: str = "json") -> dict[int, str]:
    actual = read_predictions(folder / f"Mine_{DATA}.{suffix}")
    return {reply.index: reply.text for reply in actual}


def test_other_datasets_are_the_hosts(host: Any, tmp_path: Path) -> None:
    with pytest.raises(AttributeError, match="dataset_name"):
        host.job(Model(), str(tmp_path), "Mine", SimpleNamespace())


def test_a_run_and_the_same_run_again(host: Any, tmp_path: Path) -> None:
    model = Model()
    assert ask(host, model, tmp_path) is model, "the host keeps it for its next dataset"
    assert model.calls == ROWS == len(replies(tmp_path))
    assert model.dump is not None
    before = {p: p.read_bytes() for p in tmp_path.iterdir() if p.suffix != ".lock"}
    suffixes = {p.name.removeprefix(f"Mine_{DATA}") for p in before}
    assert suffixes == {".json", "_identity.json", "_calls.jsonl"}
    again = Model()
    ask(host, again, tmp_path)
    assert again.calls == 0
    assert {p: p.read_bytes() for p in before} == before
    # The host's own name of a model: nothing is loaded where nothing is left to ask.
    host.models["Mine"] = lambda: pytest.fail("loaded")
    assert ask(host, "Mine", tmp_path) == "Mine"


def test_only_failed_calls_are_repeated(
    host: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Exceptions, and failures of the host's own wrappers, which record nothing."""

    def fails(number: int) -> str | None:
        if number == 2:
            raise RuntimeError("out of memory")
        return f"{FAILED_ANSWER} via API." if number % 5 == 0 else None

    ask(host, Model(fails), tmp_path)
    assert "Model: a call failed: RuntimeError: out of memory" in caplog.messages
    failed = [text for text in replies(tmp_path).values() if text.startswith(FAILED_ANSWER)]
    assert len(failed) == 4
    assert "out of memory" in failed[0]
    assert [str(bad) for bad in host.outcomes.bad()] == [
        f"Mine on {DATA}: 4 calls failed; the first: RuntimeError: out of memory"
    ]
    stored, again, without_journal = Model(), Model(), Model()
    ask(host, stored, tmp_path, retry_failed=False)
    ask(host, again, tmp_path)
    # As a run that the engine made, or an earlier version of ours under the host.
    (tmp_path / f"Mine_{DATA}_calls.jsonl").unlink()
    ask(host, without_journal, tmp_path)
    assert (stored.calls, again.calls, without_journal.calls) == (0, 4, 0)
    assert host.outcomes.bad() == []
    assert not any(text.startswith(FAILED_ANSWER) for text in replies(tmp_path).values())


def test_what_ends_a_run_is_a_status(
    host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [("Mine", DATA), ("Other", DATA)]
    ask(host, Model(), tmp_path)
    assert host.outcomes.missing(expected, scored=False) == [f"Other on {DATA}: was not run"]
    assert f"Mine on {DATA}: was not scored" in host.outcomes.missing(expected, scored=True)
    predictions = tmp_path / f"Mine_{DATA}.json"
    host.dataset(DATA).evaluate(str(predictions))
    assert host.outcomes.missing(expected[:1], scored=True) == []
    assert host.outcomes.status == 0
    predictions.unlink()
    with pytest.raises(FileNotFoundError):
        host.dataset(DATA).evaluate(str(predictions))
    assert host.outcomes.status == 1

    def full(*anything: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("vlmeval_findit.host.inference.write_rows", full)
    with pytest.raises(OSError, match="No space left"):
        ask(host, Model(), tmp_path)
    assert host.outcomes.status == 3


def test_another_format_of_predictions_drops_nothing(
    host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A sheet cuts the second reply: scores take the journal's, which the first run left."""
    long = '[{"bbox": [0, 0, 900, 900], "note": "' + "x" * 40_000 + '"}]'
    ask(host, Model(lambda n: long if n == 2 else None), tmp_path)
    whole = replies(tmp_path)
    score = host.dataset(DATA).evaluate(str(tmp_path / f"Mine_{DATA}.json"))
    monkeypatch.setenv("PRED_FORMAT", "xlsx")
    ask(host, model := Model(), tmp_path)
    assert model.calls == 0
    sheet = tmp_path / f"Mine_{DATA}.xlsx"
    assert any(f"{sheet}: a cell of xlsx holds 32,767" in each for each in caplog.messages)
    (cut,) = [text for text in cells(sheet) if len(text) == 32_767]
    assert long.startswith(cut)
    assert replies(tmp_path, "xlsx") == whole
    assert host.dataset(DATA).evaluate(str(sheet)) == score
    monkeypatch.setenv("PRED_FORMAT", "json")
    ask(host, Model(), tmp_path)
    assert replies(tmp_path) == whole


def test_a_cut_reply_without_its_journal_is_asked_again(
    host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRED_FORMAT", "xlsx")
    ask(host, Model(lambda n: "x" * 40_000 if n == 2 else None), tmp_path)
    (tmp_path / f"Mine_{DATA}_calls.jsonl").unlink()
    ask(host, model := Model(), tmp_path)
    assert model.calls == 1


def cells(sheet: Path) -> list[str]:
    from openpyxl import load_workbook

    rows = load_workbook(sheet).worksheets[0].iter_rows(values_only=True, min_row=2)
    return [str(value) for row in rows for value in row]


def test_models_of_a_config_file_are_asked_by_the_engine(
    host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import vlmeval.api

    monkeypatch.delenv("FINDIT_SPACE")
    monkeypatch.setenv(GOOGLE.variable, PROVIDER_KEY)
    with ChatServer(lambda *_: completion("[]")) as server:
        model = vlmeval.api.FindItServer("Qwen3-VL", server.url, served="tiny", key="KEY")
        for _ in range(2):
            assert ask(host, model, tmp_path / "server") is model
        assert len(server.asked) == ROWS
        asked = server.asked[0]
    assert asked.headers["authorization"] == "Bearer KEY"
    assert (asked.body["model"], asked.body["temperature"]) == ("tiny", 0.0)
    with ChatServer(GOOGLE.answering(lambda body: "[]")) as server:
        url = address(server, GOOGLE)
        model = vlmeval.api.FindItProvider(GOOGLE.model, "google", base_url=url, max_usd=5)
        ask(host, model, tmp_path / "provider")
    assert set(replies(tmp_path / "server").values()) == {"[]"}
    (row, *_) = json.loads((tmp_path / "provider" / f"Mine_{DATA}.json").read_text())
    assert json.loads(row["extra_records"])["findit"]["call"]["cost_from"]


# --- another run ----------------------------------------------------------------------------------


@pytest.mark.sees("FINDIT_FORCE")
def test_a_contradiction_is_refused_before_the_first_call_unless_forced(
    host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die_at_8(number: int) -> None:
        if number == 8:
            raise Killed

    with pytest.raises(Killed):
        ask(host, Model(die_at_8), tmp_path)
    identity = tmp_path / f"Mine_{DATA}_identity.json"
    values = {**json.loads(identity.read_text()), "prompt_hash": "other words"}
    identity.write_text(json.dumps(values))
    model = Model()
    with pytest.raises(IdentityError, match="hash of the prompts: recorded other words"):
        ask(host, model, tmp_path)
    assert "recorded other words" in str(host.outcomes.bad()[0])
    monkeypatch.setenv("FINDIT_FORCE", "1")
    with monkeypatch.context() as patch:
        patch.setenv("FINDIT_SPACE", "unit")
        with pytest.raises(IdentityError, match="FINDIT_SPACE"):
            ask(host, model, tmp_path)
    assert model.calls == 0
    ask(host, model, tmp_path)
    assert model.calls == ROWS - 7
    monkeypatch.delenv("FINDIT_FORCE")
    ask(host, Model(), tmp_path)
    run = score_file(tmp_path / f"Mine_{DATA}.json")
    assert run.identity is not None
    assert "hash of the prompts: recorded other words" in run.identity.forced[0]


def test_a_class_whose_code_changed_is_another_model(host: Any, tmp_path: Path) -> None:
    path = tmp_path / "user_class.py"
    run = tmp_path / "run"

    def write(reply: str) -> None:
        """Make a user's class known, as an edited file and a new process do."""
        path.write_text(
            "class Asked:\n"
            "    def __init__(self, width): pass\n"
            f"    def generate(self, message, dataset): return {reply!r}\n"
        )
        module = ModuleType("user_class")
        module.__file__ = str(path)
        sys.modules["user_class"] = module
        exec(path.read_text(), module.__dict__)
        host.models["Mine"] = partial(module.Asked, width=1)

    write('[{"bbox": [1, 2, 3, 800]}]')
    ask(host, "Mine", run)
    before = replies(run)
    ask(host, "Mine", run)
    write('[{"bbox": [1, 2, 3, 900]}]')
    with pytest.raises(IdentityError, match="source of the class: recorded sha256:"):
        ask(host, "Mine", run)
    assert replies(run) == before
    # Not by way of its journal either.
    (run / f"Mine_{DATA}_identity.json").unlink()
    with pytest.raises(IdentityError, match="source of the class of answers: recorded sha256:"):
        ask(host, "Mine", run)


def test_fewer_rows_are_refused_and_more_are_asked(host: Any, tmp_path: Path) -> None:
    ask(host, Model(), tmp_path, limit=5)
    assert len(replies(tmp_path)) == 5
    model = Model()
    ask(host, model, tmp_path)
    assert model.calls == ROWS - 5
    with pytest.raises(IdentityError, match="rows: recorded 0-18, now 0-4"):
        ask(host, Model(), tmp_path, limit=5)
    assert len(replies(tmp_path)) == ROWS


# --- torchrun -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_process_that_fails_ends_the_others(tmp_path: Path) -> None:
    """Else they wait where they meet, or meet it in the next dataset."""
    pytest.importorskip("torch")
    require_host()
    script = SUPPORT / "two_ranks.py"
    started = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    more = {"FINDIT_SPACE": "grid1000", "PRED_FORMAT": "json", "CUDA_VISIBLE_DEVICES": ""}
    env = environment(tmp_path / "lmu", **more)
    done = run(started, [str(script), str(tmp_path)], tmp_path, env)
    assert "rank 1 failed, so all processes end: RuntimeError: this rank" in done.stdout
    assert done.returncode == 1
    assert "is through" not in done.stdout
    assert not (tmp_path / f"Mine_{DATA}.json").exists(), "it would lack a share"


@pytest.mark.slow
def test_killed_and_late_processes_lose_no_answer(tmp_path: Path) -> None:
    """What each had stored is not asked again, whichever process was killed."""
    pytest.importorskip("torch")
    require_host()
    started = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    out = tmp_path / "out"
    out.mkdir()
    killed = 0
    for way, when in (("KILLED", "1:0"), ("KILLED", "0:2"), ("KILLED", "1:0"), ("LATE", "1:3")):
        more = {"FINDIT_SPACE": "grid1000", "PRED_FORMAT": "json", "CUDA_VISIBLE_DEVICES": ""}
        env = environment(tmp_path / "lmu", **more, **{f"FAKE_{way}": when})
        done = run(started, [str(SUPPORT / "killed_ranks.py"), str(out)], tmp_path, env)
        killed += done.returncode != 0
    assert done.returncode == 0, done.stdout
    assert killed >= 2
    asked = [line for path in out.glob("asked.*") for line in path.read_text().splitlines()]
    assert len({*asked}) == 2 * ROWS
    # At a kill each process has one call in flight, and its last answers may be unsynced.
    assert len(asked) - len({*asked}) <= 2 * killed
    for name in (DATA, DATA.replace("xyxy", "xywh")):
        assert len(json.loads((out / f"Mine_{name}.json").read_text())) == ROWS


def test_every_process_asks_its_share_and_the_first_writes(
    host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processes one after the other: the second's part is there before the first is done."""
    from vlmeval_findit.host import Ranks

    second = Model()
    waits: list[int] = []

    def wait(self: Ranks) -> None:
        waits.append(self.rank)
        if self.rank == 0 and waits.count(0) == 1:
            monkeypatch.setenv("RANK", "1")
            ask(host, second, tmp_path)
            monkeypatch.setenv("RANK", "0")

    monkeypatch.setattr(Ranks, "wait", wait)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    first = Model()
    ask(host, first, tmp_path)
    assert (first.calls, second.calls) == (10, 9)
    assert len(replies(tmp_path)) == ROWS
    assert waits == [0, 1, 1, 0]
    assert not list(tmp_path.glob("*_calls.jsonl.*"))
