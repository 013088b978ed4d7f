"""The sandbox: bubblewrap first, Landlock second, otherwise refuse.

Belongs here: the policy as a value, the backends, seccomp, the proxy for allowed hosts, read-only
and protected paths, the probe.
Does not: building the policy from settings (`app.services.sandbox`), running commands
(`shell.exec`).
May import: `shell/analysis` and the layers below it.
"""
