"""Real models on this machine through run_findit.py: served by transformers, and probed."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from host_runs import RUN_FINDIT, environment, predictions, require_host, run

from vlmeval_findit.models import NANO, NANO_PX, to_host_message
from vlmeval_findit.serving import LocalServers, ServeOptions

pytestmark = [pytest.mark.host, pytest.mark.slow]

DATA = "FindIt_Demo_insdet_xyxy_json"
"""Three images and four texts a message: their places matter."""


def expected_replies(checkpoint: Path, messages: list[list[dict[str, str]]]) -> list[str]:
    """Return what transformers itself answers, greedily, to the messages of rows."""
    import torch
    from PIL import Image
    from transformers import AutoModelForImageTextToText, AutoProcessor

    processor = AutoProcessor.from_pretrained(checkpoint)
    model = AutoModelForImageTextToText.from_pretrained(checkpoint, dtype=torch.float32).eval()
    how = {"add_generation_prompt": True, "tokenize": True, "return_dict": True}
    replies = []
    for message in messages:
        content: list[dict[str, Any]] = [
            {"type": "image", "image": Image.open(part["value"]).convert("RGB")}
            if part["type"] == "image"
            else {"type": "text", "text": part["value"]}
            for part in message
        ]
        turns = [{"role": "user", "content": content}]
        inputs = processor.apply_chat_template(turns, return_tensors="pt", **how)
        with torch.no_grad():
            tokens = model.generate(**inputs, do_sample=False, max_new_tokens=768)
        new = tokens[0, inputs["input_ids"].shape[1] :]
        # The server leaves special tokens in a reply, but its end token.
        text = processor.decode(new, skip_special_tokens=False)
        replies.append(text.removesuffix("<|im_end|>").strip())
    return replies


def test_a_server_answers_what_the_model_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_host()
    for name in ("torch", "transformers", "fastapi", "uvicorn", "openai"):
        pytest.importorskip(name, reason=f"{name} is absent: pip install 'transformers[serving]'")
    from tiny_checkpoints import build

    checkpoint = build("Qwen3-VL", tmp_path / "checkpoint")
    lmu = tmp_path / "lmu"
    how = ServeOptions("transformers", 0, arguments=("--device", "cpu", "--dtype", "float32"))
    with closing(LocalServers(how, str(checkpoint), "Qwen3-VL", tmp_path / "logs")) as running:
        running.start()
        while not (living := running.living()):
            time.sleep(0.1)
        model = ["--model", f"Qwen3-VL={checkpoint}", "--base-url", living[0].url]
        asked = ["--data", DATA, "--limit", "3", *model]
        done = run(RUN_FINDIT, asked, tmp_path, environment(lmu))
    assert done.returncode == 0, done.stdout
    path = predictions(tmp_path / "outputs", "Qwen3-VL", DATA)
    rows = json.loads(path.read_text())
    assert len(rows) == 3
    assert path.with_name(f"{path.stem}_score.csv").is_file()

    monkeypatch.setenv("LMUData", str(lmu))
    from vlmeval_findit.data import load_dataset
    from vlmeval_findit.engine import prompts_of

    prompts = prompts_of(load_dataset(DATA))
    messages = [to_host_message(prompts.message(row["index"])) for row in rows]
    for row, message in zip(rows, messages, strict=True):
        record = json.loads(row["extra_records"])["findit"]
        assert record["finish_reason"] in ("stop", "length")
        assert record["tokens"]["prompt"] > 0
        assert record["space"] == {"kind": "grid1000"}
        assert len(record["images"]) == sum(part["type"] == "image" for part in message) > 1
    replies = [row["prediction"].strip() for row in rows]
    assert replies == expected_replies(checkpoint, messages)


THOUSANDTHS = "thousandths of width and height, xyxy"
RESIZED = "pixels after smart_resize (2304 to 28224, factor 24), xywh"


@pytest.mark.parametrize(
    ("model", "form", "means", "space", "declares"),
    [
        (NANO, "xyxy_json", THOUSANDTHS, "pixels", "pixels of the image, xyxy"),
        # On large pictures the pixels of what it was shown are not the picture's.
        (NANO_PX, "xywh_json", RESIZED, "pixels", "pixels of the image, xywh"),
        (NANO_PX, "xywh_json", RESIZED, "grid1000", "thousandths of width and height, xywh"),
    ],
)
def test_a_model_on_this_machine_is_probed(
    model: str, form: str, means: str, space: str, declares: str, tmp_path: Path
) -> None:
    require_host()
    pytest.importorskip("torch")

    def probe(*flags: str) -> tuple[int, str]:
        asked = ["probe", "--model", model, "--limit", "30", "--format", form, *flags]
        done = run(RUN_FINDIT, asked, tmp_path, environment(tmp_path / "lmu"))
        return done.returncode, done.stdout

    status, out = probe()
    assert status == 0, out
    assert f"declared {means}: confirmed" in " ".join(out.split())
    # What was asked is not asked again, and a stated space is compared with the answers.
    status, out = probe("--space", space)
    assert status == 1, out
    assert "answers of an earlier probe are in" in out
    assert f"declared {declares}; the answers are {means}" in " ".join(out.split())
