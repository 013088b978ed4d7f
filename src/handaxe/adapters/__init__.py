"""Session tools for agent frameworks: one module per framework.

Each module has one function, `tools_for(session)`, and only that module imports its framework.
`from handaxe.adapters.langchain import tools_for` needs langchain-core; nothing else does.

Belongs here: the conversion between a framework's tool object and a session's call.
Does not: running calls, prompts, schemas (the layers below), an agent loop (the framework has one).
May import: `testing` and the layers below it; each adapter also its own framework.
"""
