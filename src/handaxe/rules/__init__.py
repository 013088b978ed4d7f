"""Permission rules: their grammar and what they match.

Belongs here: parsing `Tool(specifier)`, path scopes, the rule index, tool families, modes.
Does not: the decision about a call (`permission`), Bash rules against commands
(`shell.analysis.decision`), where rules are stored (`config`).
May import: `session` and the layers below it.
"""
