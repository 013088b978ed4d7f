"""File arguments: `{"$file": PATH}` instead of a text inserts the whole file.

This passes a stored result, or any long text, to the next tool without going through the model.
Only an object of exactly this shape counts, and only files that Read would open without approval.
"""

from typing import Any

from handaxe.contract.call import ToolCall
from handaxe.contract.effects import Resource
from handaxe.contract.faults import BadInput, ToolFault
from handaxe.contract.ports.files import ResolvedPath
from handaxe.disk import atomic
from handaxe.permission.decide import JudgedPath, PermissionQuery, decide
from handaxe.pipeline.context import PipelineContext

SIGN = "$file"
MAX_BYTES = 16 << 20
_DEEPEST = 20


class FilledCall:
    """A call with its file arguments replaced."""

    def __init__(self, call: ToolCall, tool: str, context: PipelineContext) -> None:
        self.call = call
        self.notes: list[str] = []
        self.reads: list[Resource] = []
        self._tool = tool
        self._context = context
        self._done: dict[int, Any] = {}
        filled = self._filled(call.input, "", 0)
        if self.notes:
            self.call = ToolCall(call.id, call.tool, filled)

    def _filled(self, value: Any, place: str, depth: int) -> Any:  # noqa: ANN401 - any JSON value
        if value.__class__ not in (list, dict) or depth > _DEEPEST:
            return value
        known = id(value)
        if known not in self._done:
            # A host's program may give the same thing in many places, or within itself.
            self._done[known] = value
            self._done[known] = self._fill_texts(value, place, depth)
        return self._done[known]

    def _fill_texts(self, value: list[Any] | dict[str, Any], place: str, depth: int) -> Any:  # noqa: ANN401
        if isinstance(value, list):
            return [self._filled(one, f"{place}[{n}]", depth + 1) for n, one in enumerate(value)]
        handle = value.get(SIGN)
        if depth and len(value) == 1 and isinstance(handle, str):
            return self._put(handle, place)
        return {
            name: self._filled(one, f"{place}.{name}" if place else name, depth + 1)
            for name, one in value.items()
        }

    def _put(self, handle: str, place: str) -> str:
        try:
            text = self._held(handle)
        except UnicodeDecodeError:
            raise self._refused(handle, place, "it is not UTF-8 text") from None
        except (OSError, ValueError, atomic.DiskFault, ToolFault) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise self._refused(handle, place, why) from None
        self.notes.append(f"{place}: the whole of {handle} ({len(text):,} characters)")
        return text

    def _refused(self, handle: str, place: str, why: str) -> BadInput:
        problem = f"The parameter `{place}` names a file that cannot be used, {handle!r}: {why}"
        return BadInput(self._tool, [problem])

    def _held(self, handle: str) -> str:
        files, workdir = self._context.files, self._context.workdir
        place = files.locate(workdir.resolve(handle), workdir.roots)
        self._refuse_unless_free(place)
        if not place.is_final:
            place = files.locate(place.path, workdir.roots, beyond=True)
            self._refuse_unless_free(place)
        self.reads.append(Resource("path", place.real))
        return atomic.read_regular(place.real, max_bytes=MAX_BYTES)[0].decode()

    def _refuse_unless_free(self, place: ResolvedPath) -> None:
        judged = JudgedPath(path=place.path, real=place.real, access="read")
        request = PermissionQuery(tool="Read", read_only=True, paths=(judged,))
        if decide(request, self._context.policy()).verdict != "allow":
            raise ValueError("reading it needs approval; call Read first")
