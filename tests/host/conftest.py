"""VLMEvalKit with FindIt registered, and an empty data folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from host_runs import require_host


@pytest.fixture(scope="module")
def lmu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the data folder of a module's runs."""
    require_host()
    folder = tmp_path_factory.mktemp("lmu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(folder))
        yield folder


@pytest.fixture(scope="module")
def host() -> SimpleNamespace:
    """Return VLMEvalKit's modules, with FindIt registered."""
    require_host()
    import vlmeval.config
    import vlmeval.dataset
    import vlmeval.vlm

    from vlmeval_findit.host import register

    register()
    return SimpleNamespace(dataset=vlmeval.dataset, config=vlmeval.config, vlm=vlmeval.vlm)


@pytest.fixture
def asked_by_host(lmu: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have VLMEvalKit's jobs ask in this process; what they said of answers is forgotten after."""
    from vlmeval_findit.host import OUTCOMES, register

    register()
    monkeypatch.delenv("PRED_FORMAT", raising=False)
    monkeypatch.setenv("LMUData", str(lmu))
    yield
    OUTCOMES.clear()
