"""Text that bash evaluates again (C19), and the numbers that stay provable."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle

from product_model import MODES, NO_RULE, WHOLE, WHOLE_OTHER_DENY, Case, Row, allow_program, cross

CANARY = "CANARY"
PAYLOADS = {
    "prompt": f"$(touch {CANARY})",
    "subscript": f"a[$(>{CANARY})]",
    "assignment": f"a[$(>{CANARY})]=1",
    "command": f"touch {CANARY}",
    "callback": f"touch {CANARY}; true",
}
"""Values that make bash run `touch` where the form evaluates them."""


@dataclass(frozen=True, slots=True)
class Form:
    """A command in which bash evaluates the value of x."""

    text: str
    kind: str
    program: str = "echo"
    prefix: bool | None = False
    open_under_rules: bool = False
    """Something beside the evaluation also speaks against it, such as a file that is not known."""


def _make_forms(kind: str, program: str, *texts: str, prefix: bool | None = False) -> list[Form]:
    return [Form(text, kind, program, prefix) for text in texts]


PROMPTS = [
    *_make_forms(
        "prompt", "echo",
        "echo ${x@P}", 'echo "${x@P}"', "echo pre${x@P}post", 'echo "${x[0]@P}"', 'echo "${x[@]@P}"', "echo ${x@P} b c",
        'y=${x@P}; echo ok', 'y="${x@P}"', 'y=("${x@P}"); echo ok', "echo ${y:-${x@P}}", 'echo "${y:-${x@P}}"', "echo ${y:=${x@P}}",
        "y=1; echo ${y:+${x@P}}", "y=a; echo ${y/a/${x@P}}", "y=a; echo ${y#${x@P}}", "echo $(echo ${x@P})", "echo `echo ${x@P}`", "( echo ${x@P} )",
        "{ echo ${x@P}; }", 'f() { echo "${x@P}"; }; f', 'true && echo "${x@P}"', 'false || echo "${x@P}"', '! echo "${x@P}"', 'time echo "${x@P}"',
        'case "${x@P}" in a) echo b;; esac', 'for i in "${x@P}"; do echo $i; done', 'while [ "${x@P}" = zz ]; do echo a; done', 'if [ "${x@P}" ]; then echo a; fi',
        'set -- "$x"; echo "${1@P}"', 'set -- "$x"; echo "${@@P}"', 'set -- "$x"; echo "${*@P}"', 'echo a 2>/dev/null "${x@P}"', "echo $((1)) ${x@P}",
        'A=${x@P} echo a', 'export y="${x@P}"; echo a', 'y+="${x@P}"; echo a',
    ),
    *_make_forms(
        "prompt", "cat",
        "cat <<EOF\n${x@P}\nEOF", "cat <<-EOF\n\t${x@P}\n\tEOF", 'cat <<< "${x@P}"', "cat <<< ${x@P}", "cat <<EOF\n${y:-${x@P}}\nEOF",
        'cat <(echo "${x@P}")', "echo ${x@P} | cat",
    ),
    *_make_forms("prompt", "printf", "printf '%s\\n' \"${x@P}\""),
    *_make_forms("prompt", "ls", 'ls "${x@P}"'),
    *_make_forms("prompt", "grep", 'grep "${x@P}" a.txt', 'grep -e "${x@P}" a.txt'),
    *_make_forms("prompt", "test", 'test -n "${x@P}"'),
    *_make_forms("prompt", "[", '[ "${x@P}" = a ]'),
    *_make_forms("prompt", "[[", "[[ ${x@P} == a ]]", "[[ -n ${x@P} ]]"),
    Form('cat < "${x@P}"', "prompt", "cat", open_under_rules=True),
    Form('echo a > "${x@P}"', "prompt", open_under_rules=True),
    Form('echo a >> "out${x@P}"', "prompt", open_under_rules=True),
]  # fmt: skip

ARITHMETIC = [
    *_make_forms(
        "subscript", "echo",
        "echo $((x))", 'echo "$((x))"', "echo $((x+1))", "echo $(($x))", "echo $((1 ? x : 2))", "echo $((y=x))", "echo $((b[x]))", "echo ${b[x]}", "echo ${b[$x]}",
        'echo "${b[x]}"', "y=abc; echo ${y:x}", "y=abc; echo ${y:0:x}", 'y=abc; echo "${y:$x}"', "set -- p q; echo ${@:x}", "b=(1 2); echo ${b[@]:x}", "b[x]=1; echo a", "b[$x]=1; echo a",
        "b=([x]=1); echo a", "((x)) ; echo a", "((x > 1)) && echo a", "if ((x)); then echo a; fi", "for ((i=x;i<1;i++)); do echo a; done", "for ((i=0;i<x;i++)); do echo a; done",
        "case $((x)) in 1) echo a;; esac", "(( b[x]++ )); echo a", "echo ${!x}", 'echo "${!x}"', "declare -i n; n=$x; echo $n", "declare -i n; n+=$x; echo $n", "y=$((x)); echo $y",
        "echo {1..2} $((x))", "echo ${y:-$((x))}", "while ((x)); do echo a; done", "echo $(echo $((x)))",
    ),
    *_make_forms("subscript", "((", "((x))", "((y=x))", "((x++))", "((!x))"),
    *_make_forms("subscript", "let", "let x", "let y=x", 'let "y=x+1"', 'let "$x"', "let y+=x"),
    *_make_forms("subscript", "[[", "[[ $x -eq 1 ]]", "[[ x -eq 1 ]]", "[[ 1 -lt $x ]]", '[[ "$x" -gt 0 ]]', "[[ $x -ne 1 ]]", "[[ -v $x ]]", "[[ a == b || $x -le 1 ]]"),
    *_make_forms("subscript", "test", 'test -v "$x"', "test -v $x"),
    *_make_forms("subscript", "[", '[ -v "$x" ]', "[ -v $x ]"),
    *_make_forms("subscript", "declare", "declare -i n=$x", 'declare -i "n=$x"', "declare -ri n=$x", "declare -ai n=($x)"),
    *_make_forms("assignment", "declare", 'declare "$x"', 'declare -a "$x"'),
    *_make_forms("subscript", "typeset", "typeset -i n=$x"),
    *_make_forms("subscript", "local", "f() { local -i n=$x; }; f"),
    *_make_forms("subscript", "printf", 'printf -v "$x" a', "printf -v $x a", 'printf -v "$x" %s a'),
    *_make_forms("subscript", "read", 'read "$x" <<< a', 'read -r "$x" <<< a', "read $x <<< a"),
    *_make_forms("subscript", "unset", 'a=(1); unset "$x"', 'a=(1); unset -v "$x"', "a=(1); unset $x"),
    *_make_forms("subscript", "wait", 'sleep 0 & wait -n -p "$x"'),
    *_make_forms("subscript", "cat", "cat <<EOF\n$((x))\nEOF", "cat <<< $((x))", "cat <<EOF\n${b[x]}\nEOF", "cat <<EOF\n${!x}\nEOF"),
    *_make_forms("subscript", "head", "head -n $((x)) a.txt"),
    *_make_forms("subscript", "seq", "seq 1 $((x))"),
    Form("echo $[x]", "subscript", open_under_rules=True),
    Form("echo a > out$((x))", "subscript", open_under_rules=True),
]  # fmt: skip

COMMANDS = [
    *_make_forms("command", "eval", 'eval "$x"', "eval $x", 'eval "true; $x"', "eval -- $x"),
    *_make_forms("command", "trap", 'trap "$x" EXIT', 'trap "$x" DEBUG; true', "trap -- \"$x\" 0"),
    *_make_forms("command", ".", '. <(echo "$x")', '. /dev/stdin <<< "$x"'),
    *_make_forms("command", "source", 'source <(echo "$x")'),
    *_make_forms("command", "echo", "$x", "echo a; $x", "echo $($x)", "PS4='$('\"$x\"')'; set -x; echo a", "PS4='$(touch CANARY)'; set -x; echo a", "true | $x", "{ $x; }", "command $x", "exec $x", "! $x"),
    Form('mapfile -C "$x" -c 1 lines < a.txt', "callback", "mapfile", open_under_rules=True),
    Form('readarray -c 1 -C "$x" lines < a.txt', "callback", "readarray", open_under_rules=True),
    *_make_forms("callback", "compgen", 'compgen -C "$x" a'),
]  # fmt: skip

FORMS = [*PROMPTS, *ARITHMETIC, *COMMANDS]

SOURCES = {
    "literal": "x='{payload}'; ",
    "printf": "printf -v x %s '{payload}'; ",
    "file": "x=$(cat a.txt); ",
    "file read": "x=$(<a.txt); ",
    "read": "read -r x < a.txt; ",
    "command": "x=$(echo '{payload}'); ",
    "positional": "set -- '{payload}'; x=$1; ",
    "declared": "declare x='{payload}'; ",
    "exported": "export x='{payload}'; ",
    "array": "x=('{payload}'); ",
    "environment": "",
}
"""Where the value comes from. The text `a.txt` and the environment's x hold the payload."""
SOURCES_OF_A_FILE = {"file", "file read", "read"}


def make_evaluating_case(form: Form, source: str) -> Case:
    """The form with its value from one source."""
    start = SOURCES[source].format(payload=PAYLOADS[form.kind])
    return Case(
        name=f"{source}: {form.text}",
        text=start + form.text,
        clause="C19",
        program=form.program,
        prefix=form.prefix,
        exact=None if form.open_under_rules else True,
        whole=None if form.open_under_rules else True,
        unknown=True,
    )


def _choose_few_rules(case: Case):
    return [NO_RULE, allow_program(case), WHOLE, WHOLE_OTHER_DENY]


def make_rows() -> list[Row]:
    """Every form with a literal value in the whole product, and with other sources in a part of it."""
    others = [name for name in SOURCES if name != "literal"]
    literal = [make_evaluating_case(form, "literal") for form in FORMS]
    found = cross("evaluated", literal)
    turn = cycle(others)
    for form in FORMS:
        cases = [make_evaluating_case(form, next(turn)) for _ in range(3)]
        found += cross("evaluated", cases, ("default",), _choose_few_rules)
    found += cross(
        "evaluated",
        [_make_loop_case(form) for form in FORMS if "\n" not in form.text],
        ("default",),
        _choose_few_rules,
    )
    return [
        *found,
        *cross("numbers", NUMBERS, MODES, [NO_RULE, WHOLE_OTHER_DENY]),
        *cross("numbers", NOT_NUMBERS, ("default", "acceptEdits", "plan"), _choose_few_rules),
    ]


def _make_loop_case(form: Form) -> Case:
    case = make_evaluating_case(form, "environment")
    payload = PAYLOADS[form.kind]
    text = f"for x in '{payload}'; do {form.text}; done"
    return Case(
        f"loop: {form.text}",
        text,
        "C19",
        form.program,
        prefix=False,
        exact=case.exact,
        whole=case.whole,
        unknown=True,
    )


def _make_number_case(text: str, reads: bool | None = True) -> Case:
    return Case(text, text, "C19", "echo", reads=reads, unknown=None if reads is None else False)


NUMBERS = [
    _make_number_case(text)
    for text in (
        "echo $((1+2))", "n=5; echo $((n+1))", "n=5; echo $(($n+1))", "n=5; m=7; echo $((n*m))", "echo $#", "echo $(($#+1))", "echo $?", "echo $(($?+1))", "x=abc; echo ${#x}", "x=abc; echo $((${#x}+1))",
        "for i in 1 2 3; do echo $((i*2)); done", "for i in 1 2 3; do echo $(($i*2)); done", "for i in $(seq 1 5); do echo $((i+1)); done", "for i in $(seq 3); do echo $i; done", "[[ 3 -eq 3 ]]", "[[ $# -gt 1 ]]", "[[ $? -eq 0 ]]",
        "x=abc; [[ ${#x} -gt 2 ]]", "n=5; [[ $n -gt 2 ]]", "[ $# -eq 0 ]", "[ $? -eq 0 ]", "[ 1 -lt 2 ]", "n=5; [ $n -gt 2 ] && echo big", "echo $(( (1 + 2) * 3 ))", "n=5; if [[ $n -lt 9 ]]; then echo a; fi", "a=(x y); echo ${a[1]}", "a=(x y); echo ${a[0]}",
        "a=(x y); n=1; echo ${a[n]}", "a=(x y); n=1; echo ${a[$n]}", "a=(x y z); echo ${#a[@]}", "a=(x y z); echo $((${#a[@]}-1))", "s=abcdef; echo ${s:1:3}", "s=abcdef; n=2; echo ${s:n}",
        "echo ${x:-1}", "ls; echo $?", "grep -c x a.txt; echo $(($?))",
    )
]  # fmt: skip
NUMBERS.extend(
    _make_number_case(text, None)
    for text in (
        "for ((i=0;i<3;i++)); do echo $i; done", "for i in {1..3}; do echo $((i)); done", "n=5; ((n>3)) && echo a", "let 1+1", "n=5; echo $((n++))", "n=5; n=$((n+1)); echo $((n*2))", "declare -i n=5; echo $n", "i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done",
        "echo $((RANDOM))", "echo $((SECONDS))", "x=5; echo ${x@P}", "x=abc; echo \"${x@Q}\"", "n=$((1+2)); echo $((n))", "echo $(($(wc -l < a.txt)))", "n=$#; echo $((n-1))", "n=${#s}; echo $((n-1))", "printf -v n %d 5; echo $((n))", "cat <<EOF\n$((1+2))\nEOF", "n=0x10; echo $((n))", "n=5; cat <<EOF\n$((n))\nEOF",
    )
)  # fmt: skip

NOT_NUMBERS = [
    Case(text, text, "C19", program, prefix=False, unknown=True)
    for program, text in (
        ("echo", "n=$(cat a.txt); echo $((n+1))"), ("echo", "n=$(head -n1 a.txt); echo $((n))"), ("echo", "read -r n < a.txt; echo $((n))"), ("echo", "n=$(<a.txt); echo $((n))"), ("echo", "n=$(git rev-parse HEAD); echo $((n))"),
        ("echo", "for i in $(cat a.txt); do echo $((i)); done"), ("echo", "for i in a b; do echo $((i)); done"), ("echo", "for i in src/*; do echo $((i)); done"), ("echo", "while read -r n; do echo $((n)); done < a.txt"), ("echo", "cat a.txt | while read -r n; do echo $((n)); done"),
        ("echo", "n=5; n=$(cat a.txt); echo $((n))"), ("echo", "n=5; read -r n < a.txt; echo $((n))"), ("echo", "n=abc; echo $((n))"), ("echo", "n=5$(cat a.txt); echo $((n))"), ("echo", "echo $((n))"), ("echo", "echo $(($1))"), ("echo", "echo $((HOME))"), ("echo", "n=$1; echo $((n))"),
        ("echo", "n=${1:-5}; echo $((n))"), ("echo", "for n; do echo $((n)); done"), ("echo", "for n in \"$@\"; do echo $((n)); done"), ("echo", "n=5; for n in $(cat a.txt); do true; done; echo $((n))"), ("echo", "mapfile -t n < a.txt; echo $((n))"), ("echo", "n=5; f() { n=$(cat a.txt); }; f; echo $((n))"),
        ("echo", "n=$(cat a.txt); m=$n; echo $((m))"), ("echo", "n=$(cat a.txt); a=(1 2); echo ${a[n]}"), ("echo", "n=$(cat a.txt); s=abc; echo ${s:n}"), ("echo", "n=$(cat a.txt); [[ $n -gt 1 ]] && echo big"), ("echo", "if true; then n=$(cat a.txt); else n=5; fi; echo $((n))"), ("echo", "n=5; true && n=$(cat a.txt); echo $((n))"),
        ("echo", "n=5; case a in a) n=$(cat a.txt);; esac; echo $((n))"), ("echo", "n+=$(cat a.txt); echo $((n))"), ("echo", "printf -v n %s \"$(cat a.txt)\"; echo $((n))"), ("echo", "n=m; m=$(cat a.txt); echo $((n))"), ("echo", "seq() { cat a.txt; }; for i in $(seq 3); do echo $((i)); done"),
    )
]  # fmt: skip
