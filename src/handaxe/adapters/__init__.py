"""A SESSION'S TOOLS FOR OTHER PEOPLE'S AGENTS: one module per agent framework.

Each has one function, `tools_for(session)`, and is the only module that imports its framework.
Nothing here imports a framework before its own module is imported, so
`from handaxe.adapters.langchain import tools_for` needs langchain-core and nothing else does.

Belongs here: the translation between a framework's tool object and a session's call.
Does not: what calls do, prompts, schemas, or an agent loop; those are below, or the framework's.
May import: `app` and below; in each adapter its own framework.
"""
