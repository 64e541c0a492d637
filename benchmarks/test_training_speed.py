"""What training FindIt-Nano costs: bfloat16 against float32, phrases against pieces of words.

``python -m pytest benchmarks/test_training_speed.py --benchmark-enable -s`` prints the
figures; without the flag the same code runs once, on the smallest batch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

import pytest
from tokenizers import Tokenizer

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from training.nano.learner import NanoLearner, read_nano_recipe, samples_of  # noqa: E402
from training.recipe import RECIPES  # noqa: E402
from training.train import Training  # noqa: E402

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("one_thread")]

RECIPE = read_nano_recipe(RECIPES / "findit_nano.yaml")
STAGE = replace(RECIPE.stages[-1], kinds={"scenes": 1})


def seconds(training: Training, precision: Any, steps: Sequence[int]) -> list[float]:
    """Processor time of some steps in a precision."""
    training.precision = precision
    found = []
    for step in steps:
        batch = training.learner.batch(step)
        start = time.process_time()
        training.advance(batch)
        found.append(time.process_time() - start)
    return found


def without_phrases(tokenizer: Any) -> Any:
    """The same tokenizer, its coordinates the only tokens that it has beside words' parts."""
    plain = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    model = Tokenizer(plain.model)
    model.pre_tokenizer = plain.pre_tokenizer
    numbers = [token for token in tokenizer.get_added_vocab() if token.strip(", ").isdecimal()]
    model.add_tokens(numbers)
    return model


def test_a_step_is_quicker_and_a_question_shorter(request: pytest.FixtureRequest) -> None:
    full = request.config.getoption("benchmark_enable")
    stage = STAGE if full else replace(STAGE, rows=2)
    recipe = replace(RECIPE, corpus=RECIPE.corpus if full else 10, stages=(stage,))
    training = Training(NanoLearner(recipe))
    asked = [
        text
        for step in range(20 if full else 1)
        for sample in samples_of(recipe, step)[0]
        for turn in sample.turns
        for text in (turn.request, turn.reply)
    ]
    tokenizer = training.learner.processor.tokenizer
    plain = without_phrases(tokenizer)
    short = 2 * mean(len(tokenizer(text, add_special_tokens=False).input_ids) for text in asked)
    long = 2 * mean(len(plain.encode(text, add_special_tokens=False).ids) for text in asked)
    print(f"\ntokens of a question and its answer: {short:.0f}; without phrases {long:.0f}")
    assert short < long

    if training.precision is torch.float32:
        pytest.skip("this processor does not multiply in bfloat16")
    steps = range(8 if full else 1)
    taken: dict[Any, list[float]] = {torch.float32: [], training.precision: []}
    # A first step in each allocates; then in turns, so that both see the same machine.
    for step in (0, *steps):
        for precision, found in taken.items():
            found += seconds(training, precision, [step])
    whole, reduced = (mean(found[1:]) for found in taken.values())
    print(f"a step of {stage.rows} scenes: float32 {whole:.2f} s, bfloat16 {reduced:.2f} s")
    print(f"bfloat16 takes {reduced / whole:.2f} of the time")
    assert not full or reduced < whole
