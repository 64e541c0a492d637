"""Who answers for an entry: kind, key and description of every kind are as they were."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from deployment_rows import ROWS, SYSTEM, Row
from fake_program import Machine
from few_fast import every_nth_fast
from host_runs import require_host

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.engine import KINDS, Asking, InVLMEvalKit, OnRay, deployment_of
from vlmeval_findit.models import PROVIDERS, SHIPPED, ModelEntry
from vlmeval_findit.protocol import Described


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Programs that serve, and a folder with the texts that entries name."""
    built = Machine(tmp_path)
    for name, value in built.environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "system.txt").write_text(SYSTEM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENROUTER_BASE_URL", raising=False)
    # In a light installation NumPy would answer.
    with_torch = "vlmeval_findit.models.local.which_engine.find_spec"
    monkeypatch.setattr(with_torch, lambda name: True)
    yield built
    assert built.ends()


def plain(value: Any) -> Any:
    """Return a value as JSON, without this machine's folder of the shipped checkpoints."""
    text = json.dumps(value, default=str)
    for mark, name in (("NANO-PX", "FindIt-Nano-px"), ("NANO", "FindIt-Nano")):
        text = text.replace(json.dumps(SHIPPED[name]), f'"{mark}"')
    return json.loads(text)


def recorded(described: Described) -> Any:
    answering = asdict(described.answering)
    server = answering["server"]
    if server is not None:
        answering["server"] = server.split()[0]  # without the version that is installed
    for name in ("headers", "proxy"):  # they were not recorded
        del answering[name]
    return plain({"answering": answering, "space": described.space, "known": described.known})


OF_FINDIT = [row for row in ROWS if "VLMEvalKit" not in row.name]
OF_VLMEVALKIT = [row for row in ROWS if "VLMEvalKit" in row.name]


@pytest.mark.parametrize("row", every_nth_fast(OF_FINDIT, 3), ids=str)
def test_keys_and_descriptions_are_as_they_were(row: Row, machine: Machine) -> None:
    deployment = row.deployment()
    assert deployment.what == row.access
    for name, described in row.described.items():
        assert plain(deployment.key(parse(name))) == row.key
        assert recorded(deployment.describe(parse(name))) == described


@pytest.mark.host
@pytest.mark.parametrize("row", OF_VLMEVALKIT, ids=str)
def test_models_of_vlmevalkit_are_known_as_they_were(row: Row, machine: Machine) -> None:
    require_host()
    from vlmeval_findit.host import made_in_vlmevalkit

    deployment = row.deployment()
    assert deployment.what == row.access
    made = made_in_vlmevalkit(deployment)
    for name, described in row.described.items():
        for known in (deployment, made):
            assert plain(known.key(parse(name))) == row.key
        assert recorded(made.describe(parse(name))) == described


def test_every_kind_has_a_row() -> None:
    """A row of a model on Ray is called what it is without Ray."""
    called = {kind.called for kind in KINDS}
    assert {row.access for row in ROWS} == called - {OnRay.called}
    assert any(row.flags.get("executor") == "ray" for row in ROWS)


@pytest.mark.parametrize("flag", ["base_url", "provider"])
def test_a_baseline_is_asked_nowhere_else(flag: str) -> None:
    given: Any = {flag: "http://127.0.0.1:9/v1" if flag == "base_url" else "openai"}
    with pytest.raises(ValueError, match="FullImage is a baseline and calls no server"):
        deployment_of(ModelEntry("FullImage", **given))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_log_probabilities_are_asked_of_who_gives_them(provider: str) -> None:
    """Else every call would fail, and the same command again could not help."""
    entry = ModelEntry("Mine", served="x", provider=provider, like="Qwen3-VL")
    for asks in (True, False):  # a dry run, too
        model = deployment_of(entry, Asking(logprobs=True, key="k", asks=asks))
        if PROVIDERS[provider].gives_logprobs:
            model.check()
        else:
            with pytest.raises(ValueError, match=f"--logprobs: {provider} gives no log-prob"):
                model.check()
    deployment_of(entry, Asking(key="k")).check()


def test_an_unknown_name_may_be_of_vlmevalkit() -> None:
    with pytest.raises(ValueError, match="unknown model 'Nobody'"):
        InVLMEvalKit(ModelEntry("Nobody")).check()
