"""vLLM itself, on a CPU: asked by ``--serve`` and ``--base-url``, compared with transformers.

What differs is explained reply by reply: :func:`cause_of_difference`. vLLM is installed and started
only where FINDIT_REAL_VLLM says so: ``one`` runs a short test, ``all`` all of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from real_servers import VLLM_FLAGS, vllm, vllm_environment, vllm_variables
from waits import until

from vlmeval_findit.cli import main
from vlmeval_findit.models.local import model_images
from vlmeval_findit.protocol import THINK

if TYPE_CHECKING:
    import psutil

ASKED_FOR = os.environ.get("FINDIT_REAL_VLLM", "")
ROWS = 20 if ASKED_FOR == "all" else 6
DATA = "FindIt_Scenes_mini_xyxy_json"
HELD = f"{DATA}_constrained"
BOUNDS = {"min_pixels": 200_704, "max_pixels": 1_605_632}
RESIZED_TWICE = ("Qwen2.5-VL",)  # by transformers here, as in the paper's runs

one_of_them = pytest.mark.skipif(
    ASKED_FOR not in ("one", "all"),
    reason="installs 2 GB and starts vLLM, which takes three minutes: FINDIT_REAL_VLLM=one",
)
all_of_them = pytest.mark.skipif(
    ASKED_FOR != "all",
    reason="starts vLLM several times, which takes minutes: FINDIT_REAL_VLLM=all",
)
of_a_family = pytest.mark.parametrize("sweeps", ["Qwen3-VL"], indirect=True)
of_each_family = pytest.mark.parametrize(
    "sweeps", ["Qwen3-VL", pytest.param("Qwen2.5-VL", marks=all_of_them)], indirect=True
)


@dataclass(frozen=True)
class Reply:
    """A reply as it is stored, and what it was to."""

    text: str
    thought: str = ""
    prompt_tokens: int = 0
    ends: tuple[int, ...] = ()  # of tokens, in characters of the text
    logprobs: tuple[float, ...] = ()


# --- why replies differ ---------------------------------------------------------------------------

NEAR = 0.02
"""Two tokens whose log-probabilities are so close may change places between programs."""


def cause_of_difference(here: Reply, there: Reply, resized_once: Reply | None = None) -> str:
    """Name the cause for which a reply of vLLM is not that of transformers; "" without any.

    The tiny tokenizer calls the marks of thoughts special, so that vLLM removes them; the published
    ones do not. An unfinished character at the end of a reply is "\ufffd" here, and nothing there.
    Images of Qwen2.5-VL are resized twice here, as in the paper's runs, and once by a server:
    ``resized_once`` is transformers' reply without the first resize.
    """
    if (here.text, here.thought) == (there.text, there.thought):
        return ""
    if not there.thought and _is_cut(here.text, there.text) and not here.thought:
        return "a cut last character"
    if here.thought and not there.thought:
        both_ways = (here.thought + here.text, here.text + here.thought)
        if any(_is_cut(_plain(each), _plain(there.text)) for each in both_ways):
            return "special marks of a thought"
    if _is_near(here, there):
        return "near-equal logits"
    if resized_once is not None and cause_of_difference(resized_once, there) != "not explained":
        return "an image resized twice"
    return "not explained"


def _plain(text: str) -> str:
    """Return a text without marks and spaces, which stand between the parts of a thought."""
    for mark in (THINK.opens, THINK.closes):
        text = text.replace(mark, "")
    return "".join(text.split())


def _is_cut(whole: str, cut: str) -> bool:
    return whole.rstrip("\ufffd") == cut.rstrip("\ufffd")


def _is_near(here: Reply, there: Reply) -> bool:
    """Return whether the first tokens that differ were about as probable."""
    letters = enumerate(zip(here.text, there.text, strict=False))
    shortest = min(len(here.text), len(there.text))
    shared = next((at for at, (a, b) in letters if a != b), shortest)
    at_token = sum(end <= shared for end in here.ends)
    before = zip(here.logprobs[:at_token], there.logprobs[:at_token], strict=False)
    both = zip(here.logprobs[at_token:], there.logprobs[at_token:], strict=False)
    first = next(both, None)
    differences = [*before, *([first] if first else [])]
    return first is not None and all(abs(a - b) < NEAR for a, b in differences)


@pytest.mark.parametrize(
    ("here", "there", "cause"),
    [
        (Reply("[1]"), Reply("[1]"), ""),
        (Reply("[1\ufffd\ufffd"), Reply("[1"), "a cut last character"),
        (Reply("[1]", "it is"), Reply("it is[1]"), "special marks of a thought"),
        (Reply("[1]\ufffd", "a\n\nb"), Reply("[1]\ufffda b"), "special marks of a thought"),
        (
            Reply("a b", ends=(1, 3), logprobs=(-1.0, -2.0)),
            Reply("a c", ends=(1, 3), logprobs=(-1.0, -2.01)),
            "near-equal logits",
        ),
        (
            Reply("a b", ends=(1, 3), logprobs=(-1.0, -2.0)),
            Reply("a c", ends=(1, 3), logprobs=(-1.5, -2.0)),
            "not explained",
        ),
        (Reply("[1]"), Reply("[2]"), "not explained"),
        (Reply("[1]"), Reply(""), "not explained"),
        (Reply("[1]", "it is"), Reply("it was[1]"), "not explained"),
    ],
)
def test_causes_of_differences(here: Reply, there: Reply, cause: str) -> None:
    assert cause_of_difference(here, there) == cause


@pytest.mark.parametrize(
    ("once", "cause"),
    [
        (Reply("[2]"), "an image resized twice"),
        (Reply("[2\ufffd"), "not explained"),
        (Reply("[2]\ufffd"), "an image resized twice"),
        (Reply("[1]"), "not explained"),
    ],
)
def test_a_second_resize_explains_what_one_resize_repeats(once: Reply, cause: str) -> None:
    assert cause_of_difference(Reply("[1]"), Reply("[2]"), once) == cause


# --- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sweeps:
    """Sweeps of one family's tiny checkpoint, in one folder."""

    folder: Path
    row: str
    checkpoint: Path

    def run(
        self, name: str, model: Mapping[str, Any], *flags: str, data: str = DATA, status: int = 0
    ) -> Path:
        """Ask a model about the first rows, which ends with a status; the folder of its results."""
        settings = {"max_new_tokens": 48, **model.get("settings", {})}
        sweep = {
            "models": [{"name": self.row, **model, "settings": settings}],
            "datasets": data.split(),
            "limit": ROWS,
        }
        path = self.folder / f"{name}.yaml"
        path.write_text(json.dumps(sweep))  # JSON is YAML
        out = self.folder / name
        assert main(["sweep", str(path), "--work-dir", str(out), "--logprobs", *flags]) == status
        return out

    def here(self, name: str = "here") -> Path:
        """Ask transformers in this process."""
        return self.run(name, self._local)

    def resized_once(self, here: list[Reply]) -> list[Reply]:
        """Return transformers' replies without the first of two resizes, which no server makes."""
        if self.row not in RESIZED_TWICE:
            return here
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(model_images, "chat_resize", lambda size: size)
            return self.replies(self.here("once"))

    def served(self, *flags: str, data: str = DATA, status: int = 0) -> Path:
        """Ask a vLLM that FindIt starts."""
        arguments = " ".join(VLLM_FLAGS[:1] + VLLM_FLAGS[3:])
        started = ["--serve", "vllm", "--gpus", "0", "--serve-args", arguments]
        return self.run("served", self._local, *started, *flags, data=data, status=status)

    @property
    def _local(self) -> dict[str, Any]:
        return {"checkpoint": str(self.checkpoint), "settings": {"dtype": "float32"}}

    def replies(self, out: Path, data: str = DATA) -> list[Reply]:
        path = out / self.row / f"{self.row}_{data}.json"
        return [_reply(row) for row in json.loads(path.read_text())]


def _reply(row: Mapping[str, Any]) -> Reply:
    record = json.loads(row["extra_records"])["findit"]
    logprobs = record.get("logprobs") or {}
    return Reply(
        row["prediction"],
        record.get("thought", ""),
        record["tokens"]["prompt"],
        tuple(logprobs.get("ends", ())),
        tuple(logprobs.get("logprobs", ())),
    )


def compare(here: list[Reply], there: list[Reply], once: list[Reply]) -> None:
    """Check that vLLM was asked the same, and that each other answer has a known cause."""
    assert len(here) == len(there) == ROWS
    assert [reply.prompt_tokens for reply in there] == [reply.prompt_tokens for reply in here]
    triples = list(zip(here, there, once, strict=True))
    causes = [cause_of_difference(*triple) for triple in triples]
    rows = zip(causes, triples, strict=True)
    assert not [row for row in rows if row[0] == "not explained"]
    assert "" in causes, "no reply is the same"


def compare_logprobs(here: list[Reply], there: list[Reply]) -> None:
    """Check log-probabilities of equal replies; invalid characters have none at servers."""
    both = [(a, b) for a, b in zip(here, there, strict=True) if a.text == b.text and b.logprobs]
    assert both
    for mine, theirs in both:
        assert mine.ends == theirs.ends
        assert mine.logprobs == pytest.approx(theirs.logprobs, abs=1e-3)


@pytest.fixture
def sweeps(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Sweeps:
    """Return those of the family that the test names."""
    pytest.importorskip("torch")
    from tiny_checkpoints import build

    for name, value in vllm_variables(vllm_environment()).items():
        monkeypatch.setenv(name, value)
    checkpoint = build(request.param, tmp_path / "checkpoint", wide_heads=True)
    return Sweeps(tmp_path, request.param, checkpoint)


@pytest.mark.slow
@one_of_them
@of_each_family
def test_served_vllm_answers_as_transformers_does(sweeps: Sweeps) -> None:
    out = sweeps.served(data=f"{DATA} {HELD}")
    here, there = sweeps.replies(sweeps.here()), sweeps.replies(out)
    once = sweeps.resized_once(here)
    compare(here, there, once)
    compare_logprobs(once, there)
    for reply in sweeps.replies(out, HELD):
        assert reply.text.startswith("["), "the schema is a list"
    log = (out / "servers" / f"{sweeps.row}-0.log").read_text()
    assert "--trust-request-mm-kwargs" in log.splitlines()[0]


@pytest.fixture
def servers(sweeps: Sweeps) -> Iterator[list[str]]:
    """Two that somebody started with the bounds of the paper's runs, and without trust."""
    bounds = ["--mm-processor-kwargs", json.dumps(BOUNDS)]
    with ExitStack() as running:
        yield [
            running.enter_context(vllm(sweeps.folder, sweeps.checkpoint, "tiny", *bounds))
            for _ in range(2)
        ]


@pytest.mark.slow
@all_of_them
@of_each_family
def test_a_users_vllm_answers_as_transformers_does(
    sweeps: Sweeps, servers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    model: dict[str, Any] = {"served": "tiny"}
    if sweeps.row in RESIZED_TWICE:  # it answers in pixels of the image that it sees
        model["space"] = {"kind": "smart_resize", **BOUNDS}
    here = sweeps.replies(sweeps.here())
    once = sweeps.resized_once(here)
    urls = ",".join(servers)
    out = sweeps.run("replicas", model, "--base-url", urls, data=f"{DATA} {HELD}")
    compare(here, sweeps.replies(out), once)
    compare_logprobs(once, sweeps.replies(out))
    assert all(reply.text.startswith("[") for reply in sweeps.replies(out, HELD))
    assert _servers_that_answered(out) == {*servers}
    # Bounds with each request are refused, and the advice is what starts the server for them.
    asked = {**model, "settings": {"mm_processor_kwargs": BOUNDS}}
    sweeps.run("refused", asked, "--base-url", urls, status=1)
    assert "start the server with --trust-request-mm-kwargs (vllm)" in capsys.readouterr().err


def _servers_that_answered(out: Path) -> set[str]:
    lines = (out / "calls.jsonl").read_text().splitlines()
    records = [json.loads(json.loads(line)["extra_records"])["findit"] for line in lines]
    return {record["call"]["server"] for record in records}


# --- killed servers -------------------------------------------------------------------------------

ONE_BY_ONE = ("--api-nproc", "1")  # so that calls are left when a server is killed


@contextmanager
def kills(victim: Callable[[], psutil.Process], journal: Path, answers: int) -> Iterator[None]:
    """Kill a process as soon as a journal has so many answers; it has to have them in time."""

    def kill() -> None:
        until(lambda: len(_answers(journal)) >= answers, seconds=600)
        victim().kill()

    with ThreadPoolExecutor(1) as pool:
        killed = pool.submit(kill)
        yield
        killed.result()


def _engine() -> psutil.Process:
    """Return a process of a server below this one: that which computes, a child of the server's."""
    import psutil

    return next(
        process
        for process in psutil.Process().children(recursive=True)
        if "EngineCore" in "".join(process.cmdline())
    )


def _server() -> psutil.Process:
    server = _engine().parent()
    assert server is not None
    return server


def _answers(journal: Path) -> list[dict[str, Any]]:
    """Return what a journal has of answered calls; its last line may be unfinished."""
    lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
    records = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return [record for record in records if "key" in record and not record["error"]]


def check_each_is_asked_once(journal: Path, logs: Iterable[Path], more: int) -> None:
    """Check that each row has one whole answer, and servers gave no others but ``more``."""
    answers = _answers(journal)
    assert sorted(answer["row"] for answer in answers) == list(range(ROWS))
    for answer in answers:
        assert json.loads(answer["extra_records"])["findit"]["finish_reason"] in ("stop", "length")
    given = "".join(log.read_text(errors="replace") for log in logs)
    assert given.count('"POST /v1/chat/completions HTTP/1.1" 200') == ROWS + more


@pytest.mark.slow
@all_of_them
@of_a_family
def test_a_killed_vllm_is_started_again_for_the_rest(
    sweeps: Sweeps, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = sweeps.folder / "served" / "calls.jsonl"
    before: list[dict[str, Any]] = []
    for victim in (_engine, _server):
        with kills(victim, journal, len(before) + 4):
            out = sweeps.served(*ONE_BY_ONE, status=1)
        error = capsys.readouterr().err
        assert "failed" in error, error
        answers = _answers(journal)
        assert answers[: len(before)] == before
        assert len(before) + 4 <= len(answers) < ROWS
        before = answers
    sweeps.served(*ONE_BY_ONE)
    assert _answers(journal)[: len(before)] == before
    starts = 3  # each is asked once whether it answers
    check_each_is_asked_once(journal, out.glob("servers/*.log"), more=starts)


@pytest.mark.slow
@all_of_them
@of_a_family
def test_the_other_replica_answers_for_a_killed_one(sweeps: Sweeps, servers: list[str]) -> None:
    journal = sweeps.folder / "replicas" / "calls.jsonl"
    flags = ("--base-url", ",".join(servers), *ONE_BY_ONE)
    with kills(_engine, journal, 4):
        sweeps.run("replicas", {"served": "tiny"}, *flags)
    check_each_is_asked_once(journal, sweeps.folder.glob("vllm-*.log"), more=0)
