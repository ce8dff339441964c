"""Why a request is not answered: LibreTranslate's clients read `error`, others `code`."""

import math
from typing import Any


class RefusedError(Exception):
    """A status, a code in snake case, a sentence for people, and when to try again in seconds."""

    def __init__(self, status: int, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after = retry_after

    def body(self, request_id: str) -> dict[str, Any]:
        return {"error": str(self), "code": self.code, "request_id": request_id}

    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"retry-after": str(max(1, math.ceil(self.retry_after)))}


def bad_request(message: str, code: str = "bad_request") -> RefusedError:
    return RefusedError(400, code, message)
