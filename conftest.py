"""Fixtures of tests and benchmarks: shared data, and an environment without user settings."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path

import hypothesis
import pytest
from _pytest.runner import runtestprotocol
from host_runs import require_host
from once import once_a_session

# Tests run side by side, and torch and numpy on two threads of a busy machine are up to eight times
# slower than on one. Both read it when they are imported; processes of tests inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

REPOSITORY = Path(__file__).resolve().parent
PAGES = REPOSITORY / "tests" / "repository" / "test_pages.py"

USER_SETTINGS = (
    "FINDIT_SPACE",
    "FINDIT_READS_LIKE",
    "FINDIT_PROMPTS",
    "FINDIT_TABLES",
    "FINDIT_IMAGES",
    "FINDIT_CONFIG",
    "FINDIT_SKIP_MISSING",
    "FINDIT_REPLAY",
    "FINDIT_ENCODER",
    "FINDIT_LOGPROBS",
    "FINDIT_PLUGINS",
    "FINDIT_FORCE",
    "FINDIT_THOUGHT_MARKS",
    "FINDIT_VP_MARK",
)
"""Settings of a user's shell that must not reach a test."""

# How long an example takes says how busy the machine is, and nothing of the code.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

# A suite in the background of a shell is told to ignore Ctrl-C, and so are its processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


COLLECTED_WITH = pytest.StashKey[frozenset[str]]()
"""The modules that were imported when all tests were collected."""

LOST_SLOW = pytest.StashKey[frozenset[Path]]()
"""The files with slow tests that ``-m slow`` would leave out: none."""

_ALL_SLOW = re.compile(r"^pytestmark = .*\b(mark\.slow|IN_BROWSER)\b", re.MULTILINE)
_SOME_SLOW = re.compile(r"\b(mark\.slow|every_pair|few_fast|IN_BROWSER)\b")
_IMPORTS_MUCH = re.compile(
    r"\brequire_host\b|\bmark\.(host|early)\b|importorskip\(\"(torch|transformers)\b"
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files whose every test would be deselected: reading them takes seconds.

    A file that is named on the command line is read.
    """
    wanted = config.option.markexpr
    if wanted not in ("not slow", "slow") or not collection_path.name.startswith("test_"):
        return None
    named = {(config.invocation_params.dir / each.split("::")[0]).resolve() for each in config.args}
    if collection_path.resolve() in named:
        return None
    if wanted == "slow":
        return not _may_be_slow(collection_path) or None
    return bool(_ALL_SLOW.search(collection_path.read_text(encoding="utf-8"))) or None


def _may_be_slow(path: Path) -> bool:
    """Whether a test file names what makes a test slow: if not, ``-m slow`` leaves it out."""
    return bool(_SOME_SLOW.search(path.read_text(encoding="utf-8")))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Have the last worker read the files from the end.

    Every worker needs all files compiled, which takes eight seconds in a fresh clone: two of them
    compile half each, and find the others there.
    """
    report = yield
    if isinstance(collector, pytest.Directory) and _reads_from_the_end(collector.config):
        report.result.reverse()
    return report


def _reads_from_the_end(config: pytest.Config) -> bool:
    if config.pluginmanager.hasplugin("randomly"):
        return False  # It shuffles the order that it is given, which must be that of the others.
    worker = getattr(config, "workerinput", {"workerid": "gw0", "workercount": 1})
    return worker["workerid"] != "gw0" and worker["workerid"] == f"gw{worker['workercount'] - 1}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the files that import VLMEvalKit or torch: the first worker has them all.

    ``--dist worksteal`` gives each worker a part of the list and takes from the ends of parts.
    Each worker that imported both would pay twenty seconds. The pages come before all: a training
    on one of them takes minutes, in which the others would have nothing left to do.
    """
    slow_in = {item.path for item in items if item.get_closest_marker("slow")}
    config.stash[LOST_SLOW] = frozenset(path for path in slow_in if not _may_be_slow(path))
    if not config.pluginmanager.hasplugin("randomly"):
        much = {path: _imports_much(path) for path in {item.path for item in items}}
        items.sort(key=lambda item: (item.path != PAGES, not much[item.path], item.path))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is marked ``host`` where VLMEvalKit is missing."""
    if item.get_closest_marker("host") is not None:
        require_host()


def _imports_much(path: Path) -> bool:
    return bool(_IMPORTS_MUCH.search(path.read_text(encoding="utf-8")))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Have a worker send one report of a test that passes, not those of its fixtures, too.

    Packing, sending and reading three is half a millisecond a test. ``--durations`` and
    ``--junitxml`` want all.
    """
    options = item.config.option
    if not hasattr(item.config, "workerinput") or options.durations or options.xmlpath:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Modules and tests live as long as the session: nobody looks for garbage among them.

    Each look at their two million objects takes more than a second. What tests leave is small, so
    it is looked for less often than Python does by itself.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        session.config.stash[COLLECTED_WITH] = frozenset(sys.modules)
        gc.freeze()
        gc.set_threshold(50_000, 10, 50)
        gc.enable()


@pytest.fixture(scope="session")
def _numbers() -> Iterator[int]:
    return count()


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    _numbers: Iterator[int],
) -> Path:
    """Return a folder of the test's own, named as pytest's.

    For a number, pytest's looks at all folders of the session, and links to the last of each name:
    of thousands of tests that is a millisecond each, and more where the disk is busy.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}{next(_numbers)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(scope="session")
def lmu_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """VLMEvalKit's data folder of this session: empty at its start."""
    return tmp_path_factory.mktemp("LMUData")


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What users keep in their cache folder: of this session, empty at its start."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, lmu_data: Path, cache_folder: Path) -> None:
    for name in USER_SETTINGS:
        monkeypatch.setenv(name, "")  # What a command sets in a test ends with the test.
        monkeypatch.delenv(name)
    monkeypatch.setenv("LMUData", str(lmu_data))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_folder))


# Demo's images take two seconds in every new data folder.
_demo_images = once_a_session("vlmeval_findit.data.demo.photos", "image_file", str)


@pytest.fixture(autouse=True)
def _gradients() -> Iterator[None]:
    """``import vlmeval`` turns torch's gradients off in the whole process; a later test trains."""
    yield
    if torch := sys.modules.get("torch"):
        torch.set_grad_enabled(True)


@pytest.fixture(scope="session")
def collected_with(request: pytest.FixtureRequest) -> frozenset[str]:
    """Return the modules that collecting imported."""
    return request.config.stash[COLLECTED_WITH]


@pytest.fixture(scope="session")
def lost_slow(request: pytest.FixtureRequest) -> frozenset[Path]:
    """Return the files whose slow tests ``-m slow`` would leave out."""
    return request.config.stash[LOST_SLOW]


@pytest.fixture(scope="session")
def measures(request: pytest.FixtureRequest) -> bool:
    """Whether a benchmark is run to measure (``--benchmark-enable``), with nothing beside it.

    Only then may a test fail for the time that something took.
    """
    return bool(request.config.getoption("--benchmark-enable"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with subsets and scoring cases: $FINDIT_SHARED, or beside the clone."""
    folder = Path(os.environ.get("FINDIT_SHARED") or REPOSITORY.parent / "shared")
    if not (folder / "findit-subsets").is_dir():
        reason = f"no findit-subsets in {folder}: set FINDIT_SHARED to the folder that has it"
        if os.environ.get("FINDIT_REQUIRE_SHARED") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def subsets(shared: Path) -> Path:
    """The release's Parquet subsets."""
    return shared / "findit-subsets"


@pytest.fixture(scope="session")
def cases(shared: Path) -> Path:
    """The scoring cases of the revised release."""
    return shared / "parity" / "scoring_cases.jsonl.gz"
