"""Language models: the `Model` port for each vendor's API.

Belongs here: choosing a model by name, thin clients, failures and retries, prices, recordings.
Does not: conversations (`agent`), tool execution (`pipeline`), settings files (`config`).
May import: `shell/sandbox` and the layers below it; httpx2, when used.
"""
