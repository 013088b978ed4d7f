"""Pure functions on text: replacing, comparing, decoding, numbering, matching.

Belongs here: what turns text or bytes into other text, bytes or facts about them, and is the same
every time it is asked.
Does not: anything that opens a file, looks at a clock, speaks to a network or keeps state.
May import: the standard library, msgspec, `handaxe.contract`; chardet and rapidfuzz on first use.
"""
