"""Allow, ask or deny for a bash command, with reasons.

Belongs here: matching Bash rules, the decision per part and for the whole command, suggested rules.
Does not: rules for other tools and the policy of a session (`permission`).
May import: the other packages of `shell.analysis`, and what `shell.analysis` may import.
"""
