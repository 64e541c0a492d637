"""What the status of a failed call says: may it pass, for this request or for any?"""

from __future__ import annotations

from vlmeval_findit.models import BUSY_STATUSES, HOPELESS_STATUSES, NOT_TAKEN_STATUSES, CallError


def test_a_status_says_one_thing_about_another_try() -> None:
    statuses = range(400, 600)
    may_pass = {status for status in statuses if CallError("", status).transient}
    assert may_pass >= BUSY_STATUSES
    for status in statuses:
        said = (may_pass, NOT_TAKEN_STATUSES, HOPELESS_STATUSES)
        assert sum(status in each for each in said) <= 1, status
