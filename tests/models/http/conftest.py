"""No test of services sees the user's keys and addresses."""

from __future__ import annotations

import pytest

from vlmeval_findit.models import PROVIDERS


@pytest.fixture(autouse=True)
def _no_keys_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in PROVIDERS.values():
        for name in (*row.keys, row.address_variable):
            monkeypatch.delenv(name, raising=False)
