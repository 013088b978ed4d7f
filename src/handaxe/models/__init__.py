"""MODELS: the port `Model` done for each way a model speaks.

Belongs here: thin clients of vendors' wire formats, the scripted model, recordings, retries.
Does not: conversations that last (`agent`), tool execution (`runtime`), settings files.
May import: text, disk, contract; httpx2, where it is needed.
"""
