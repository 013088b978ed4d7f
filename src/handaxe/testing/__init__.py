"""FOR TOOL AUTHORS: conformance checks and scenarios that run against any tool.

Belongs here: what a test of a tool needs and what handaxe's own tests use themselves.
Does not: pytest; these are plain functions.
May import: everything below `frontends`.
"""
