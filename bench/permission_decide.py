"""How long one permission decision takes, by number of rules: prints, never judges.

Every decision is about another path, so nothing is answered from memory unless a line says so.
"""

import statistics
import time

from handaxe.permission.decide import JudgedPath, PermissionQuery, Policy, decide
from handaxe.permission.policy import make_policy
from handaxe.rules.grammar import parse_rule

SHAPES = (
    ("deny", "Read(//etc/private{n}/**)"),
    ("deny", "Read(**/secret{n}.txt)"),
    ("ask", "Edit(/generated{n}/*.py)"),
    ("allow", "Edit(/src/module{n}/**)"),
    ("deny", "Read(*.key{n})"),
    ("allow", "Read(~/notes{n}/**)"),
    ("ask", "Edit(vendor{n})"),
    ("allow", "Bash(make target{n}:*)"),
    ("deny", "mcp__server{n}"),
    ("allow", "WebFetch(domain:host{n}.example)"),
)


def policy(rules: int, mode: str = "default") -> Policy:
    texts = [SHAPES[n % len(SHAPES)] for n in range(rules)]
    parsed = [
        parse_rule(text.format(n=n), behaviour, source="project")
        for n, (behaviour, text) in enumerate(texts)
    ]
    return make_policy(parsed, mode=mode, roots=["/home/dev/project"], home="/home/dev")


def requests(kind: str, count: int) -> list[PermissionQuery]:
    access = "write" if kind.startswith("write") else "read"
    where = "/var/data/set" if kind.endswith("outside") else "/home/dev/project/src/package"
    tool = "Write" if access == "write" else "Read"
    return [
        PermissionQuery(
            tool=tool,
            read_only=access == "read",
            paths=(JudgedPath(path=p, real=p, access=access, field="file_path"),),
        )
        for p in (f"{where}/part{n}/module_{n}.py" for n in range(count))
    ]


def median_us(wanted: list[PermissionQuery], under: Policy, *, keep: bool = False) -> float:
    decide(wanted[0], under)
    times = []
    for request in wanted:
        if not keep:
            under.recent.clear()
        start = time.perf_counter_ns()
        decide(request, under)
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1000


def main() -> None:
    start = time.perf_counter()
    built = policy(1000)
    decide(requests("read inside", 1)[0], built)
    print(f"1,000 rules parsed and compiled: {(time.perf_counter() - start) * 1000:.1f} ms")
    for kind, mode in (
        ("read inside", "default"),
        ("read outside", "default"),
        ("write inside", "default"),
        ("write inside", "acceptEdits"),
        ("write outside", "acceptEdits"),
    ):
        wanted = requests(kind, 5000)
        few, many = (median_us(wanted, policy(n, mode)) for n in (10, 1000))
        print(
            f"{kind:14} {mode:12} 10 rules {few:6.2f} µs   1,000 rules {many:6.2f} µs"
            f"   x{many / few:.2f}"
        )
    again = requests("read inside", 1) * 5000
    print(f"the same path again, 1,000 rules {median_us(again, built, keep=True):.2f} µs")


if __name__ == "__main__":
    main()
