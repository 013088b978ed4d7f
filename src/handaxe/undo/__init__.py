"""Undo: record every change before it happens, and restore earlier states.

Belongs here: the journal of a session, stored contents, path states, planning and doing an undo,
pruning, the tracker that the pipeline calls.
Does not: permission (`pipeline`), showing results (`tools.files.undo`, `frontends`).
May import: `shell/sandbox` and the layers below it.
"""
