"""What one server refuses of a request, learned from its refusals."""

import re

_TOKEN_FIELDS = ("max_completion_tokens", "max_tokens")


class ServerQuirks:
    """Which fields to send; each is given up once, and only when a server names it."""

    def __init__(self, *, is_openai: bool = True) -> None:
        # Older servers know only the first name, OpenAI's newer models only the second.
        self.token_field = _TOKEN_FIELDS[0 if is_openai else 1]
        self.can_count = True
        """Whether usage may be asked for."""
        self.can_be_strict = True
        self.can_follow_schema = True
        self.can_try_harder = True
        """Whether an effort may be asked for."""
        self._was_swapped = False

    def learn(self, refusal: str, body: bytes) -> bool:
        """Whether the refusal was about a field that the next request can do without."""
        if self._is_about(refusal, self.token_field) and not self._was_swapped:
            self._was_swapped = True
            self.token_field = _TOKEN_FIELDS[1 - _TOKEN_FIELDS.index(self.token_field)]
            return True
        if self.can_count and self._is_about(refusal, "stream_options"):
            self.can_count = False
            return True
        if self.can_be_strict and b'"strict"' in body and self._is_about(refusal, "strict"):
            self.can_be_strict = False
            return True
        if (
            self.can_try_harder
            and b'"reasoning_effort"' in body
            and self._is_about(refusal, "reasoning_effort", "reasoning")
        ):
            self.can_try_harder = False
            return True
        if (
            self.can_follow_schema
            and b'"response_format"' in body
            and self._is_about(refusal, "response_format", "json_schema")
        ):
            self.can_follow_schema = False
            return True
        return False

    @staticmethod
    def _is_about(refusal: str, *fields: str) -> bool:
        return any(re.search(rf"\b{field}\b", refusal) for field in fields)
