"""Several replies to each query through the engine: stored, gone on with, told apart."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, completion
from engine_fakes import (
    CALLS,
    CONFIG,
    FakeBackends,
    FakeModel,
    Message,
    answered_keys,
    demo_sweep,
    files,
    go,
)

from vlmeval_findit.cli import main
from vlmeval_findit.core.identity import SAMPLE
from vlmeval_findit.core.run_files import MORE_SAMPLES
from vlmeval_findit.sweeps.sweep_file import Sweep, parse_sweep, refuse_samples

SAMPLED = CONFIG.replace("FullImage", "{name: FullImage, temperature: 0.7}")


class Sampler(FakeModel):
    """Answers by its seeds, and counts them."""

    def __init__(self, on_call: Any = None) -> None:
        super().__init__(on_call)
        self.seeds: Counter[int] = Counter()

    def generate_batch(
        self, messages: Sequence[Message], dataset: str, seeds: Sequence[int] = ()
    ) -> list[str]:
        self.seeds.update(seeds)
        replies = [self.generate(message, "text") for message in messages]
        return [f"{reply} {seed}" for reply, seed in zip(replies, seeds, strict=True)]

    generate_variants = generate_batch


def sampled(folder: Path, samples: int, **more: Any) -> Sweep:
    return demo_sweep(folder, SAMPLED, samples=samples, **more)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, lmu_data: Path) -> dict[str, str]:
    """The files of three samples that nothing happened to."""
    folder, model = tmp_path_factory.mktemp("undisturbed"), Sampler()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(lmu_data))
        results = go(sampled(folder, 3), FakeBackends(model))
    assert Counter(result.sample for result in results) == {1: 8, 2: 8, 3: 8}
    assert model.calls == 3 * CALLS == len({*answered_keys(folder / "calls.jsonl")})
    assert set(model.seeds.values()) == {1}, "no two calls have one seed"
    return files(folder / "out")


def test_each_sample_is_a_run_beside_the_first(undisturbed: dict[str, str]) -> None:
    stem = "FullImage_FindIt_Demo_xyxy_text"
    endings = (".json", "_identity.json", "_score.csv", "_details.jsonl", "_provenance.json")
    assert len(undisturbed) == 3 * 8 * len(endings)
    replies = []
    for sample in (1, 2, 3):
        folder = "FullImage" if sample == 1 else f"FullImage/{MORE_SAMPLES}/{sample}"
        identity = json.loads(undisturbed[f"{folder}/{stem}_identity.json"])
        settings = {"temperature": 0.7, **({SAMPLE: sample} if sample > 1 else {})}
        assert identity["answering"]["settings"] == settings
        replies.append(undisturbed[f"{folder}/{stem}.json"])
    assert len({*replies}) == 3, "other random numbers"


def test_more_samples_later_are_the_only_ones_that_are_asked(
    undisturbed: dict[str, str], tmp_path: Path
) -> None:
    for samples, new in ((1, 1), (2, 1), (3, 1), (3, 0), (2, 0)):
        model = Sampler()
        go(sampled(tmp_path, samples), FakeBackends(model))
        assert model.calls == new * CALLS
    assert files(tmp_path / "out") == undisturbed


# --- over HTTP ------------------------------------------------------------------------------------


def test_a_server_is_sent_a_seed_for_each_sample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    command = ["run", "--data", "FindIt_Demo_xyxy_json", "--model", "Qwen3-VL", "--limit", "3"]
    with ChatServer(lambda *_: completion("[]")) as server:
        command += ["--base-url", server.url, "--work-dir", out, "--temperature", "0.7"]
        assert main([*command, "--samples", "4"]) == 0
        assert len({asked.body["seed"] for asked in server.asked}) == 12 == len(server.asked)
        assert {asked.body["temperature"] for asked in server.asked} == {0.7}
        printed = capsys.readouterr().out
        assert f"These are the first of 4 samples; all: findit samples {out}" in " ".join(
            printed.replace("python run_findit.py", "findit").split()
        )
        assert main([*command, "--samples", "4"]) == 0
        assert len(server.asked) == 12, "nothing is asked twice"
        assert main([*command, "--samples", "4", "--dry-run"]) == 0
        assert "12" in capsys.readouterr().out
    assert main(["samples", out]) == 0
    assert "mean of 4 samples" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("models: [{name: A, like: Qwen3-VL, temperature: 0}]", "line 2: samples: 3 greedy"),
        ("models: [{name: A, like: Qwen3-VL, settings: {temperature: 1, seed: 2}}]", "`seed`"),
        ("models: [{name: A, like: Qwen3-VL, temperature: 1}]\nrace: true", "no race"),
    ],
)
def test_samples_that_would_be_equal_are_refused(text: str, why: str) -> None:
    sweep = parse_sweep(f"samples: 3\n{text}\ndatasets: Demo\nrepresentations: [xyxy, xywh]")
    with pytest.raises(ValueError, match=why):
        refuse_samples(sweep)
