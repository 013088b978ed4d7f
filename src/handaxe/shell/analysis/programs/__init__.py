"""How single programs read their arguments: little languages, revisions, listed operands."""
