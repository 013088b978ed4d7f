"""One call from parse to result: parse, prepare, run, finalize; one call or many.

Only the stage before makes the input of a stage (`ToolCall → ParsedCall → PreparedCall →
ToolResult`), so no stage can be skipped or repeated.

Belongs here: the order of the stages, the scheduler, and that every call gets exactly one result.
Does not: what a rule means (`permission`), which tools exist (`catalog`), what hooks do (`hooks`).
May import: the features (`catalog`, `permission`, `hooks` and the others on that line) and the
layers below them.
"""
