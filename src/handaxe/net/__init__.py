"""The network: names to addresses, proxies, connections to addresses that were checked.

Belongs here: looking names up once, the proxy for a host, requests pinned to a checked address.
Does not: which hosts a call may reach (`permission`, `rules`), what is fetched (`web`, `models`).
May import: `text`, `contract`; httpx2, when used.
"""
