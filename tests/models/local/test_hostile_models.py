"""Folders of models that try to take the machine: refused in bounded time and memory."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

import pytest
from hostile_models import FILES, PARTIAL, TEMPLATES, told_of

from vlmeval_findit.benchmarks import benchmark_of
from vlmeval_findit.data import load_dataset
from vlmeval_findit.models import NANO, SHIPPED, load_local_client
from vlmeval_findit.models.local import template_trial
from vlmeval_findit.protocol import NUMPY, TRANSFORMERS, located
from vlmeval_findit.storage import image_folder

DATA = "FindIt_Scenes_mini_xyxy_json"
# What harms nobody: it answers, if badly, or as a model without a chat template does
MAY_ANSWER = {
    "pickle: training arguments",  # Nobody reads them
    "processor: no deviation",
    "tokenizer config: no image",
    "generation: text for an end",
}
FAST = ("a product of text", "config: layers without end", "weights: overlap",
        "pickle: an object of itself", "tokenizer: deep")  # fmt: skip
OTHERS = [name for name in (*TEMPLATES, *PARTIAL, *FILES) if name not in FAST]


@pytest.fixture
def one_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try templates for the least that a system can limit, not three seconds."""
    monkeypatch.setattr(template_trial, "_SECONDS", 1)


@pytest.fixture(autouse=True)
def _offline(demo_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def answer(folder: Path | str, engine: str) -> str:
    """Load the model of a folder, and ask it one question."""
    client = load_local_client(NANO, str(folder), engine=engine)
    dataset = load_dataset(DATA)
    images = image_folder(dataset.variant.images).path
    words = benchmark_of(dataset.variant).prompts()[0]
    query = next(iter(dataset.queries.values()))
    message = located(words.message(query, dataset.variant), images)
    return client.runner.answer_batch([message], dataset.variant)[0].text


@cache
def prepare_forks(engine: str) -> None:
    """Ask a harmless model: forks have what it imports, and the images that it is asked about."""
    assert answer(SHIPPED[NANO], engine)


def judge(name: str, engine: str, folder: Path) -> None:
    prepare_forks(engine)
    change = {**TEMPLATES, **PARTIAL, **FILES}[name]
    told = told_of(folder, change, partial(answer, engine=engine))
    if told.startswith("answer"):
        assert name in MAY_ANSWER, told
        return
    assert str(folder) in told or "chat template" in told, told
    assert told.count("\n") < 3


@pytest.mark.usefixtures("one_second")
@pytest.mark.parametrize("name", FAST)
def test_numpy_is_not_taken(name: str, tmp_path: Path) -> None:
    judge(name, NUMPY, tmp_path / "model")


@pytest.mark.slow
@pytest.mark.usefixtures("one_second")
@pytest.mark.parametrize("name", OTHERS)
def test_numpy_is_not_taken_by_others(name: str, tmp_path: Path) -> None:
    judge(name, NUMPY, tmp_path / "model")


@pytest.mark.slow
@pytest.mark.usefixtures("one_second")
@pytest.mark.parametrize("name", [*TEMPLATES, *FILES])
def test_transformers_is_not_taken(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    judge(name, TRANSFORMERS, tmp_path / "model")
