"""May a project's instructions bring in a file from outside the project: the user's word on it."""

from contextlib import suppress

from handaxe.app.session import Session
from handaxe.contract.decision import Allow, PermissionRequest
from handaxe.contract.faults import SetupError


class ExternalIncludes:
    """Asks whoever can be asked; an answer for good is kept with the trust in the folder."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._answers: dict[str, bool] = {}

    async def allows(self, importer: str, path: str) -> bool:
        """Whether a file may be imported; without anybody to ask it may not."""
        if path not in self._answers:
            self._answers[path] = self._is_approved(path) or await self._ask(importer, path)
        return self._answers[path]

    def _is_approved(self, path: str) -> bool:
        configuration = self._session.configuration
        try:
            return path in configuration.trust.imports(configuration.root)
        except SetupError:
            return False

    async def _ask(self, importer: str, path: str) -> bool:
        asker = self._session.collaborators.asker
        if asker is None or not asker.is_there:
            return False
        request = PermissionRequest(
            call_id="instructions",
            tool="Read",
            input={"file_path": path},
            reason=(
                f"{importer} imports {path}, which lies outside the project, into the "
                "instructions that the agent gets."
            ),
            cwd=self._session.workdir.current,
        )
        answer = await asker.ask(request)
        if not isinstance(answer, Allow):
            return False
        if answer.remember in {"project", "always"}:
            configuration = self._session.configuration
            with suppress(SetupError):
                configuration.trust.approve_import(configuration.root, path)
        return True
