"""The record of every change, and the way back from it.

Belongs here: the undo journal of a session, kept contents, planning and doing an undo, pruning.
Does not: asking for permission (the pipeline), showing results (tools, front ends).
May import: contract, text, disk, session, settings.
"""
