"""For tool authors: conformance checks, fakes and scenarios for any tool.

Belongs here: what a test of a tool needs; the tests of handaxe use it too.
Does not: pytest; these are plain functions.
May import: `app` and the layers below it.
"""
