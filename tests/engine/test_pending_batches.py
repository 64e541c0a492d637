"""A batch that a sweep has outstanding is paid once, whatever is typed in its folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from batch_server import BatchServer
from few_fast import few_fast

from vlmeval_findit.cli import main
from vlmeval_findit.engine import BatchLedger, JournalView

DATA = "FindIt_Demo_xyxy_text"  # The search asks it, too
ROWS = 2
SHAPE = re.compile(r"(\d+) of them still to make(?:, (\d+) on their way in batches)?")

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer() as started:
        yield started


def model(server: BatchServer) -> list[str]:
    return ["--base-url", server.url]


def sweep(server: BatchServer, *more: str) -> list[str]:
    text = f"models: {{name: Mine, space: grid1000}}\ndatasets: {DATA}\nlimit: {ROWS}\n"
    Path("sweep.yaml").write_text(f"{text}work_dir: out\ninference: {{poll: 0.05}}\n")
    return ["sweep", "sweep.yaml", *model(server), *more]


def search(server: BatchServer, *more: str) -> list[str]:
    asks = ["search", "--model", "Mine", "--space", "grid1000", "--data", "Demo"]
    return [*asks, "--limit", str(ROWS), "--work-dir", "out", *model(server), *more]


def run(server: BatchServer, *more: str) -> list[str]:
    asks = ["run", "--data", DATA, "--model", "Mine", "--space", "grid1000"]
    return [*asks, "--limit", str(ROWS), "--work-dir", "out", *model(server), *more]


def by_the_runner(server: BatchServer, *more: str) -> list[str]:
    return run(server, "--mode", "infer", *more)


def submit(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a command in batches that is stopped while it waits."""

    class StoppedError(Exception): ...

    def stopped(self: object) -> None:
        raise StoppedError

    from vlmeval_findit.engine import batch_backend

    with monkeypatch.context() as patch:
        patch.setattr(batch_backend._BatchRun, "_collected", stopped)
        with pytest.raises(StoppedError):
            main([*command, "--batch", "openai"])


JOURNALS = {"in the folder": (), "elsewhere": ("--journal", "shared.jsonl")}
Command = Callable[..., list[str]]


@pytest.mark.parametrize("journal", few_fast(JOURNALS, 1))
@pytest.mark.parametrize("submits", few_fast([sweep, search], 1))
@pytest.mark.parametrize("then", [run, pytest.param(by_the_runner, marks=pytest.mark.host)])
def test_a_run_pays_no_batch_again(
    journal: str,
    submits: Command,
    then: Command,
    server: BatchServer,
    capsys: Capsys,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    submit(submits(server, *JOURNALS[journal]), monkeypatch)
    paid = sum(server.asked.values())
    for dry in ([], ["--dry-run"]):
        capsys.readouterr()
        assert main(then(server, *dry)) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert f"{ROWS} of these calls are on their way in the batch" in told
        assert "type its command again, with --batch openai" in told
        assert "or use another --work-dir" in told
    assert server.single == 0

    assert main([*submits(server, *JOURNALS[journal]), "--batch", "openai"]) == 0
    collected = sum(server.asked.values())
    assert main(run(server)) == 0
    assert sum(server.asked.values()) == collected >= paid
    assert set(server.asked.values()) == {1}, "each call is paid once"


@pytest.mark.parametrize("journal", JOURNALS)
def test_other_calls_of_the_folder_are_made(
    journal: str, server: BatchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(sweep(server, *JOURNALS[journal]), monkeypatch)
    words = [*run(server, "--temperature", "0.5")]
    words[words.index("Mine")] = "Other"
    assert main(words) == 0
    assert server.single == ROWS


@pytest.mark.parametrize("journal", few_fast(JOURNALS, 1))
@pytest.mark.parametrize("command", [sweep, search])
def test_a_dry_run_counts_what_is_on_its_way(
    journal: str,
    command: Command,
    server: BatchServer,
    capsys: Capsys,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = command(server, *JOURNALS[journal])

    def counted() -> tuple[int, int]:
        capsys.readouterr()
        assert main([*words, "--batch", "openai", "--dry-run"]) == 0
        found = SHAPE.search(" ".join(capsys.readouterr().out.split()))
        assert found is not None
        return int(found[1]), int(found[2] or 0)

    to_make, on_way = counted()
    assert on_way == 0
    submit(words, monkeypatch)
    with JournalView(Path("shared.jsonl" if journal == "elsewhere" else "out/calls.jsonl")) as view:
        open_calls = len(BatchLedger(view).open)
    assert open_calls
    assert counted() == (to_make - open_calls, open_calls)
    assert main([*words, "--batch", "openai"]) == 0
    assert counted()[1] == 0
