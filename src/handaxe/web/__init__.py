"""The web: the `Web` port on this machine, and the back ends of WebSearch.

Belongs here: reading addresses, fetching pages, their Markdown and picture, the cache, searching.
Does not: who may reach a host (`permission`), what the model sees of a page (`tools.web`).
May import: `shell/sandbox` and the layers below it; ada-url, html-to-markdown, httpx2, when used.
"""
