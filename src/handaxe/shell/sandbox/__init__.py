"""Keep commands apart from this machine: bubblewrap first, Landlock second, otherwise say no.

Belongs here: the policy as a value, what enforces it, the proxy for listed hosts, and the probe.
Does not: reading settings or deciding what is protected (`app` hands both over); running commands.
May import: contract, shell, session, the standard library, msgspec.
"""
