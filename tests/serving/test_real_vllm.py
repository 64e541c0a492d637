"""vLLM itself, on a CPU: asked by ``--serve`` and ``--base-url``, compared with transformers.

What differs is explained reply by reply: :func:`cause_of_difference`. FINDIT_REAL_VLLM=all runs
all of them; without it those that start one server.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from real_servers import VLLM_FLAGS, vllm, vllm_environment, vllm_variables

from vlmeval_findit.cli import main
from vlmeval_findit.protocol import THINK

ROWS = 20
DATA = "FindIt_Scenes_mini_xyxy_json"
HELD = f"{DATA}_constrained"
BOUNDS = {"min_pixels": 200_704, "max_pixels": 1_605_632}
# Qwen2.5-VL is resized twice here and once by a server, so its replies cannot be compared
FAMILIES = ("Qwen3-VL",)

all_of_them = pytest.mark.skipif(
    os.environ.get("FINDIT_REAL_VLLM") != "all",
    reason="starts several servers of vLLM, which takes minutes: FINDIT_REAL_VLLM=all",
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


def cause_of_difference(here: Reply, there: Reply) -> str:
    """Name the cause for which a reply of vLLM is not that of transformers; "" without any.

    The tiny tokenizer calls the marks of thoughts special, so that vLLM removes them; the published
    ones do not. An unfinished character at the end of a reply is "\ufffd" here, and nothing there.
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


# --- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sweeps:
    """Sweeps of one family's tiny checkpoint, in one folder."""

    folder: Path
    row: str
    checkpoint: Path

    def run(self, name: str, model: Mapping[str, Any], *flags: str, data: str = DATA) -> Path:
        """Ask a model about the first rows; the folder of its results."""
        settings = {"max_new_tokens": 48, **model.get("settings", {})}
        sweep = {
            "models": [{"name": self.row, **model, "settings": settings}],
            "datasets": data.split(),
            "limit": ROWS,
        }
        path = self.folder / f"{name}.yaml"
        path.write_text(json.dumps(sweep))  # JSON is YAML
        out = self.folder / name
        assert main(["sweep", str(path), "--work-dir", str(out), "--logprobs", *flags]) == 0
        return out

    def here(self) -> Path:
        """Ask transformers in this process."""
        return self.run("here", self._local)

    def served(self, data: str = DATA) -> Path:
        """Ask a vLLM that FindIt starts."""
        arguments = " ".join(VLLM_FLAGS[:1] + VLLM_FLAGS[3:])
        flags = ["--serve", "vllm", "--gpus", "0", "--serve-args", arguments]
        return self.run("served", self._local, *flags, data=data)

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


def compare(here: list[Reply], there: list[Reply]) -> None:
    """Check that vLLM was asked the same, and that each other answer has a known cause."""
    assert len(here) == len(there) == ROWS
    assert [reply.prompt_tokens for reply in there] == [reply.prompt_tokens for reply in here]
    causes = [cause_of_difference(*both) for both in zip(here, there, strict=True)]
    pairs = zip(causes, here, there, strict=True)
    assert not [pair for pair in pairs if pair[0] == "not explained"]
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
@pytest.mark.parametrize("sweeps", FAMILIES, indirect=True)
def test_served_vllm_answers_as_transformers_does(sweeps: Sweeps) -> None:
    out = sweeps.served(f"{DATA} {HELD}")
    here, there = sweeps.replies(sweeps.here()), sweeps.replies(out)
    compare(here, there)
    compare_logprobs(here, there)
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
@pytest.mark.parametrize("sweeps", FAMILIES, indirect=True)
def test_a_users_vllm_answers_as_transformers_does(
    sweeps: Sweeps, servers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    model: dict[str, Any] = {"served": "tiny"}
    here = sweeps.replies(sweeps.here())
    urls = ",".join(servers)
    out = sweeps.run("replicas", model, "--base-url", urls, data=f"{DATA} {HELD}")
    compare(here, sweeps.replies(out))
    compare_logprobs(here, sweeps.replies(out))
    assert all(reply.text.startswith("[") for reply in sweeps.replies(out, HELD))
    assert _servers_that_answered(out) == {*servers}
    # Bounds with each request are refused, and the advice is what starts the server for them.
    asked = {**model, "settings": {"mm_processor_kwargs": BOUNDS}}
    with pytest.raises(AssertionError):
        sweeps.run("refused", asked, "--base-url", urls)
    assert "start the server with --trust-request-mm-kwargs (vllm)" in capsys.readouterr().err


def _servers_that_answered(out: Path) -> set[str]:
    lines = (out / "calls.jsonl").read_text().splitlines()
    records = [json.loads(json.loads(line)["extra_records"])["findit"] for line in lines]
    return {record["call"]["server"] for record in records}
