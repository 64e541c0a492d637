"""What all tests share: the benchmark's data beside the clone, and an environment of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent

OWN_SETTINGS = (
    "FINDIT_SPACE",
    "FINDIT_READS_LIKE",
    "FINDIT_PROMPTS",
    "FINDIT_TABLES",
    "FINDIT_IMAGES",
    "FINDIT_CONFIG",
    "FINDIT_SKIP_MISSING",
    "FINDIT_REPLAY",
)
"""Settings of a user's shell that must not reach a test."""


@pytest.fixture(scope="session")
def lmu_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """VLMEvalKit's data folder of this session: empty at its start."""
    return tmp_path_factory.mktemp("LMUData")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, lmu_data: Path) -> None:
    for name in OWN_SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LMUData", str(lmu_data))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with subsets and scoring cases: $FINDIT_SHARED, or beside the clone."""
    folder = Path(os.environ.get("FINDIT_SHARED") or REPOSITORY.parent / "shared")
    if not (folder / "findit-subsets").is_dir():
        reason = f"no findit-subsets in {folder}: set FINDIT_SHARED to the folder that has it"
        if os.environ.get("FINDIT_REQUIRE_SHARED") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def subsets(shared: Path) -> Path:
    """The release's Parquet subsets."""
    return shared / "findit-subsets"


@pytest.fixture(scope="session")
def cases(shared: Path) -> Path:
    """The scoring cases of the revised release."""
    return shared / "parity" / "scoring_cases.jsonl.gz"
