"""One line of a todo list."""

from typing import Annotated, Literal

import msgspec

TodoStatus = Literal["pending", "in_progress", "completed"]


class Todo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Something to do, and how far it is."""

    content: Annotated[str, "What to do, such as `Run the tests`."]
    status: Annotated[TodoStatus, "How far it is."]
    active_form: Annotated[str, "The same as something under way: `Running the tests`."]
