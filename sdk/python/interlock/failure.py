"""How a step says that this attempt came to nothing. What follows is the manifest's policy."""

from __future__ import annotations

from datetime import timedelta

from .rejection import Rejection


class Failure(Exception):
    """Why an attempt failed, and whether another one could help.

    Raised by a step; made by :meth:`retry` and :meth:`permanent`. Nothing that the attempt did since its last accepted
    save remains.
    """

    def __init__(self, reason: str, *, is_permanent: bool, code: str, retry_after: timedelta | None) -> None:
        super().__init__(reason)
        self.reason = reason
        """The sentence for people."""
        self.is_permanent = is_permanent
        """Whether retries would not help."""
        self.code = code
        """The word for programs."""
        self.retry_after = retry_after
        """The earliest next attempt, if the step named one."""

    @classmethod
    def retry(cls, reason: object, *, code: str = "failed", after: timedelta | None = None) -> Failure:
        """Try again, by the state's declared retry policy; not earlier than ``after``."""
        return cls(str(reason), is_permanent=False, code=code, retry_after=after)

    @classmethod
    def permanent(cls, reason: object, *, code: str = "failed") -> Failure:
        """Retries would not help: take the declared failure path at once."""
        return cls(str(reason), is_permanent=True, code=code, retry_after=None)

    @classmethod
    def of(cls, rejection: Rejection) -> Failure:
        """What a rejection that nobody caught becomes."""
        return cls(
            str(rejection),
            is_permanent=not rejection.retryable,
            code=rejection.code,
            retry_after=rejection.retry_after,
        )

    def __str__(self) -> str:
        following = "permanent" if self.is_permanent else "retry"
        return f"{self.code} ({following}): {self.reason}"
