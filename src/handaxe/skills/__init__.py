"""Skills and slash commands as files.

Belongs here: their locations and precedence, parsing their files, the listing for the model.
Does not: the Skill tool (`tools.meta.skill`), commands that a person types (`app.slash_commands`).
May import: `shell/sandbox` and the layers below it.
"""
