"""A replica of a cluster: what it answers is on the disk before anybody is told of it."""

from __future__ import annotations

import errno
import os
import pickle
import re
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar

import pytest
from engine_fakes import FakeHost, FakeModel, answered_keys, demo_sweep, go

import vlmeval_findit
from vlmeval_findit.core.plugins import FILES_VARIABLE
from vlmeval_findit.core.work import Answer, Kept, Stop, Work
from vlmeval_findit.engine.backend import failures
from vlmeval_findit.engine.cluster.replica import SETTINGS, Came, Piece, Replica, Scorer, Sheet
from vlmeval_findit.engine.journal.reading import records
from vlmeval_findit.engine.journal.shards import shard_path
from vlmeval_findit.engine.model_asker import ModelAsker

TOKEN = "a" * 32
ONE_FORMAT = "models: FullImage\ndatasets: Demo\nrepresentations: xyxy\noutputs: text"


@pytest.fixture
def sheet(tmp_path: Path) -> Sheet:
    """The cells of a sweep, as a cluster gets them; here nobody answered."""
    found: list[Sheet] = []

    class Cluster:
        took: ClassVar[dict[str, int]] = {}

        def gets(self, sheet: Sheet) -> None:
            found.append(sheet)

        def opened(self) -> Any:
            return nullcontext()

        def run(self, units: Any, stop: Any) -> Sequence[Any]:
            return [(unit, failures(unit, RuntimeError("nobody"))) for unit in units]

        def finished(self, places: Any, stop: Any) -> Sequence[Any]:
            return []

    go(demo_sweep(tmp_path, ONE_FORMAT), FakeHost(None, lambda _: Cluster()))
    return found[0]


def test_no_key_leaves_for_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("FINDIT_SERVER_KEY", "a-key-of-a-server")
    monkeypatch.setenv("FINDIT_SERVER_HEADERS", '{"X-Auth": "a-key-of-a-server"}')
    monkeypatch.setenv("FINDIT_SCENES_MB", "77")
    sent: Sheet = request.getfixturevalue("sheet")
    assert "a-key-of-a-server" not in repr(sent.around)
    assert b"a-key-of-a-server" not in pickle.dumps(sent.around)
    assert sent.around.environment["FINDIT_SCENES_MB"] == "77"


def test_every_variable_of_ours_is_taken_over_or_is_secret() -> None:
    """A new one must be put into one of the two lists."""
    package = Path(vlmeval_findit.__file__).parent
    named = {
        name
        for path in package.rglob("*.py")
        for name in re.findall(r'"(FINDIT_[A-Z_]+)"', path.read_text(encoding="utf-8"))
    }
    secret = {"FINDIT_SERVER_KEY", "FINDIT_SERVER_HEADERS"}
    assert named == {*SETTINGS, FILES_VARIABLE, *secret} - {"LMUData"}


def pieces(sheet: Sheet) -> list[Piece]:
    return [Piece(((0, row),), False) for row in sheet.outputs[0].cell.rows]


def answered(came: Sequence[Came]) -> list[int]:
    return [one.piece for one in came if one.answer.error is None]


def kept(tmp_path: Path) -> int:
    return len(answered_keys(tmp_path / "calls.jsonl"))


def test_answers_stay_and_their_places_go_home(sheet: Sheet, tmp_path: Path) -> None:
    model = FakeModel()
    replica = Replica(lambda: ModelAsker(model), sheet.around, TOKEN)
    some, rest = pieces(sheet)[:5], pieces(sheet)[5:]
    came = replica.ask(sheet, some)
    assert answered(came) == list(range(5))
    assert all(type(one.answer) is Kept and not one.answer.text for one in came)
    assert kept(tmp_path) == 5
    assert replica.ask(sheet, some) == [Came(at, 0, Kept("")) for at in range(5)]
    assert model.calls == 5

    another = Replica(lambda: ModelAsker(model), sheet.around, TOKEN)
    assert answered(another.ask(sheet, some)) == list(range(5))
    assert model.calls == 5, "the one before it had answered these"
    assert answered(another.ask(sheet, rest)) == list(range(len(rest)))
    another.close()
    assert kept(tmp_path) == len(some) + len(rest) == model.calls
    assert Scorer(sheet).finished(0).failed == 0


def test_who_has_another_version_does_not_score(sheet: Sheet) -> None:
    with pytest.raises(ValueError, match="has another version of this package"):
        Scorer(sheet._replace(around=sheet.around._replace(code="another")))


def test_failures_are_kept_and_told(sheet: Sheet, tmp_path: Path) -> None:
    def fails(number: int, text: str) -> None:
        if number == 2:
            raise RuntimeError("out of memory")

    replica = Replica(lambda: ModelAsker(FakeModel(fails)), sheet.around, TOKEN)
    came = replica.ask(sheet, pieces(sheet)[:3])
    assert [one.answer.error for one in came] == [None, "RuntimeError: out of memory", None]
    assert kept(tmp_path) == 2
    errors = [one["error"] for one in records(shard_path(sheet.around.journal, TOKEN))]
    assert errors == [None, "RuntimeError: out of memory", None]


def test_nothing_more_begins_when_it_is_told_to_stop(sheet: Sheet, tmp_path: Path) -> None:
    def stops(number: int, text: str) -> None:
        if number == 2:
            replica.stop()

    replica = Replica(lambda: ModelAsker(FakeModel(stops)), sheet.around, TOKEN)
    assert answered(replica.ask(sheet, pieces(sheet))) == [0, 1]
    assert kept(tmp_path) == 2


class Refused:
    """Says at its second call that no other will be answered."""

    def __init__(self, stop: Stop) -> None:
        self.asked, self._stop = 0, stop

    def ask(self, work: Work) -> list[Answer]:
        self.asked += 1
        if self.asked == 2:
            return [Answer("", error="no", stop=self._stop)]
        return [Answer("[]", {"findit": {"tokens": {"prompt": 7}}})]

    def answers_together(self, *, shares_images: bool) -> bool:
        return False


@pytest.mark.parametrize(("stop", "lines"), [(Stop.HOPELESS, 2), (Stop.SPENT, 1)])
def test_what_ends_a_run_ends_it_here_too(
    stop: Stop, lines: int, sheet: Sheet, tmp_path: Path
) -> None:
    asker = Refused(stop)
    replica = Replica(lambda: asker, sheet.around, TOKEN)
    first, last = replica.ask(sheet, pieces(sheet))
    assert first.answer.record["tokens"] == {"prompt": 7}, "the driver counts them"
    assert last.answer.stop is stop
    assert asker.asked == 2
    assert len(list(records(shard_path(sheet.around.journal, TOKEN)))) == lines


def test_what_finds_no_room_goes_home_whole(
    sheet: Sheet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = Replica(lambda: ModelAsker(FakeModel()), sheet.around, TOKEN)
    real = os.write

    def full(file: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    (came,) = replica.ask(sheet, pieces(sheet))
    monkeypatch.setattr(os, "write", real)
    assert type(came.answer) is Answer
    assert came.answer.text
    assert kept(tmp_path) == 0
