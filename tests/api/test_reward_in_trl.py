"""Our reward in the real TRL: a tiny model learns to answer with the right box."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vlmeval_findit as findit

PLACES = {"left": (0, 0, 320, 480), "right": (320, 0, 640, 480), "top": (0, 0, 640, 240)}
REPLIES = [
    "[0, 0, 500, 1000]",
    '[{"bbox": [500, 0, 1000, 1000]}]',
    "[0, 0, 1000, 500]",
    "[0, 0, 90, 90]",
    "[]",
    "nowhere",
]
FORMATS = {"left": "xyxy_text", "right": "xyxy_json", "top": "xyxy_text"}


def tiny_model() -> tuple[Any, Any]:
    """Return a model of which each token is a whole reply, and its tokenizer."""
    import tokenizers as tk
    import torch
    import transformers as hf

    words = ["<pad>", "<end>", "<unk>", *PLACES, *REPLIES]
    model = tk.models.WordLevel({word: at for at, word in enumerate(words)}, unk_token="<unk>")
    plain = tk.Tokenizer(model)
    plain.add_tokens([tk.AddedToken(reply, normalized=False) for reply in REPLIES])
    plain.pre_tokenizer = tk.pre_tokenizers.WhitespaceSplit()
    tokenizer = hf.PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="<end>", padding_side="left"
    )
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 2}
    ids = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 1}
    config = hf.LlamaConfig(vocab_size=len(words), num_hidden_layers=1, **sizes, **ids)
    return hf.LlamaForCausalLM(config), tokenizer


@pytest.mark.slow
def test_the_reward_rises(tmp_path: Path) -> None:
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    queries = [
        {
            "prompt": [{"role": "user", "content": place}],
            "truth": {"boxes": [list(box)], "labels": []},
            "size": [640, 480],
            "format": FORMATS[place],
        }
        for place, box in PLACES.items()
    ]
    reward = findit.reward_function("trl", space="grid1000")
    model, tokenizer = tiny_model()
    trainer = trl.GRPOTrainer(
        model,
        reward_funcs=[reward],
        args=trl.GRPOConfig(
            str(tmp_path),
            max_steps=40,
            per_device_train_batch_size=24,
            num_generations=8,
            max_completion_length=1,
            learning_rate=0.02,
            lr_scheduler_type="constant",
            mask_truncated_completions=False,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=False,
            seed=0,
        ),
        train_dataset=datasets.Dataset.from_list(queries * 8),
        processing_class=tokenizer,
    )
    trainer.train()
    steps = [line for line in trainer.state.log_history if "rewards/findit_f1/mean" in line]
    rewards = [step["rewards/findit_f1/mean"] for step in steps]
    assert sum(rewards[:3]) / 3 < 0.5 < 0.9 < sum(rewards[-3:]) / 3, rewards
