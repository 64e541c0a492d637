"""Several replies to each query through the engine: stored, gone on with, told apart."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from chat_server import ChatServer, completion
from engine_fakes import (
    CALLS,
    CONFIG,
    FakeDeployment,
    assert_answered_once,
    demo_sweep,
    files,
    go,
    of_client,
)

from vlmeval_findit.cli import main
from vlmeval_findit.models import TimedClient
from vlmeval_findit.protocol import SAMPLE_SETTING, Batch, CallResult
from vlmeval_findit.storage import MORE_SAMPLES
from vlmeval_findit.sweeps import parse_sweep, refuse_samples

SAMPLED = CONFIG.replace("FullImage", "{name: FullImage, temperature: 0.7}")


class Sampler(TimedClient):
    """Answers by its seeds, and counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.seeds: Counter[int] = Counter()

    def answers_together(self) -> bool:
        return True

    def replies(self, batch: Batch) -> list[CallResult]:
        assert len(batch.seeds) == len(batch.messages)
        self.calls += len(batch.seeds)
        self.seeds.update(batch.seeds)
        return [CallResult(f"object: [10, 20, 900, 900] {seed}") for seed in batch.seeds]


def test_only_new_samples_are_asked(tmp_path: Path) -> None:
    written = {}
    for folder, runs in (("whole", [(3, 3)]), ("parts", [(1, 1), (2, 1), (3, 1), (3, 0), (2, 0)])):
        (tmp_path / folder).mkdir()
        model = Sampler()
        for samples, new in runs:
            before = model.calls
            sweep = demo_sweep(tmp_path / folder, SAMPLED, samples=samples)
            results = go(sweep, FakeDeployment(model, of_client))
            assert Counter(r.sample for r in results) == dict.fromkeys(range(1, samples + 1), 8)
            assert model.calls - before == new * CALLS
        assert_answered_once(sweep.journal, 3 * CALLS)
        assert set(model.seeds.values()) == {1}, "no two calls have one seed"
        written[folder] = files(sweep.work_dir)
    assert written["parts"] == written["whole"]

    stem = "FullImage_FindIt_Demo_xyxy_text"
    whole = written["whole"]
    replies = set()
    endings = (".json", "_identity.json", "_score.csv", "_details.jsonl", "_provenance.json")
    endings += ("_sums.msgpack",)
    assert len(whole) == 3 * 8 * len(endings)
    for sample in (1, 2, 3):
        folder = "FullImage" if sample == 1 else f"FullImage/{MORE_SAMPLES}/{sample}"
        identity = json.loads(whole[f"{folder}/{stem}_identity.json"])
        settings = {"temperature": 0.7, **({SAMPLE_SETTING: sample} if sample > 1 else {})}
        assert identity["answering"]["settings"] == settings
        replies.add(whole[f"{folder}/{stem}.json"])
    assert len(replies) == 3, "other random numbers"


def test_a_server_is_sent_a_seed_for_each_sample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    command = ["run", "--data", "FindIt_Demo_xyxy_json", "--model", "Qwen3-VL", "--limit", "3"]
    command += ["--work-dir", out, "--temperature", "0.7", "--samples", "4"]
    with ChatServer(lambda *_: completion("[]")) as server:
        command += ["--base-url", server.url]
        assert main(command) == 0
        assert len({asked.body["seed"] for asked in server.asked}) == 12 == len(server.asked)
        assert {asked.body["temperature"] for asked in server.asked} == {0.7}
        shown = " ".join(capsys.readouterr().out.replace("python run_findit.py", "findit").split())
        assert f"These are the first of 4 samples; all: findit samples {out}" in shown
        assert main(command) == 0
        assert len(server.asked) == 12, "nothing is asked twice"
        assert main([*command, "--dry-run"]) == 0
        assert "12" in capsys.readouterr().out
    assert main(["samples", out]) == 0
    assert "mean of 4 samples" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("models: [{name: A, like: Qwen3-VL, temperature: 0}]", "line 2: samples: 3 greedy"),
        ("models: [{name: A, like: Qwen3-VL, settings: {temperature: 1, seed: 2}}]", "`seed`"),
        (
            "models: [{name: A, like: Qwen3-VL, temperature: 1}]\nrace: true",
            "Leave `race` and `stages` out",
        ),
    ],
)
def test_samples_that_would_be_equal_are_refused(text: str, why: str) -> None:
    sweep = parse_sweep(f"samples: 3\n{text}\ndatasets: Demo\nrepresentations: [xyxy, xywh]")
    with pytest.raises(ValueError, match=why):
        refuse_samples(sweep)
