"""The model for tools in a session without an agent."""

from collections.abc import Callable, Sequence

from handaxe.app.services.service import CleanupService, ServiceGroup
from handaxe.config.settings import Settings
from handaxe.contract.faults import SetupError
from handaxe.contract.faults.agent import NoModel
from handaxe.contract.ports.conversation import AgentAccess, Conversation, ModelQuestion
from handaxe.contract.ports.model import Model
from handaxe.models.api_key_helper import EnvironmentWithKey

OpenModel = Callable[[str | None], Model]


def make_model_opener(settings: Settings) -> OpenModel:
    """The function that opens models, with the key helper of the settings."""

    def open_one(name: str | None) -> Model:
        from handaxe.models.factory import open_model

        return open_model(name, env=env)

    env = None if settings.api_key_helper is None else EnvironmentWithKey(settings.api_key_helper)
    return open_one


class SessionModel(AgentAccess):
    """The default model, opened when a tool first asks it."""

    def __init__(self, settings: Settings, services: ServiceGroup) -> None:
        self._name = settings.model
        self._open = make_model_opener(settings)
        self._opened: dict[str | None, Model] = {}
        services.members.append(CleanupService(self._close))

    @property
    def model(self) -> Model:
        """The model.

        Raises NoModel if none is configured or it cannot be opened.
        """
        return self._find(self._name)

    def read_conversation(self, call_ids: Sequence[str]) -> Conversation:  # noqa: ARG002
        """There are no messages."""
        return Conversation()

    async def ask_model(self, question: ModelQuestion) -> str:
        """The text of the answer."""
        from handaxe.agent.agent_access import SMALL, ask_question
        from handaxe.agent.limits import Meter, RunLimits

        name = question.model or self._name
        if name == SMALL:
            from handaxe.models.factory import find_small_model

            name = find_small_model(self.model.name) or self._name
        return await ask_question(self._find(name), question, Meter(RunLimits()))

    def _find(self, name: str | None) -> Model:
        if name not in self._opened:
            try:
                self._opened[name] = self._open(name)
            except SetupError as error:
                raise NoModel(str(error)) from None
        return self._opened[name]

    async def _close(self) -> None:
        opened, self._opened = self._opened, {}
        for model in opened.values():
            await model.close()
