"""HTTP transports for model servers.

Belongs here: one request and its streamed answer over asyncio or httpx2, proxies.
Does not: the JSON of a vendor (`models.anthropic`, `models.openai`), retries (`models`).
May import: what `models` may import, nothing else of `models`; httpx2, when used.
"""
