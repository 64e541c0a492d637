"""Where setups are asked: one journal for a deployment, a folder for each setup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.models import ModelEntry
from vlmeval_findit.protocol import PictureSample, Predictions
from vlmeval_findit.reproduction import (
    Answerer,
    AnsweringProgram,
    Experiments,
    Setup,
    choose_figure,
    plan_setup,
)
from vlmeval_findit.storage import PROBE_FILE
from vlmeval_findit.sweeps import Sweep

NANO = ModelEntry("FindIt-Nano", base_url="http://localhost:1/v1")


class StopAskingError(Exception):
    """Raised with what would be asked."""


def stop(sweep: Sweep, prompts: str) -> Sequence[Predictions]:
    raise StopAskingError(sweep, prompts)


REFEXP = choose_figure(ModelEntry("FindIt-Nano"), "Scenes refexp")


def setup_of(entry: ModelEntry = NANO) -> Setup:
    deployment = AnsweringProgram(Answerer.SERVER, "vllm 0.11.0")
    return plan_setup(REFEXP, entry, deployment, PictureSample(500))


def experiments(*deployment: str) -> Experiments:
    return Experiments(stop, Path("work"), Sweep(models=(), max_usd=2.0), deployment)


def asked(setup: Setup) -> tuple[Sweep, str]:
    with pytest.raises(StopAskingError) as stopped:
        experiments().attempt(setup)
    sweep, prompts = stopped.value.args
    return sweep, prompts


def test_a_setup_is_asked_as_a_sweep() -> None:
    setup = setup_of()
    sweep, prompts = asked(setup)
    assert (sweep.models, sweep.variants) == ((setup.entry,), setup.variants)
    assert (sweep.pictures, sweep.max_usd, prompts) == (PictureSample(500), 2.0, "")
    assert sweep.work_dir == experiments().folder(setup)
    assert sweep.work_dir.parent == sweep.journal.parent
    assert sweep.journal.parent.name.startswith("FindIt-Nano-")


OTHER_SETUPS: dict[str, dict[str, Any]] = {
    "figure": {"figure": replace(REFEXP, source="another")},
    "metric": {"figure": replace(REFEXP, set=replace(REFEXP.set, metric="acc@0.75"))},
    "set": {"figure": replace(REFEXP, set_name="another")},
    "format": {"variants": (parse("FindIt_Scenes_refexp_xywh_json"),)},
    "prompt": {"prompts": "glm-1"},
    "settings": {"entry": replace(NANO, settings={"temperature": 1.0})},
    "sample": {"sample": PictureSample(500, seed=1)},
}


@pytest.mark.parametrize("what", OTHER_SETUPS)
def test_another_setup_shares_the_journal_only(what: str) -> None:
    setup = setup_of()
    other = replace(setup, **OTHER_SETUPS[what])
    assert asked(other)[0].journal == asked(setup)[0].journal
    assert experiments().folder(other) != experiments().folder(setup)


def test_another_deployment_shares_nothing() -> None:
    setup = setup_of()
    entries = [
        replace(NANO, base_url="http://localhost:2/v1"),
        replace(NANO, served="other"),
        # The space decides how images are sent.
        replace(NANO, space="pixels"),
    ]
    folders = {experiments().folder(setup_of(entry)).parent for entry in (NANO, *entries)}
    folders |= {experiments("vllm 0.12").folder(setup).parent}
    assert len(folders) == 5


def test_an_experiment_asks_the_first_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    setup = setup_of()
    with pytest.raises(StopAskingError) as stopped:
        experiments().ask(replace(setup, prompts="glm-1"), 50)
    sweep, prompts = stopped.value.args
    assert (sweep.pictures, prompts) == (PictureSample(500, pictures=50), "glm-1")
    assert sweep.journal == asked(setup)[0].journal
    # Commands over a folder of runs leave it out.
    assert sweep.mark == sweep.work_dir.parent / PROBE_FILE
    assert sweep.mark.parent != sweep.journal.parent
