"""HOW A CALL RUNS: parse, prepare, run, settle; one call or many.

Each stage's input is made only by the stage before it (`ToolCall → Parsed → Prepared →
ToolResult`), so no step can be skipped or repeated.
Belongs here: the order of things, and that every call gets exactly one result.
Does not: what a rule means (`permission`), which tools exist (`catalog`), who is told (`hooks`).
May import: the other rooms of `runtime` and every floor below.
"""
