"""What it costs to record log-probabilities: prefill and decoding with them against without.

``python -m pytest benchmarks/test_confidences_speed.py --benchmark-enable -s`` prints the
figures; without the flag the same code runs once, and only the replies are compared.  Each figure
is a ratio of two times of the processor in one run, taken in turns.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vlmeval_findit.benchmarks import load
from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.core.question import Message, Question, image, text
from vlmeval_findit.engine.calls import prompts_of
from vlmeval_findit.models.local.run_settings import RunSettings
from vlmeval_findit.models.local.runner import LocalReply, LocalRunner, load_local
from vlmeval_findit.models.model_table import MODELS, NANO_CHECKPOINT

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from tiny_checkpoints import FAMILIES  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("one_thread")]

VARIANT = parse("FindIt_Pascal_xyxy_json")
VOCABULARY = 150_000
MOST = 1.1
"""What a run with log-probabilities may take of the time without."""

MOST_OF_A_VOCABULARY = 1.25
"""The same of a model that is a vocabulary and next to nothing else.

Its layers are 32 wide, so one pass over the logits, as long as the one that finds the largest, is
a tenth of a step.  Any published model has thousands of times the layers for as many tokens.
"""


def slower(runner: LocalRunner, asked: Sequence[Message], of: Question, rounds: int) -> float:
    """How many times longer it takes with log-probabilities; the replies are the same."""
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        found: list[list[LocalReply]] = []
        for at, logprobs in enumerate((False, True)):
            start = time.process_time()
            found.append(runner.answer_batch(asked, of, logprobs=logprobs))
            best[at] = min(best[at], time.process_time() - start)
        assert [one.text for one in found[0]] == [one.text for one in found[1]]
        assert all(one.recorded.token_logprobs is not None for one in found[1])
    return best[1] / best[0]


def large_vocabulary(folder: Path) -> str:
    """A tiny Qwen3-VL that knows as many tokens as the published one, without merges to most."""
    parts = FAMILIES["Qwen3-VL"]()
    tokenizer = parts.processor.tokenizer
    said = json.loads(tokenizer.backend_tokenizer.to_str())
    known = said["model"]["vocab"]
    known |= {f"w{number:x}": number for number in range(len(tokenizer), VOCABULARY)}
    tokenizer._tokenizer = Tokenizer.from_str(json.dumps(said))
    parts.config.text_config.vocab_size = VOCABULARY
    torch.manual_seed(4)
    parts.model_class(parts.config).save_pretrained(folder)
    parts.processor.save_pretrained(folder)
    return str(folder)


def pictures(folder: Path) -> list[Message]:
    """Eight questions over as many pictures of noise, 64 visual tokens each."""
    asked = []
    for seed in range(8):
        noise = np.random.default_rng(seed).integers(0, 255, (256, 256, 3), dtype=np.uint8)
        Image.fromarray(noise).save(folder / f"{seed}.png")
        asked.append((image(str(folder / f"{seed}.png")), text(f"Find shape {seed}.")))
    return asked


@pytest.mark.parametrize("at_once", [1, 8])
@pytest.mark.parametrize(("what", "new_tokens"), [("prefill", 1), ("decoding", 64)])
def test_a_large_vocabulary(
    tmp_path: Path, measures: bool, what: str, new_tokens: int, at_once: int
) -> None:
    checkpoint = large_vocabulary(tmp_path)
    settings = RunSettings(max_new_tokens=new_tokens)
    runner = load_local(checkpoint, MODELS["Qwen3-VL"], settings)
    asked = pictures(tmp_path)[:at_once]
    ratio = slower(runner, asked, VARIANT, (40 if new_tokens == 1 else 16) if measures else 1)
    print(f"\n{VOCABULARY:,} tokens, {at_once} at once, {what}: {ratio:.3f} times the time")
    most = MOST if what == "prefill" else MOST_OF_A_VOCABULARY
    assert not measures or ratio <= most


@pytest.mark.parametrize("at_once", [1, 8])
@pytest.mark.parametrize(("what", "new_tokens"), [("prefill", 1), ("whole replies", None)])
def test_findit_nano(
    tmp_path: Path,
    measures: bool,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    new_tokens: int | None,
    at_once: int,
) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path))
    task = load("FindIt_Scenes_mini_multilabel_xyxy_json_bbox_2d")
    prompts = prompts_of(task)
    asked = [prompts.message(index) for index in list(task.queries)[:at_once]]
    settings = RunSettings(max_new_tokens=new_tokens)
    runner = load_local(NANO_CHECKPOINT, MODELS["FindIt-Nano"], settings)
    ratio = slower(runner, asked, task.question, (40 if new_tokens else 16) if measures else 1)
    print(f"\nFindIt-Nano, {at_once} at once, {what}: {ratio:.3f} times the time")
    assert not measures or ratio <= MOST
