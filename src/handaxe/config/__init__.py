"""Settings: one typed model, read from files, arguments and the environment.

Belongs here: every option with its meaning and default, settings files and their layers, trust in
a project's files, definitions of MCP servers, reload.
Does not: anything that acts on an option.
May import: `rules`, `storage`, `git` and the layers below them.
"""
