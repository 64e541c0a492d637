"""The error of a call without an answer, and what the status of a reply says: may it pass?"""

from __future__ import annotations

from copy import copy

from ...core import quoted_line
from .spending import NOTHING_STATED, Usage

# That call may pass when it is repeated: these, and from 500 on all but NOT_SUPPORTED
RETRIED_STATUSES = frozenset({408, 425, 429})
BUSY_STATUSES = frozenset({429, 503, 529})  # of those: too many calls; 529 is Anthropic's

# That call never passes, others may
NOT_SUPPORTED = 501
NOT_TAKEN_STATUSES = frozenset({400, 422, NOT_SUPPORTED})  # a server does not take such requests

# No call passes
DENIED_STATUSES = frozenset({401, 403, 404, 405, 410})  # key, permission, model or address
HOPELESS_STATUSES = DENIED_STATUSES | {402, 407}  # 402: credit, 407: a proxy's password

LONGEST_MESSAGE = 500  # characters stored of an error's message


class CallError(Exception):
    """A call without an answer; the message is one line without secrets."""

    def __init__(
        self,
        message: str,
        status: int = 0,
        *,
        retry_after: float | None = None,
        transient: bool = False,
        hopeless: bool = False,
        worked_on: bool = False,
        arrived: bool = False,
        unread: bool = False,
        lasting: bool = False,
        unreached: bool = False,
        usage: Usage = NOTHING_STATED,
    ) -> None:
        super().__init__(quoted_line(message, LONGEST_MESSAGE))
        self.status = status  # 0: no reply
        self.retry_after = retry_after  # seconds
        may_pass = status in RETRIED_STATUSES or (status >= 500 and status != NOT_SUPPORTED)
        self.transient = transient or may_pass
        self.hopeless = hopeless  # the next call would fail too
        self.worked_on = worked_on  # it may be billed: :func:`.sent_whole.may_be_billed`
        self.arrived = arrived  # with a whole reply
        self.usage = usage  # what its reply says of its cost
        self.unread = unread  # a reply came, in a form without an answer; other calls may get it
        self.lasting = lasting  # it would probably come again, and be paid: one repeat shows it
        self.unreached = unreached  # no connection was made: nothing listens, or no such host
        self.repeated = False  # all first calls at its server were refused in these words
        self.certain = False  # a single error of this kind tells that it is hopeless

    @property
    def is_charged(self) -> bool:
        """Whether the attempt is charged."""
        return self.worked_on or self.usage.says_something

    def without_traces(self) -> CallError:
        """Let go of the frames and errors that it came from."""
        self.__traceback__ = None
        self.__context__ = None
        self.__cause__ = None
        return self

    def with_note(self, note: str) -> CallError:
        """Copy it with words behind its message."""
        if not note:
            return self
        same = copy(self)
        same.args = (f"{self}{note}",)
        return same

    def of_another(self) -> CallError:
        """Copy it for a call that failed because of it, without its cost."""
        same = copy(self)
        same.usage = NOTHING_STATED
        same.worked_on = False
        return same
