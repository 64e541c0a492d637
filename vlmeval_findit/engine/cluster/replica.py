"""What runs on the machines of a cluster: replicas that keep what they answer, and the scoring.

A replica is the executor of one machine (:class:`.LocalBackend`) that keeps its answers in a file
of its own beside the journal (:mod:`.side`).  So the driver sends places of calls, and
gets back that they are answered; no words pass through it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...core.plugins import FILES_VARIABLE, named_files
from ...core.replies import Recorded, recorded
from ...core.work import NOT_MADE, Answer, Kept
from ..backend import Loader, LocalBackend, WorkResult, run_sync
from ..calls import Call, Keying
from ..cancel import CancelToken
from ..cell_files import finished_cell
from ..finished import code_sha256
from ..journal.lines import Record
from ..journal.lookup import JournalView
from ..outputs import Output, record_of
from ..plan import Plan, WorkItem
from ..results import Result
from .side import Side

SETTINGS = (
    "LMUData",
    "FINDIT_CONFIDENCES",
    "FINDIT_CONFIG",
    "FINDIT_ENCODER",
    "FINDIT_FORCE",
    "FINDIT_IMAGES",
    "FINDIT_PROMPTS",
    "FINDIT_READS_LIKE",
    "FINDIT_REPLAY",
    "FINDIT_SCENES_MB",
    "FINDIT_SKIP_MISSING",
    "FINDIT_SPACE",
    "FINDIT_TABLES",
    "FINDIT_VP_MARK",
)
"""The variables that a worker takes over.  By their names, because what is sent lies in the object
store of the cluster, for everybody on it to read: keys and headers of servers are not among them.
"""


class Surroundings(NamedTuple):
    """What a worker takes over from the driver: the :data:`SETTINGS` of its environment; ``code``
    is the hash of the driver's package.
    """

    journal: Path
    environment: Mapping[str, str]
    code: str


class Sheet(NamedTuple):
    """All that is the same for every call of a model, sent to a worker once.

    ``outputs`` are its cells, ``hashes`` those of their images.
    """

    around: Surroundings
    outputs: tuple[Output, ...]
    hashes: Mapping[Path, str]


def sheet_of(journal: Path, outputs: Sequence[Output], plan: Plan) -> Sheet:
    """What is sent of the cells of a plan; a call's place among them is the first of those that
    want it.
    """
    hashes = {path: plan.image_hash(path) for images in plan.shown for path in images}
    said = {name: os.environ[name] for name in SETTINGS if name in os.environ}
    environment = {**said, FILES_VARIABLE: os.pathsep.join(named_files())}
    around = Surroundings(journal.absolute(), environment, code_sha256())
    return Sheet(around, tuple(outputs), hashes)


class Piece(NamedTuple):
    """Calls that go to a model together, each by the place of its cell and its row."""

    calls: tuple[tuple[int, int], ...]
    shares_images: bool


class Came(NamedTuple):
    """What came of a call: the number of its piece, its own in that, and what is left to say."""

    piece: int
    call: int
    answer: Answer


class Ready(NamedTuple):
    """What a replica says of itself: its machine, the hash of its package, and whether the model
    answers several messages at once, over the same images and of one question.
    """

    machine: str
    code: str
    together: Mapping[bool, bool]


class Replica:
    """One replica of a model; it lives in an actor.

    Args:
        load: makes the asker.
        around: where things lie.
        token: names its file beside the journal; an actor that takes its place has the same.
    """

    def __init__(self, load: Loader, around: Surroundings, token: str) -> None:
        os.environ.update(around.environment)
        self._stop = CancelToken()
        self._sheet: Sheet | None = None
        self._side = Side(around.journal, token)
        asker = load()
        self._together = {way: asker.answers_together(shares_images=way) for way in (True, False)}
        self._backend = LocalBackend(lambda: asker)

    def ready(self) -> Ready:
        """Say who is there."""
        return Ready(socket.gethostname(), code_sha256(), self._together)

    def ask(self, sheet: Sheet, pieces: Sequence[Piece]) -> list[Came]:
        """Answer calls of cells and keep the answers, but of calls that were not begun when
        somebody asked to stop.

        What is answered in the file already is not asked again: an actor before this one has died
        of a later call.
        """
        if self._sheet is not sheet:
            self._sheet, hashes = sheet, sheet.hashes.__getitem__
            self._keyings = [Keying(one.cell, hashes) for one in sheet.outputs]
        came: list[Came] = []
        units: list[WorkItem] = []
        numbers: dict[str, tuple[int, int]] = {}
        for number, piece in enumerate(pieces):
            left = []
            for within, (at, row) in enumerate(piece.calls):
                call = Call(self._keyings[at](row), sheet.outputs[at].cell, row, (at,))
                numbers[call.key] = number, within
                if self._side.answered(call.key):
                    came.append(Came(number, within, Kept("")))
                else:
                    left.append(call)
            if left:
                units.append(WorkItem(tuple(left), piece.shares_images))

        async def answered() -> None:
            async for result in self._backend.answer(units, self._stop):
                if any(answer.stop is not None for answer in result.answers):
                    self._stop.request()
                for call, answer in zip(result.calls, self._kept(sheet, result), strict=True):
                    came.append(Came(*numbers[call.key], answer))

        run_sync(answered())
        return came

    def _kept(self, sheet: Sheet, result: WorkResult) -> Sequence[Answer]:
        """The answers as they go home: those that were made are kept here, where there is room."""
        answers = result.answers
        both = list(zip(result.calls, answers, strict=True))
        try:
            made = [(call, answer) for call, answer in both if answer.stop not in NOT_MADE]
            self._side.append(_record(sheet, *pair) for pair in made)
        except OSError:
            # The driver has a reserve for what was on its way.
            self._stop.request()
            return answers
        return [answer if answer.stop in NOT_MADE else _kept(answer) for answer in answers]

    def stop(self) -> None:
        """Begin no further call; another thread calls it."""
        self._stop.request()

    def close(self) -> None:
        """End it."""


class Scorer:
    """Writes the files of cells all of whose answers the journal has.

    Args:
        sheet: the cells; the journal is opened as it is now.

    Raises:
        ValueError: the driver has another version of this package, and would score otherwise.
        OSError: the journal is not to be seen here.
    """

    def __init__(self, sheet: Sheet) -> None:
        if sheet.around.code != code_sha256():
            raise ValueError(f"{socket.gethostname()} has another version of this package")
        os.environ.update(sheet.around.environment)
        self._sheet = sheet
        self._journal = JournalView(sheet.around.journal)

    def finished(self, at: int) -> Result:
        """Write the files of the cell at a place."""
        hashes = self._sheet.hashes.__getitem__
        return finished_cell(self._sheet.outputs[at], hashes, self._journal)


def _record(sheet: Sheet, call: Call, answer: Answer) -> Record:
    run = sheet.outputs[call.wanted_by[0]].identity
    return record_of(call.cell, call.row, answer, call.asked, run, call.cell.confidences)


def _kept(answer: Answer) -> Kept:
    tokens = recorded(answer.extra).tokens
    said = Recorded(tokens=tokens).as_json() if tokens else None
    return Kept("", said, answer.error, answer.seconds, answer.stop)
