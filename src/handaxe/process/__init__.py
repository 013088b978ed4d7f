"""Child processes: start, tag, supervise and end them.

Belongs here: the supervisor and its workers, long-lived children, the environment of children,
orphans, temporary directories, traces of writes.
Does not: shell commands (`shell.exec`), the sandbox policy (`shell.sandbox`).
May import: `config` and the layers below it.
"""
