"""A real ``transformers serve`` with a tiny Qwen3-VL, through run_findit.py to a score."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from host_runs import RUN_FINDIT, environment, predictions, require_host, run

from vlmeval_findit.core.question import PartKind
from vlmeval_findit.models.model_client import to_host_message
from vlmeval_findit.serving.processes import LocalServers
from vlmeval_findit.serving.programs import ServeOptions

pytestmark = [pytest.mark.host, pytest.mark.slow]

DATA = "FindIt_Demo_insdet_xyxy_json"
"""Three images and four texts a message: their places matter."""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_host()
    for name in ("torch", "transformers", "fastapi", "uvicorn", "openai"):
        pytest.importorskip(name, reason=f"{name} is absent: pip install 'transformers[serving]'")
    from tiny_checkpoints import build

    return build("Qwen3-VL", tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="module")
def url(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    how = ServeOptions("transformers", 0, arguments=("--device", "cpu", "--dtype", "float32"))
    logs = tmp_path_factory.mktemp("serve")
    with closing(LocalServers(how, str(checkpoint), "Qwen3-VL", logs)) as running:
        running.start()
        while not (actual := running.living()):
            time.sleep(0.1)
        yield actual[0].url


def expected_reply(checkpoint: Path, message: list[dict[str, str]]) -> str:
    """Return what transformers itself answers, greedily, to the message of a row."""
    import torch
    from PIL import Image
    from transformers import AutoModelForImageTextToText, AutoProcessor

    processor = AutoProcessor.from_pretrained(checkpoint)
    model = AutoModelForImageTextToText.from_pretrained(checkpoint, dtype=torch.float32).eval()
    content: list[dict[str, Any]] = [
        {"type": "image", "image": Image.open(part["value"]).convert("RGB")}
        if part["type"] == "image"
        else {"type": "text", "text": part["value"]}
        for part in message
    ]
    inputs = processor.apply_chat_template(
        [{"role": "user", "content": content}],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
    )
    with torch.no_grad():
        tokens = model.generate(**inputs, do_sample=False, max_new_tokens=768)
    new = tokens[0, inputs["input_ids"].shape[1] :]
    # The server leaves special tokens in a reply, but its end token.
    text: str = processor.decode(new, skip_special_tokens=False)
    return text.removesuffix("<|im_end|>").strip()


def test_a_server_answers_what_the_model_answers(
    one_thread: None, url: str, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lmu = tmp_path / "lmu"
    done = run(
        RUN_FINDIT,
        ["--data", DATA, "--base-url", url, "--model", f"Qwen3-VL={checkpoint}", "--limit", "3"],
        tmp_path,
        environment(lmu),
    )
    assert done.returncode == 0, done.stdout
    path = predictions(tmp_path / "outputs", "Qwen3-VL", DATA)
    rows = json.loads(path.read_text())
    assert len(rows) == 3
    assert path.with_name(f"{path.stem}_score.csv").is_file()

    monkeypatch.setenv("LMUData", str(lmu))
    from vlmeval_findit.benchmarks.findit.annotation_tables import load_task
    from vlmeval_findit.engine.calls import prompts_of

    prompts = prompts_of(load_task(DATA))
    for row in rows:
        record = json.loads(row["extra_records"])["findit"]
        assert record["finish_reason"] in ("stop", "length")
        assert record["tokens"]["prompt"] > 0
        assert record["space"] == {"kind": "grid1000"}
        images = [part for part in prompts.message(row["index"]) if part.kind is PartKind.IMAGE]
        assert len(record["images"]) == len(images) > 1
        reported = expected_reply(checkpoint, to_host_message(prompts.message(row["index"])))
        assert row["prediction"].strip() == reported
