"""The models of an agent: chosen, switched, opened for a turn, closed at its end."""

from pathlib import Path
from typing import TYPE_CHECKING

from handaxe.app.services.session_model import OpenModel
from handaxe.config.settings_paths import is_users_own
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.model import Model

if TYPE_CHECKING:
    from handaxe.models.recording_file import Recording


class AgentModels:
    """The current model and others that were opened."""

    def __init__(
        self,
        given: Model | str | None,
        open_model: OpenModel,
        *,
        earlier: str,
        default: str | None,
        record: Path | None = None,
    ) -> None:
        """`earlier` is the model of the log; it comes before `default`.

        All answers of models are recorded in `record`.
        """
        self._open_model = open_model
        self.recording = None if record is None else _open_recording(record)
        resumed = _resume_model(earlier, open_model) if given is None else None
        self.name = given if isinstance(given, str) else earlier if resumed else ""
        """The model that a resumed session uses; empty if none was named."""
        self.current = self.resolve(resumed or given or default)
        self._owns_current = not isinstance(given, Model)
        self._left: list[Model] = []
        self._by_turn: dict[str, Model] = {}
        self._beside: dict[str, Model] = {}

    def resolve(self, model: Model | str | None) -> Model:
        """A model, or the one of that name."""
        resolved = model if isinstance(model, Model) else self._open_model(model)
        if self.recording is None:
            return resolved
        from handaxe.models.recording import record_model

        return record_model(resolved, self.recording)

    def open(self, name: str | None) -> Model:
        """The model of that name; the current one without a name or if it replaces all."""
        return self.resolve(self.current if self.current.answers_for_all or not name else name)

    def switch(self, chosen: Model, name: str) -> None:
        """Use another model from now on."""
        if chosen is not self.current:
            self._left.append(self.current)
        self.current = chosen
        self.name = name
        self._by_turn.clear()

    def open_for_turn(self, name: str, source: str) -> Model | None:
        """The model that the file at `source` requests for a turn; None if it may not choose it."""
        if self.current.answers_for_all:
            return self.current
        is_vendors = any(char in name for char in "/:")
        if is_vendors and not is_users_own(Path(source)):
            # A project's file may not choose a vendor.
            return None
        if name not in self._by_turn:
            try:
                self._by_turn[name] = self.resolve(name)
            except SetupError:
                # A skill for another provider still works, with the current model.
                self._by_turn[name] = self.current
            if self._by_turn[name] is not self.current:
                self._left.append(self._by_turn[name])
        return self._by_turn[name]

    def open_beside(self, name: str) -> Model:
        """The model of that name for a tool that asks it, opened once."""
        if name not in self._beside:
            self._beside[name] = self.resolve(name)
            if self._beside[name] is not self.current:
                self._left.append(self._beside[name])
        return self._beside[name]

    async def close(self) -> None:
        """Close the opened models."""
        owned = (self.current,) if self._owns_current else ()
        for model in (*self._left, *owned):
            await model.close()
        if self.recording is not None:
            self.recording.close()


def _open_recording(path: Path) -> "Recording":
    from handaxe.models.recording_file import Recording

    return Recording(path)


def _resume_model(name: str, open_model: OpenModel) -> Model | None:
    """The model of an earlier run, if it can still be opened."""
    try:
        return open_model(name) if name else None
    except SetupError:
        return None
