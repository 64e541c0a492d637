"""Local models inside VLMEvalKit: names, configuration, batches ahead, resume, whole runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from adapters import train_adapter
from host_runs import RUN_FINDIT, environment, predictions, replies, require_host, run

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from tiny_checkpoints import build  # noqa: E402

pytestmark = [pytest.mark.host, pytest.mark.slow]

DATA = "FindIt_Demo_xyxy_json"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build("Qwen3-VL", tmp_path_factory.mktemp("checkpoints") / "Qwen3-VL"))


def test_a_checkpoint_goes_by_the_name_of_its_family(
    host: SimpleNamespace, checkpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vlmeval_findit.host import make_known

    known = dict(host.config.supported_VLM)
    monkeypatch.setattr(host.config, "supported_VLM", known)
    make_known("Qwen3-VL-8B", checkpoint)
    expected = {"model_path": checkpoint, "like": "Qwen3-VL"}
    assert known["Qwen3-VL-8B"].keywords == expected
    with pytest.raises(ValueError, match=r"config\.json says model_type 'qwen3_vl'"):
        make_known("Qwen3.5-4B-nothink", checkpoint)
    make_known("my-ft", checkpoint, "Qwen3-VL")
    assert known["my-ft"].keywords == {"model_path": checkpoint, "like": "Qwen3-VL"}
    with pytest.raises(ValueError, match="is a model of VLMEvalKit"):
        make_known("Qwen3-VL-8B-Instruct", checkpoint)
    with pytest.raises(ValueError, match="did you mean Qwen3-VL"):
        host.vlm.FindItLocalModel("Qwen3VL")


# --- whole runs -----------------------------------------------------------------------------------


def test_an_adapter_runs_under_its_name(checkpoint: str, tmp_path: Path) -> None:
    """With the row of its base, from run to leaderboard; other weights are another model."""
    pytest.importorskip("peft")
    require_host()
    env = environment(tmp_path / "lmu")
    base = tmp_path / "Qwen3-VL-2B-Instruct"
    shutil.copytree(checkpoint, base)
    folder = train_adapter(base, tmp_path / "ft")
    short = ["--data", DATA, "--limit", "2", "--model", f"tuned={folder}"]
    done = run(RUN_FINDIT, [*short, f"Qwen3-VL={base}"], tmp_path, env)
    assert done.returncode == 0, done.stdout[-2000:]
    path = predictions(tmp_path / "outputs", "tuned", DATA)
    assert replies(path) != replies(predictions(tmp_path / "outputs", "Qwen3-VL", DATA))
    (identity,) = (tmp_path / "outputs/tuned").glob("*_identity.json")
    settings = json.loads(identity.read_text())["answering"]["settings"]
    assert settings["adapter_merged"] is True
    assert settings["base"].startswith("sha256:")
    train_adapter(base, folder, seed=2)
    done = run(RUN_FINDIT, short, tmp_path, env)
    assert done.returncode == 2
    assert "revision: recorded sha256:" in done.stdout


def test_a_model_is_asked_in_its_users_words(checkpoint: str, tmp_path: Path) -> None:
    """Through the host too; in other words, or of a class without a system text, it is refused."""
    require_host()
    env = environment(tmp_path / "lmu", OPENAI_API_KEY="none")
    (tmp_path / "system.txt").write_text("You are a detector.")
    (tmp_path / "t.jinja").write_text("{{ images[0] }}Locate {{ label }}.")
    words = ["--system", "system.txt", "--prompt-template", "t.jinja"]
    short = ["--data", DATA, "--limit", "1"]
    plain = [*short, "--model", f"Qwen3-VL={checkpoint}"]
    done = run(RUN_FINDIT, [*plain, *words], tmp_path, env)
    assert done.returncode == 0, done.stdout[-2000:]
    answer = replies(predictions(tmp_path / "outputs", "Qwen3-VL", DATA))
    (identity,) = (tmp_path / "outputs/Qwen3-VL").glob("*_identity.json")
    asked = json.loads(identity.read_text())
    assert asked["prompts"].startswith("custom-")
    assert asked["custom_prompt"]["system"] == "You are a detector."
    done = run(RUN_FINDIT, plain, tmp_path, env)
    assert done.returncode == 2
    assert "prompts: recorded custom-" in done.stdout
    done = run(RUN_FINDIT, [*plain, "--work-dir", "other"], tmp_path, env)
    assert done.returncode == 0, done.stdout[-2000:]
    assert replies(predictions(tmp_path / "other", "Qwen3-VL", DATA)) != answer
    stock = [*short, "--model", "instructblip_7b", "--space", "pixels", *words]
    done = run(RUN_FINDIT, stock, tmp_path, env)
    assert done.returncode == 2
    assert "--system: VLMEvalKit's InstructBLIP takes no system text" in done.stdout


def test_the_hosts_class_is_given_a_system_text(host: SimpleNamespace) -> None:
    from vlmeval_findit.host import entry_of, with_system
    from vlmeval_findit.protocol import CustomPrompt

    for name, is_given in (("Qwen3-VL-8B-Instruct", True), ("Qwen3-VL-8B", False)):
        entry = with_system(entry_of(name), CustomPrompt("You are a detector."))
        assert ("system_prompt" in entry.arguments) is is_given, name
        assert ("system_prompt" in entry.given) is is_given, "it is part of every key"
        assert with_system(entry_of(name), CustomPrompt(template="x")) == entry_of(name)


def test_show_prints_what_a_model_sees(checkpoint: str, tmp_path: Path) -> None:
    require_host()
    env = environment(tmp_path / "lmu")
    words = ["data", "show", DATA, "--index", "3", "--model"]
    done = run(RUN_FINDIT, [*words, f"Qwen3-VL={checkpoint}"], tmp_path, env)
    assert done.returncode == 0, done.stdout
    assert "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>Find every" in done.stdout
    assert "image 1: original " in done.stdout
    assert "bounds {'min_pixels': 200704, 'max_pixels': 1605632}" in done.stdout
    elsewhere = run(RUN_FINDIT, [*words, "Gemma4"], tmp_path, env)
    assert elsewhere.returncode == 0, elsewhere.stdout
    assert "cannot be shown here: google/gemma-4-E4B-it" in elsewhere.stdout
