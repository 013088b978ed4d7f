"""Pure functions on text: encodings, diffs, globs, escaping, tokens, paths as text.

Belongs here: functions from text or bytes to text, bytes or facts, with the same result every time.
Does not: anything that opens a file, reads a clock, uses a network or keeps state.
May import: `contract`, the standard library, msgspec; rapidfuzz and yaml, when used.
"""
