"""Which skill texts the conversation holds, so that the same one does not enter twice."""

from hashlib import sha256


class InvokedSkills:
    """The newest text of each skill that was run."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        """By name, the last invoked last; what compaction puts back."""

    def enter(self, name: str, text: str) -> bool:
        """Note that a skill's text enters; False if that very text is there already."""
        digest = sha256(text.encode(errors="surrogatepass")).hexdigest()
        if self._digests.get(name) == digest:
            return False
        self._digests[name] = digest
        self.texts.pop(name, None)
        self.texts[name] = text
        return True
