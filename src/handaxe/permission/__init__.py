"""MAY THIS CALL RUN: rules, path scopes, modes and one function that puts them in order.

Belongs here: the grammar of rules, what they match, which paths are protected, `decide`.
Does not: bash (the shell package reads commands), following links, asking a person, files.
May import: contract, text, session; no input or output of any kind.
"""
