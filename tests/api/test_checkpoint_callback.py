"""``checkpoint_callback`` inside a real training of transformers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
from scored_runs import World, speaking, world

import vlmeval_findit as findit
from vlmeval_findit.api import checkpoint_callback
from vlmeval_findit.sweeps.checkpoints import Checkpoint, is_complete

__all__ = ["world"]

DATA = "FindIt_Pascal_xyxy_json_bbox_2d"


@pytest.mark.slow
def test_each_saved_checkpoint_is_evaluated_and_a_failure_does_not_end_the_training(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    monkeypatch.chdir(world.folder)
    calls = []

    def evaluate(checkpoint: Checkpoint, name: str, flags: Sequence[str]) -> int:
        assert is_complete(checkpoint.path)
        calls.append((checkpoint.step, list(flags)))
        model = checkpoint.model(name)
        if checkpoint.step == 2:
            return 1
        world.predict(model, DATA, speaking(DATA, 1.0), folder=f"../outputs/{model}")
        return 0

    monkeypatch.setattr(checkpoint_callback, "evaluate", evaluate)
    callback = findit.checkpoint_callback(DATA, name="ft", like="FindIt-Nano", flags=["-q"])
    arguments = TrainingArguments(
        "training", max_steps=3, save_steps=1, use_cpu=True, report_to=[], disable_tqdm=True
    )
    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=11))
    words = [{"input_ids": [1, 2], "labels": [1, 2]}] * 8
    trainer = Trainer(model, arguments, train_dataset=words, callbacks=[callback])  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING):
        trainer.train()
    flags = ["--data", DATA, "--work-dir", "outputs", "--like", "FindIt-Nano", "-q"]
    assert calls == [(step, flags) for step in (1, 2, 3)]
    logged = [entry for entry in trainer.state.log_history if f"findit/{DATA}" in entry]
    assert logged == [{"step": step, f"findit/{DATA}": 100.0} for step in (1, 3)]
    assert f"{Path('training', 'checkpoint-2')}: findit run ended with status 1" in caplog.text


def test_a_misspelt_dataset_is_refused_before_the_training() -> None:
    with pytest.raises(ValueError, match="Pascal"):
        findit.checkpoint_callback("FindIt_Pascl_xyxy_json", name="ft")
