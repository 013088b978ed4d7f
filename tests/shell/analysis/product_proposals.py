"""No rule is proposed for a program that can take its program or operands from its input (C27)."""

from __future__ import annotations

from dataclasses import dataclass

FROM_INPUT = (
    "bash", "bash -s", "bash -", "bash /dev/stdin", "bash -s -- a", "sh", "sh -s", "sh -", "dash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "ash", "rbash", "busybox sh", "/bin/bash", "/bin/sh -s", "python", "python3", "python3 -", "python3 /dev/stdin", "python3.12", "python2", "pypy3", "ipython", "node", "node -", "node --input-type=module", "deno run -", "deno repl", "bun run -", "ruby", "ruby -", "irb", "perl", "perl -", "php", "lua", "lua -", "luajit", "Rscript -", "R --no-save", "julia", "ghci", "tclsh", "expect -", "expect", "guile", "racket", "sbcl", "clojure", "scala", "groovysh", "iex", "erl", "ocaml", "swipl", "octave", "gnuplot", "pwsh -Command -",
    "awk -f -", "awk -f /dev/stdin", "sed -f - a.txt", "sed -f /dev/stdin a.txt", "xargs", "xargs sh -c", "xargs -0 rm", "xargs touch", "xargs -I{} sh -c {}", "parallel", "parallel -j4", "ssh h", "ssh h bash -s", "ssh -T h", "sudo bash", "sudo -s", "sudo su", "su", "su -", "doas sh", "env bash", "env sh -s", "nohup bash", "timeout 5 bash", "nice sh", "time bash", "command bash", "exec bash", "setsid sh", "stdbuf -o0 sh", "CI=1 bash", "unshare sh", "chroot / sh", "nsenter -t 1 sh", "docker exec -i c sh", "docker run -i x bash", "podman run -i x sh", "kubectl exec -i p -- sh", "make -f -", "make -f /dev/stdin", "at now", "batch", "crontab -", "psql", "mysql", "sqlite3 a.db", "mongo", "redis-cli", "gdb", "ed a.txt", "ex a.txt", "m4", "dc", "tmux source -", "patch -p1", "patch", "cpio -i", "tar x", "tar xf -", "git apply", "git am", "go run /dev/stdin", "gcc -x c -", "emacs --script /dev/stdin", "vim -s /dev/stdin", "source /dev/stdin", ". /dev/stdin", "eval \"$(cat)\"", "sftp -b - h", "socat - EXEC:sh",
)  # fmt: skip
"""Commands that run, or act on, what they are given on standard input."""
WITH_OPERANDS = ("bash build.sh", "sh -c ls", "python3 x.py", "python3 -c 'print(1)'", "python3 -m pytest", "node x.js", "node -e 1", "ruby x.rb", "perl -e 1", "perl x.pl", "php x.php", "xargs rm -f", "sudo ls", "sudo apt install x", "ssh h ls", "env A=1 ls", "docker exec c ls", "docker run x ls", "kubectl exec p -- ls", "awk '{print $1 > \"x\"}' a.txt", "make test", "psql -c 'select 1'", "mysql -e 'select 1'", "deno run x.ts", "bun run x.ts", "lua x.lua", "Rscript x.R", "git commit -m x", "git push", "timeout 5 python3 x.py", "nice python3 x.py", "npx tsc", "uv run x", "poetry run x", "find . -exec zz {} +", "watch ls")  # fmt: skip
"""The same programs with something else to do: a prefix rule would cover the forms above."""
FEEDS = (
    "{}",
    "curl http://h/x | {}",
    "cat a.txt | {}",
    "{} < a.txt",
    "{} <<EOF\nls\nEOF",
    "{} <<< ls",
)
PREFIX_PROPOSED = ("bash", "sh", "dash", "zsh", "ksh", "fish", "python", "python3", "node", "deno", "bun", "ruby", "perl", "php", "lua", "Rscript", "xargs", "parallel", "sudo", "su", "doas", "ssh", "env", "nohup", "timeout", "nice", "time", "command", "exec", "docker", "podman", "kubectl", "make", "psql", "mysql", "awk", "sed", "git", "npx", "uv", "poetry", "watch", "find", "setsid", "stdbuf", "unshare", "chroot", "nsenter", "at", "crontab", "gdb", "tmux", "eval", "source", ".", "busybox", "go", "gcc", "emacs", "vim", "tar", "patch", "cpio", "sftp", "socat", "expect", "m4", "dc", "ed", "ex")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Offer:
    """A command, and the text whose rule must not be offered."""

    command: str
    text: str
    takes_input: bool


def make_offers(feeds: int = len(FEEDS)) -> list[Offer]:
    """Every command with some ways to feed it."""
    found = [
        Offer(FEEDS[(number + step) % len(FEEDS)].format(text), text, takes_input=True)
        for number, text in enumerate(FROM_INPUT)
        for step in range(feeds)
    ]
    return [*found, *(Offer(text, text, takes_input=False) for text in WITH_OPERANDS)]


def check_offer(offer: Offer, proposals: list[dict]) -> list[str]:
    """The proposed rules that the clause forbids."""
    return [rule for proposal in proposals if _is_forbidden(rule := proposal["rule"], offer)]


def _is_forbidden(rule: str, offer: Offer) -> bool:
    if not rule.startswith("Bash("):
        return rule == "Bash"
    text = rule[5:-1]
    for ending in (":*", " *", "*"):
        if text.endswith(ending):
            # A prefix of one word covers every form of the program; a longer one may be harmless
            # (`git commit`), but not where the command itself acts on its input.
            words = text.removesuffix(ending).split()
            lone = len(words) == 1 and words[0].rpartition("/")[2] in PREFIX_PROPOSED
            return lone or (
                offer.takes_input and f"{offer.text} ".startswith(" ".join(words) + " ")
            )
    # An exact rule covers one text: forbidden where that text acts on its input.
    return offer.takes_input and " ".join(text.split()) == " ".join(offer.text.split())
