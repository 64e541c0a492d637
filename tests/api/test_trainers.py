"""Rewards as TRL, verl and OpenRLHF call them; checkpoints inside a training of transformers."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from pages import PAGES, blocks
from scored_runs import World, speaking

import vlmeval_findit as findit
from vlmeval_findit import sweeps
from vlmeval_findit.sweeps import Checkpoint, is_complete

DATA = "FindIt_Pascal_xyxy_json_bbox_2d"

BOX = [[64.0, 48.0, 320.0, 240.0]]
QUERY: dict[str, Any] = {"truth": BOX, "size": [640, 480]}
QUERY |= {"format": "xyxy_text", "space": "grid1000"}
TWO = {"boxes": [*BOX, [0, 0, 9, 9]], "labels": ["cat", "dog"], "frames": [0, 2], "ignored": None}
# Each is read in another format or space, and is right or wrong by its columns alone.
MIXED: list[tuple[str, dict[str, Any], float]] = [
    ("[100, 100, 500, 500]", {}, 1.0),
    ("[100, 100, 400, 400]", {"format": "xywh_text"}, 1.0),
    ('[{"bbox_2d": [0.1, 0.1, 0.5, 0.5]}]', {"format": "xyxy_json_bbox_2d", "space": "unit"}, 1.0),
    ("[64, 48, 320, 240]", {"space": {"kind": "no_rescale", "side": None}}, 1.0),
    ("[64, 48, 320, 240]", {"space": '{"kind": "no_rescale", "scene_max_size": 640}'}, 1.0),
    ("[64, 48, 320, 240]", {"size": [1000, 1000]}, 1.0),
    ("<plan>[0, 0, 9, 9]</plan>[100, 100, 500, 500]", {"thought_marks": "<plan> </plan>"}, 1.0),
    (
        "<aim>[0, 0, 9, 9]</aim>[100, 100, 500, 500]",
        {"thought_marks": ["<aim>", "</aim>"]},
        1.0,
    ),
    ("[]", {"truth": []}, 1.0),
    ("", {"truth": {"boxes": [], "labels": None}}, 0.0),
    (
        '[{"frame_idx": 1, "label": "cat", "bbox": [100, 100, 500, 500]}]',
        {"truth": TWO, "format": "xyxy_json", "frames": 3, "multilabel": True},
        2 / 3,
    ),
    (
        "[200, 300, 400, 500]",
        {"truth": {"boxes": [], "ignored": [{"box": [128, 144, 256, 240], "crowd": True}]}},
        1.0,
    ),
]
REPLIES = [reply for reply, _, _ in MIXED]
QUERIES = [{**QUERY, **change} for _, change, _ in MIXED]
RIGHT = [value for _, _, value in MIXED]


def test_trl_passes_columns_and_more() -> None:
    function = findit.reward_function("trl")
    # As ``datasets`` gives them: what a query lacks is None.
    names = {name: None for query in QUERIES for name in query}
    columns = {name: [query.get(name) for query in QUERIES] for name in names}
    chats = [[{"role": "assistant", "content": reply}] for reply in REPLIES]
    for completions in (REPLIES, chats):
        rewards = function(
            prompts=["?"] * len(MIXED),
            completions=completions,
            completion_ids=[[1]] * len(MIXED),
            trainer_state=object(),
            image=[None] * len(MIXED),
            **columns,
        )
        assert rewards == pytest.approx(RIGHT)
        assert {type(value) for value in rewards} == {float}
    assert function.__name__ == "findit_f1"


def test_verl_passes_one_reply_or_a_batch() -> None:
    compute_score = findit.reward_function("verl")
    extras = [{**query, "num_turns": None, "rollout_reward_scores": {}} for query in QUERIES]
    truths = [extra.pop("truth") for extra in extras]
    ones = [
        compute_score(data_source="mine", solution_str=reply, ground_truth=true, extra_info=extra)
        for reply, true, extra in zip(REPLIES, truths, extras, strict=True)
    ]
    batch = compute_score(
        data_sources=np.array(["mine"] * len(MIXED), dtype=object),
        solution_strs=REPLIES,
        ground_truths=[np.array(true) if isinstance(true, list) else true for true in truths],
        extra_infos=np.array(extras, dtype=object),
        reward_router_address=None,
    )
    assert ones == pytest.approx(RIGHT)
    assert batch == pytest.approx(RIGHT)
    assert {type(value) for value in [*ones, *batch]} == {float}


def test_openrlhf_passes_decoded_queries_and_labels() -> None:
    torch = pytest.importorskip("torch")
    reward_func = findit.reward_function("openrlhf")
    prompt = "<|im_start|>user\n<image>Where?<|im_end|>\n<|im_start|>assistant\n"
    decoded = prompt.replace("<image>", "<|vision_start|>" + "<|image_pad|>" * 9)
    for label in (dict, json.dumps):
        values = []
        for at, (reply, query) in enumerate(zip(REPLIES, QUERIES, strict=True)):
            start = (prompt, decoded)[at % 2]
            result = reward_func([f"{start}{reply}<|im_end|>\n"], [prompt], [label(query)])
            # As OpenRLHF makes its experience of it.
            values += torch.tensor([result["rewards"]]).tolist()
            assert torch.equal(result["rewards"], result["scores"])
        assert values == pytest.approx(RIGHT)
    # The end of a prompt may stand in it several times.
    twice = prompt + "[1, 2, 3, 4]<|im_end|>\n" + prompt
    reply = "<|begin_of_box|>[100, 100, 500, 500]<|end_of_box|><|user|>"
    assert reward_func(["x" + twice + reply], [twice], [QUERY])["rewards"].tolist() == [1]
    with pytest.raises(ValueError, match="the prompt does not end in its query"):
        reward_func(["something else"], [prompt], [QUERY])


def test_fixed_columns_and_other_rewards() -> None:
    fixed: Any = {"format": "xyxy_text", "space": "grid1000", "size": (640, 480)}
    iou = findit.reward_function("trl", "iou", **fixed)
    assert iou(prompts=[""], completions=["[100, 100, 500, 300]"], truth=[BOX]) == [0.5]
    adherence = findit.reward_function("verl", by="adherence")
    assert adherence("mine", "[0, 0, 9, 9]", BOX, QUERY) == 1
    pointing = findit.reward_function("verl", by="pointing", format="point_text")
    assert pointing("mine", "[200, 200]", BOX, QUERY) == 1


@pytest.mark.parametrize(
    ("trainer", "by", "fixed", "message"),
    [
        ("trll", "f1", {}, "unknown trainer 'trll': did you mean trl"),
        ("trl", "miou", {}, "by: unknown reward 'miou': did you mean iou"),
        ("trl", "pointing", {"format": "xyxy_text"}, "xyxy has no pointing"),
        ("trl", "f1", {"sizes": (1, 1)}, "unknown column 'sizes': did you mean size"),
        ("trl", "f1", {"space": "grid100"}, "unknown coordinate space 'grid100'"),
    ],
)
def test_what_is_refused_before_training(
    trainer: Any, by: Any, fixed: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        findit.reward_function(trainer, by, **fixed)
    pytest.importorskip("transformers")  # A callback is of a class of it
    with pytest.raises(ValueError, match="Pascal"):
        findit.checkpoint_callback("FindIt_Pascl_xyxy_json", name="ft")


def test_a_query_without_a_column_is_refused() -> None:
    with pytest.raises(ValueError, match="query 0: size is missing; a query needs truth, size"):
        findit.reward_function("trl")(prompts=[""], completions=["[]"], truth=[[]])
    with pytest.raises(ValueError, match="query 0: truth is missing"):
        findit.reward_function("verl")("mine", "[]", None, {**QUERY, "truth": None})


class _Orm:
    """As in ``swift.rewards``."""

    def __init__(self, args: Any = None, **options: Any) -> None:
        self.args = args


def test_the_files_of_the_page_are_what_trainers_load(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    rewards = ModuleType("swift.rewards")
    orms: dict[str, Any] = {}
    vars(rewards).update(ORM=_Orm, orms=orms)
    monkeypatch.setitem(sys.modules, "swift", ModuleType("swift"))
    monkeypatch.setitem(sys.modules, "swift.rewards", rewards)
    names: dict[str, Any] = {}
    for block in blocks(PAGES["docs/how-to/train.md"]):
        if block.info == "python" and ">>>" not in block.text:
            exec(block.text, names)
    assert names["compute_score"]("mine", REPLIES[0], BOX, QUERY) == 1
    many = {name: [value] for name, value in QUERY.items()}
    assert orms["findit"](args=None)(REPLIES[:1], trainer_state=None, **many) == [1]
    assert names["reward_func"]([f"Where?{REPLIES[0]}"], ["Where?"], [QUERY])["rewards"] == 1


# --- checkpoints ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_failed_evaluation_does_not_end_the_training(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    monkeypatch.chdir(world.folder)
    calls = []

    def evaluate(checkpoint: Checkpoint, name: str, flags: Sequence[str]) -> int:
        assert is_complete(checkpoint.path)
        model = checkpoint.model(name)
        calls.append((model, list(flags)))
        if checkpoint.step == 2:
            return 1
        world.predict(model, DATA, speaking(DATA, 1.0), folder=f"../there/{model}")
        return 0

    monkeypatch.setattr(sweeps, "evaluate_checkpoint", evaluate)
    options: Any = {"like": "FindIt-Nano", "work_dir": "there", "flags": ["-q"]}
    callback = findit.checkpoint_callback(DATA, name="ft", **options)
    arguments = TrainingArguments(
        "training", max_steps=3, save_steps=1, use_cpu=True, report_to=[], disable_tqdm=True
    )
    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=11))
    words = [{"input_ids": [1, 2], "labels": [1, 2]}] * 8
    trainer = Trainer(model, arguments, train_dataset=words, callbacks=[callback])  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING):
        trainer.train()
    flags = ["--data", DATA, "--work-dir", "there", "--like", "FindIt-Nano", "-q"]
    assert calls == [(f"ft-step-{step}", flags) for step in (1, 2, 3)]
    logged = [entry for entry in trainer.state.log_history if f"findit/{DATA}" in entry]
    assert logged == [{"step": step, f"findit/{DATA}": 100.0} for step in (1, 3)]
    assert f"{Path('training', 'checkpoint-2')}: findit run ended with status 1" in caplog.text
