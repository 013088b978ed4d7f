"""What a command writes at most, by its text; and which commands nobody can say that of."""

import pytest

from handaxe.shell.analysis import analyze

CWD, HOME = "/p", "/home/u"


def spelled(command: str, cwd: str = CWD) -> list[str] | None:
    """Acts in short: `fills x`, `removes d/**`, `moves a/** b<a`."""
    extent = analyze(command, cwd, HOME).extent
    if extent is None:
        return None
    return [
        " ".join(
            [
                act.kind,
                *map(_short, act.places),
                *(f"{_short(tree)}/**" for tree in act.trees),
                *(f"{_short(target)}<{name}" for target, name in act.into),
                *(["+parents"] if act.makes_parents else []),
                *(["+files"] if act.files_only else []),
            ]
        )
        for act in extent.acts
    ]


def _short(path: str) -> str:
    return path.removeprefix(f"{CWD}/") if path != CWD else "."


BOUNDED = {
    "touch x": ["fills x"],
    "touch x y": ["fills x y"],
    "touch -- -x": ["fills -x"],
    "touch ./-x": ["fills ./-x"],
    "touch 'a b' \"c d\" e\\ f": ["fills a b c d e f"],
    "touch -c -m x": ["fills x"],
    "touch -d '1 day ago' x": ["fills x"],
    "touch -t 202001010000 x": ["fills x"],
    "touch -r ref x": ["fills x"],
    "touch --date=now x": ["fills x"],
    "touch /etc/x": ["fills /etc/x"],
    "touch ../x": ["fills ../x"],
    "touch a/../x": ["fills a/../x"],
    "touch {a,b}.txt": ["fills a.txt b.txt"],
    "touch $'n\\nl'": ["fills n\nl"],
    "touch caf\xe9": ["fills caf\xe9"],
    "/usr/bin/touch x": ["fills x"],
    "/bin/touch x": ["fills x"],
    "command touch x": ["fills x"],
    "timeout 5 touch x": ["fills x"],
    "nice -n 5 touch x": ["fills x"],
    "LANG=C touch x": ["fills x"],
    "x=a; touch $x": ["fills a"],
    "x=a; touch \"$x/b\"": ["fills a/b"],
    "touch $PWD/x": ["fills x"],
    "! touch x": ["fills x"],
    "echo hi > f": ["fills f"],
    "echo hi >f": ["fills f"],
    "echo hi >> f": ["fills f"],
    "echo hi >| f": ["fills f"],
    "echo hi &> f": ["fills f"],
    "echo hi &>> f": ["fills f"],
    "echo hi > f 2>&1": ["fills f"],
    "echo hi 2> e > f": ["fills e", "fills f"],
    "> f": ["fills f"],
    ": > f": ["fills f"],
    "printf 'a\\nb' > f": ["fills f"],
    "printf '%s' \"$UNKNOWN\" > f": ["fills f"],
    "echo $RANDOM > f": ["fills f"],
    "echo $(ls) > f": ["fills f"],
    "cat a b > f": ["fills f"],
    "cat > f <<'E'\n$(rm x)\nE": ["fills f"],
    "cat > f <<E\nplain\nE": ["fills f"],
    "cat <<< hi > f": ["fills f"],
    "sort a > f": ["fills f"],
    "head -n 3 a > f": ["fills f"],
    "sed s/a/b/ a > f": ["fills f"],
    "grep x a > f": ["fills f"],
    "ls *.py > f": ["fills f"],
    "{ echo a; echo b; } > f": ["fills f"],
    "(echo a) > f": ["fills f"],
    "for i in 1 2; do echo $i; done > f": ["fills f"],
    "for i in a b; do touch $i; done": ["fills a", "fills b"],
    "for i in a b; do echo x > $i.txt; done": ["fills a.txt", "fills b.txt"],
    "ls | tee f": ["fills f"],
    "ls | tee -a f g": ["fills f g"],
    "tee f < a": ["fills f"],
    "truncate -s 0 f": ["fills f"],
    "truncate --size=+5 f": ["fills f"],
    "mkdir d": ["fills d"],
    "mkdir -p a/b/c": ["fills a/b/c +parents"],
    "mkdir -m 700 d": ["fills d"],
    "mkdir -pv src/{a,b}": ["fills src/a src/b +parents"],
    "chmod +x f": ["fills f"],
    "chmod u+x,g+w f": ["fills f"],
    "chmod a-w f": ["fills f"],
    "chmod 755 f d": ["fills f d"],
    "chmod 0644 f": ["fills f +files"],
    "chmod 600 f": ["fills f +files"],
    "chmod -R 755 d": ["fills d/**"],
    "chmod -R u+w d": ["fills d/**"],
    "rm f": ["removes f"],
    "rm -f f g": ["removes f g"],
    "rm -- -f": ["removes -f"],
    "rm -r d": ["removes d/**"],
    "rm -rf d e": ["removes d/** e/**"],
    "rm -R d": ["removes d/**"],
    "rm -d d": ["removes d/**"],
    "rm --recursive --force d": ["removes d/**"],
    "rmdir d": ["removes d/**"],
    "unlink f": ["removes f"],
    "sed -i s/a/b/ f": ["removes f"],
    "sed -i 's/a/b/g; 1d' f g": ["removes f g"],
    "sed -i -e s/a/b/ -e s/c/d/ f": ["removes f"],
    "sed -Ei 's/(a)/\\1/' f": ["removes f"],
    "sed -n -i p f": ["removes f"],
    "sed --in-place s/a/b/ f": ["removes f"],
    "sed -i.bak s/a/b/ f": ["moves f f.bak"],
    "sed --in-place=.orig s/a/b/ f": ["moves f f.orig"],
    "sed -ie s/a/b/ f": ["moves f fe"],
    "cp a b": ["fills b<a"],
    "cp a d/b e": ["fills e<a e<b"],
    "cp -p a b": ["fills b<a"],
    "cp -f a b": ["removes b<a"],
    "cp -r a b": ["moves b<a"],
    "cp -R a b": ["moves b<a"],
    "cp -P a b": ["moves b<a"],
    "cp -T a b": ["fills b<"],
    "cp -rT a b": ["moves b<"],
    "cp -t d a b": ["fills d<a d<b"],
    "cp --target-directory=d a": ["fills d<a"],
    "cp /etc/hosts .": ["fills .<hosts"],
    "mv a b": ["moves a/** b<a"],
    "mv a b c": ["moves a/** b/** c<a c<b"],
    "mv -f a b": ["moves a/** b<a"],
    "mv -T a b": ["moves a/** b<"],
    "mv -t d a": ["moves a/** d<a"],
    "mv d/a .": ["moves d/a/** .<a"],
    "mv -- -a b": ["moves -a/** b<-a"],
    "ln -s a b": ["moves b<a"],
    "ln -sfn a b": ["moves b<a"],
    "ln -s ../a": ["moves .<a"],
    "ln -sT a b": ["moves b<"],
    "cd d && touch x": ["fills d/x"],
    "cd d; touch x": ["fills x d/x"],
    "cd d || touch x": ["fills x"],
    "cd /q && touch x": ["fills /q/x"],
    "cd d && cd .. && touch x": ["fills x"],
    "cd d/e && touch ../x": ["fills d/e/../x"],
    "cd -- d && touch x": ["fills d/x"],
    "(cd d && touch x); touch y": ["fills d/x", "fills y"],
    "cd d | touch x": ["fills x"],
    "{ cd d; } && touch x": ["fills x d/x"],
    "mkdir -p d && cd d && touch x": ["fills d +parents", "fills d/x"],
    "rm -rf build && mkdir build && cd build && touch x": [
        "removes build/**", "fills build", "fills build/x",
    ],
    "cd .. && rm x": ["removes /x"],
    "touch a && cd .. && touch x": ["fills a", "fills /x"],
    "rm -rf build && mkdir build": ["removes build/**", "fills build"],
    "touch a; rm b\nmv c d": ["fills a", "removes b", "moves c/** d<c"],
    "if [ -f a ]; then rm a; fi": ["removes a"],
    "if test -e a; then touch b; else touch c; fi": ["fills b", "fills c"],
    "[ -d d ] || mkdir d": ["fills d"],
    "[[ -f a ]] && rm a": ["removes a"],
    "set -e; touch x": ["fills x"],
    "touch x && ls -la && cat x": ["fills x"],
    "touch x && echo done": ["fills x"],
    "git log -1 > f": ["fills f"],
    "grep -q x a && rm b": ["removes b"],
}  # fmt: skip

UNBOUNDED = [
    # Words that the text does not decide.
    "touch *", "touch *.py", "touch a?", "touch [ab]", "touch $x", 'touch "$x"', "touch $1", "touch ~",
    "touch ~/x", "touch ~root/x", "touch $HOME/x", "touch $(echo x)", "touch `echo x`", "touch $((1))",
    "touch <(ls)", "rm -rf *", "rm $x", "rm -rf $x/", "mv * d", "cp a $d", "echo > $f", "echo > *.txt",
    "echo > ~/x", "echo > $(date)", 'echo > "$x"', "echo > $HOME/x", "x=$(pwd); touch $x",
    "read x; touch $x", "touch $'\\u00e9'", "touch $'caf\\xe9'", "touch ${x:-a}", "touch {1..3000}$x",
    'x=a; x="$x$y"; touch $x', "for i in *; do touch $i; done", "for i in $x; do touch $i; done",
    "while read x; do touch $x; done < a",
    # Where it stands is not known.
    "cd; touch x", "cd ~; touch x", "cd -; touch x", "cd $x; touch x", "cd -P d; touch x", "cd $(pwd)",
    "cd -P d && touch x", "pushd d; touch x", "popd; touch x", "cd d e; touch x", "cd ''; touch x",
    "while true; do cd d; touch x; done", "cd $HOME; touch x", "cd d; mv ../d ../e; cd ..; touch x",
    "cd d; rm /p/d; cd ../e; touch x", "rm -r a; cd .. && touch x", "command cd -P d; touch x", "x=..; rm a; cd $x; touch x", "x=-P; cd $x d; touch x", "CDPATH=/ cd d; touch x",
    # Programs and options that are not in the table.
    "make", "npm test", "python x.py", "./touch x", "bin/touch x", "git checkout a", "git add x",
    "npm test > log", "make | tee log", "sh -c 'touch x'", "bash x.sh", "eval touch x", "xargs rm < a",
    "find . -delete", "find . -exec rm {} +", "env touch x", "sudo touch x", "nohup touch x", "exec touch x",
    "touch --frobnicate x", "rm --no-preserve-root -rf /", "rm --rec d", "rm d -r", "touch a -- -b", "cp -a a b", "cp -d a b",
    "cp -l a b", "cp -s a b", "cp --parents a b", "cp -b a b", "cp --backup a b", "cp -S .x a b", "mv -b a b",
    "mv --backup=t a b", "ln a b", "ln -f a b", "ln -sb a b", "rmdir -p a/b", "mkdir -Z d", "cp --preserve=all a b",
    "cp a/. b", "cp -r . b", "cp -r a/ b", "mv a/ b", "cp -r .. b", "mv a/.. b", "cp -r / b", "cp a", "mv a", "cp -t d", "mv -t d -t e a",
    "chmod 000 f", "chmod 200 f", "chmod a-r f", "chmod -x f", "chmod u=rw f", "chmod --reference=a b",
    "chmod -R 644 d", "chmod -R a-x d", "chmod g+rw=x f", "chown u f", "chgrp g f", "dd if=a of=b", "install a b",
    "gzip f", "tar xf a.tar", "patch < a", "split a", "mkfifo f", "mktemp x", "shred f", "truncate -s -$x f",
    "sed -i 's/a/b/w f' g", "sed -i 'w f' g", "sed -i 's/a/b/e' g", "sed -i e g", "sed -i -f s g",
    "sed -i '1r f' g", "sed -i.*x s/a/b/ f", "sed -i/d/x s/a/b/ f", "sed --follow-symlinks -i s/a/b/ f",
    "sed -i $s f", "perl -i -pe s/a/b/ f", "awk -i inplace 1 f", "ed f", "sort -o f a", "tee $f", "unlink a b",
    # What runs is not what it seems.
    "touch(){ rm a; }; touch x", "function touch { :; }; touch x", "alias touch=rm; touch x", "PATH=. touch x",
    "PATH=.; touch x", "export PATH=.; touch x", "LD_PRELOAD=x touch x", "IFS=,; touch x", "hash -p x touch; touch x",
    "enable -n echo; echo > f", "shopt -s expand_aliases; touch x", "trap 'rm a' EXIT; touch x", ". x; touch y",
    "source x; touch y", "BASH_ENV=x touch x", "exec > f", "exec 3> f", "coproc touch x", "unset x; touch x",
    "set -k; touch x PATH=.", "printf -v x a; touch $x", "declare x=a; touch $x", "SIMPLE_BACKUP_SUFFIX=/x cp a b",
    # It does not run once, in order, to its end.
    "touch x &", "touch x & rm x", "sleep 1 && touch x &", "for i in a b; do rm $i; done", "while true; do rm a; done",
    "rm a | tee f", "ls | tee f; mv f g", "echo $(rm a)", "echo $(ln -s /etc d) > d/x", "until rm a; do :; done",
    "for ((;;)); do touch x; done", "select x in a; do touch x; done", "case $x in *) rm a;; esac",
    # Redirections elsewhere.
    "echo > /dev/tcp/h/1", "echo >&$x", "echo > >(cat)", "ls > >(tee f)", "{fd}> f echo", "echo > -", "echo hi <> f",
    # It cannot be read, or there is nothing to keep.
    "touch 'x", "touch x )", "if touch x", "touch x\u200b", "", "true", "ls", "cat a", "echo hi", "cd d",
]  # fmt: skip


@pytest.mark.proves("SH-8")
@pytest.mark.parametrize("command", BOUNDED)
def test_the_bound_of_a_command_is_in_its_words(command):
    assert spelled(command) == BOUNDED[command]


@pytest.mark.proves("SH-8")
@pytest.mark.parametrize("command", UNBOUNDED)
def test_a_command_that_is_not_understood_has_no_bound(command):
    assert spelled(command) is None


def test_every_program_of_a_command_counts_that_is_taken_for_the_well_known_one():
    extent = analyze("cat a > f && timeout 5 touch x", CWD, HOME).extent
    assert extent is not None
    assert extent.programs == {"cat", "timeout", "touch"}


def test_programs_that_leave_something_when_they_are_killed_say_under_which_names():
    extent = analyze("sed -i s/a/b/ f; ln -sf a b", CWD, HOME).extent
    assert extent is not None
    assert [act.scratch for act in extent.acts] == [("sed??????",), ("Cu??????",)]
