"""Read-only proofs (C7, C10, C11, C15, C16, C22, C23, C26)."""

from __future__ import annotations

from product_model import MODES, NO_RULE, WHOLE, WHOLE_OTHER_DENY, Case, Row, cross

PLAIN = [
    words.split("|")
    for words in (
        "ls", "ls|-la", "ls|src", "ls|-l|src|docs", "cat|a.txt", "cat|-n|a.txt|b.txt", "head|-n|5|a.txt", "head|-5|a.txt", "tail|-n|5|a.txt", "tail|-c|10|a.txt", "wc|-l|a.txt", "wc|a.txt|b.txt", "pwd", "whoami", "id", "id|-u", "uname|-a", "true", "false", "echo|hi", "echo|-n|a|b", "seq|3", "seq|1|2|9", "which|ls", "grep|x|a.txt", "grep|-rn|x|src", "grep|-i|x|a.txt|b.txt", "grep|-E|'a|b'|a.txt".replace("a|b", "a\\+b"), "rg|x", "rg|-n|x|src", "rg|-i|-C|2|x|src", "find|.|-name|'*.py'", "find|src|-type|f", "find|.|-maxdepth|2|-print", "stat|a.txt", "file|a.txt", "du|-sh|src", "diff|a.txt|b.txt", "diff|-u|a.txt|b.txt", "nl|a.txt", "sort|a.txt", "sort|-n|-k|2|a.txt", "uniq|a.txt", "uniq|-c|a.txt", "cut|-d,|-f1|a.txt", "tr|a|b", "sed|-n|1,5p|a.txt", "sed|-n|'1,5p'|a.txt",
        "git|status", "git|status|--short", "git|log", "git|log|--oneline|-5", "git|log|-n|5|--stat", "git|diff", "git|diff|--stat", "git|diff|HEAD~1", "git|diff|main..HEAD", "git|show", "git|show|HEAD", "git|show|HEAD:src/a.txt", "git|branch", "git|branch|-a", "git|branch|--list", "git|rev-parse|HEAD", "git|rev-parse|--abbrev-ref|HEAD", "git|blame|a.txt", "git|ls-files", "git|ls-files|src", "git|remote|-v", "git|tag|-l", "git|stash|list", "git|describe|--tags", "git|grep|x", "git|grep|-n|x|--|src", "git|log|--|src/a.txt", "git|log|--author=x", "git|log|--since=yesterday", "git|shortlog|-sn", "git|diff|--cached", "git|diff|--name-only", "git|show|--stat|HEAD",
        "basename|src/a.txt", "dirname|src/a.txt", "test|-f|a.txt", "[|-d|src|]", "date", "comm|a.txt|b.txt", "cmp|a.txt|b.txt", "paste|a.txt|b.txt", "md5sum|a.txt", "sha256sum|a.txt", "od|-c|a.txt", "jq|.|a.json", "jq|'.a'|a.json", "jq|.env|f.json", "tac|a.txt", "rev|a.txt", "printf|'%s\\n'|a", "readlink|a.txt", "cat|a.git", "tree|src", "df|-h", "uptime", "hostname", "nproc", "arch", "type|ls", "column|-t|a.txt", "fold|-w|80|a.txt", "expand|a.txt", "join|a.txt|b.txt", "diff|-r|src|old", "gunzip|-c|a.gz",
    )
]  # fmt: skip
"""Word lists of everyday read-only commands; `|` stands between the words."""

COMPOUND = (
    "ls && pwd", "ls; pwd", "ls | wc -l", "ls || true", "cat a.txt | grep x | sort | uniq -c", "if [ -f a.txt ]; then cat a.txt; fi", "for f in a b; do echo $f; done", "for f in src/a.txt src/b.txt; do cat \"$f\"; done", "while false; do ls; done", "(ls; pwd)", "{ ls; pwd; }", "! grep x a.txt", "case a in a) ls;; esac", "[[ -f a.txt ]] && cat a.txt", "echo $(ls)", "echo \"$(git rev-parse HEAD)\"", "echo `pwd`", "cat <<EOF\nhello\nEOF", "cat <<'EOF'\n$(x)\nEOF", "cat <<< hello", "diff <(sort a.txt) <(sort b.txt)", "ls 2>/dev/null", "ls > /dev/null 2>&1", "ls 2>&1 | head", "ls &> /dev/null", "ls >&2", "cat < a.txt", "< a.txt cat", "x=1; echo $x", "x=$(git rev-parse HEAD); echo \"$x\"", "echo $HOME", "echo \"$USER\"", "echo $PATH", "echo ${LANG:-C}", "git log $(git merge-base main HEAD)..HEAD", "a=(x y); echo ${a[1]}", "time ls", "timeout 5 ls", "nice ls", "command ls", "ls -la # comment", "LC_ALL=C sort a.txt", "TZ=UTC date", "NO_COLOR=1 ls", "LANG=C ls -l",
    "cd src && ls", "cd src && cat ../a.txt", "cd src && cd .. && cat a.txt", "(cd src && cat ../a.txt)", "cd src/sub && cat ../../a.txt", "cd /repo/src && ls", "cd ./src && cat a.txt && pwd", "cd /repo && ls", "cd . && ls",
    "find src -name '*.py' -print0 | xargs -0 grep foo", "find . -type f -name '*.md' | xargs wc -l", "git ls-files | xargs wc -l", "git ls-files -z | xargs -0 grep -n TODO", "rg -l foo | xargs head -n 3", "rg -l0 foo | xargs -0 wc -l", "git ls-files | xargs -n 1 file", "find . -print0 | xargs -0 -r -n 10 -P 4 grep -l x", "git ls-files '*.py' | xargs -d '\\n' cat", "find src -type f -print | xargs cat", "fd py | xargs head",
    "echo {1..3}", "cat {a,b}.txt", "cat a{1..3}.txt", "ls src/{x,y}", "for i in {1..3}; do echo $i; done", "head -n 1 src/{a,b}.txt", "echo {a..c}", "cat a{01..03}.txt", "ls {src,docs}/x", "echo a{,b}", "wc -l f{1..5..2}.txt",
    "cat src/*.py", "ls src/*.py", "wc -l src/*.txt", "head src/*.md", "grep x src/*.py", "cat .env.example", "cat .env.sample", "cat .env.template", "cat sub/.env.example", "grep x .env.example", "git show HEAD:.env.example", "find . -name .env", "rg --hidden -g '!.env' x", "ls -a", "cat .mcp.json", "cat .gitignore", "cat .claude/settings.json", "grep x .mcp.json", "cat a.env.txt", "cat env", "cat src/env.py", "python3 --version", "node --version", "git --version", "rg --version",
)  # fmt: skip

LANGUAGES = (
    "sed s/a/b/ a.txt", "sed 's/a/b/g' a.txt", "sed -E 's/(a)/\\1/' a.txt", "sed '1d' a.txt", "sed -n '$p' a.txt", "sed -n '/a/,/b/p' a.txt", "sed '/x/!d' a.txt", "sed -e 's/a/b/' -e 's/c/d/' a.txt", "sed 's/a/b/;s/c/d/' a.txt", "sed 'y/abc/def/' a.txt", "sed 's|a|b|' a.txt", "sed -n '/[w]/p' a.txt", "sed -n '1,10p;20q' a.txt", "sed 's/e/w/' a.txt", "sed -n '/e/p' a.txt", "sed 10q a.txt",
    "awk '{print $1}' a.txt", "awk -F: '{print $1}' a.txt", "awk 'NR==1' a.txt", "awk '/x/ {n++} END {print n}' a.txt", "awk '{s+=$1} END {print s}' a.txt", "awk -v n=1 'NR==n' a.txt", "awk 'length > 80' a.txt", "awk '{print NR \": \" $0}' a.txt",
    "jq '.a.b' a.json", "jq -r '.[] | .name' a.json", "jq 'keys' a.json", "jq -c '.a[]' a.json", "jq --arg n x '.[$n]' a.json", "jq 'select(.a == 1)' a.json", "jq '.environment' a.json", "jq '.env.HOME' a.json",
    "find . -name '*.py' -not -path './x/*'", "find . -type d -empty", "find . -mtime -1 -ls", "find . -size +1M", "find . \\( -name a -o -name b \\) -print", "find . -printf '%p\\n'", "find src -newer a.txt", "find . -maxdepth 1 ! -name x", "find . -iname '*.md' -print0", "find . -regex '.*x'",
)  # fmt: skip
"""Ordinary programs in the little languages of sed, awk, jq and find (S3: such commands pass)."""

CUT_SHORT = (
    "head -n",
    "grep -e",
    "sort -k",
    "cut -d",
    "find . -name",
    "git log -n",
    "jq --arg",
    "jq --arg a",
    "sed -e",
    "sed -n",
    "rg -g",
    "xargs -n",
    "timeout",
    "timeout 5",
    "nice -n",
    "find . -print0 | xargs -0 -n",
    "git -C",
    "git",
    "git log -L",
    "git show HEAD:",
    "test -f",
    "[ -f ]",
    "[ a = ]",
    "[ ]",
    "test",
    "tail -n",
    "cd --",
    "ls --",
    "cat --",
    "find",
    "find .  -not",
    "command",
    "command -v",
    "time",
    "echo --",
    "seq",
    "tr",
    "diff a.txt",
    "diff",
    "uniq -f",
    "git config --get",
    "git stash list --",
    "git remote",
    "git branch --contains",
    "true;",
    "[[ a ]]",
)
"""Options without their value and programs without operands: whatever the verdict, it is one."""
OPEN_READS = ("pip list", "pip show x", "pip freeze", "npm ls", "git config --get user.name", "cargo --version", "tail -f a.txt", "yes", "cat *", "cat .*", "cat .e*", "cat \"$PWD/.env\"", "grep -c x .env", "wc -l .env", "git log -- .env", "git log -p", "diff -N d1 d2", "rg -uu x", "grep -r x .", "echo ${#GITHUB_TOKEN}", "[ -n \"$GITHUB_TOKEN\" ]", "/bin/ls", "pushd src && ls", "grep -e \"$(cat a.txt)\" b.txt", "cat .ENV", "grep -r --include='*' x .", "cat .git/config", "less a.txt", "tree", "lsb_release -a", "free -h", "ps aux", "env | wc -l", "cat <<EOF\nunfinished", "du -sh *", "echo *", "diff -r a b", "git diff $(git merge-base main HEAD)", "ls -la .env", "stat .env", "test -f .env", "[ -f .env ]", "git ls-files .env", "FOO=1 ls", "git diff --no-index a.txt b.txt", "xxd a.txt", "base64 a.txt", "history", "jobs", "sleep 1", "git cat-file -p HEAD:a.txt")  # fmt: skip

OUTSIDE_BRACES = (
    "cat {a.txt,/etc/passwd}",
    "cat /etc/{passwd,group}",
    "ls {src,..}",
    "cat {.,..}/x",
    "cat a{1..3}/../../../x",
    "head {a,../b}.txt",
    "ls {/etc,src}",
    "cat ../f{1..3}.txt",
    "wc -l {~,src}/x",
    "cat {a,$x}.txt",
    "cat /proc/self/environ",
    "cat /proc/self/root/etc/passwd",
    "ls /proc/1/root",
    "cat /dev/fd/3",
    "cat /proc/self/cwd/../x",
    "sort {-o,out} a.txt",
    "sort -{o,u} out a.txt",
    "find . -{delete,print}",
    "cat {.env,a.txt}",
    "cat .en{v,x}",
    "cat .e{n,m}v",
)
OUTSIDE_PATHS = (
    "/etc/passwd",
    "../x",
    "~/x",
    "/tmp/x",
    "$HOME/x",
    "src/../../x",
    "/repo-evil/x",
    "/",
    "..",
    "~",
    "/dev/zero",
    "~other/x",
    "'/etc/passwd'",
    "/repo/../etc",
)
READERS_OF_PATHS = ("ls {}", "cat {}", "head {}", "tail -n 5 {}", "wc -l {}", "grep x {}", "grep -r x {}", "rg x {}", "find {} -name x", "stat {}", "file {}", "du -sh {}", "diff a.txt {}", "diff {} a.txt", "nl {}", "sort {}", "uniq {}", "cut -d, -f1 {}", "sed -n 1,5p {}", "cat < {}", "cat a.txt {}", "cat -- {}", "ls -la -- {}", "cd {} && ls", "git diff --no-index a.txt {}", "git -C {} status", "md5sum {}", "od -c {}", "jq . {}", "cmp a.txt {}", "tac {}", "comm a.txt {}", "paste {}", "for f in {}; do cat $f; done", "x={}; cat $x", "grep -f {} a.txt", "tr a b < {}", "while read -r l; do echo \"$l\"; done < {}", "echo $(cat {})", "echo \"$(< {})\"", "cat <(cat {})", "tree {}")  # fmt: skip
UNKNOWN_PATHS = (
    "$x",
    '"$x"',
    "$(cat a.txt)",
    '"$(cat a.txt)"',
    "$1",
    '"$@"',
    "${x:-a}",
    "`cat a.txt`",
    "src/$x",
)

OPTIONS = (
    "find . -exec zz {} \\;", "find . -exec ls {} +", "find . -execdir zz \\;", "find . -ok zz \\;", "find . -delete", "find . -fprint out", "find . -fprintf out %p", "find . -fls out", "find . -fprint0 out", "find -files0-from list", "find -L . -name x", "sort -o out a.txt", "sort --output=out a.txt", "sort --outp=out a.txt", "sort --compress-program=zz a.txt", "sort --comp=zz a.txt", "sort -uo out a.txt", "sort -no out a.txt", "sort --files0-from=list", "sort -T /tmp a.txt", "sed -i s/a/b/ a.txt", "sed 's/a/b/w out' a.txt", "sed 's/a/id/e' a.txt", "sed -n 'w out' a.txt", "sed -n '1e id' a.txt", "sed -f script a.txt", "sed -n '1r /etc/passwd' a.txt", "sed -n 'R /etc/passwd' a.txt", "sed -ni p a.txt", "sed --expression='w out' a.txt", "sed -n '/[/p;s/]/w out/' a.txt", "rg --pre zz x", "rg --pre=zz x", "rg --hostname-bin=zz x", "rg -z x", "rg --search-zip x", "rg -f /etc/passwd x", "rg --ignore-file=/etc/x x", "rg -L x", "rg --follow x", "grep -f /etc/passwd a.txt", "grep --file=/etc/passwd a.txt", "grep -R x .", "uniq a.txt out.txt", "file -C -m zz", "file -m magic a.txt", "file -f list", "file -z a.gz", "wc --files0-from=list", "du --files0-from=list", "du -X /etc/x", "diff --to-file=/etc/passwd a.txt", "diff --from-file=/etc/passwd a.txt", "date -s 2020-01-01", "date --set=x", "date -f list", "hostname evil", "hostname -F x", "which zz; zz", "tree -o out", "xxd -r a.txt out", "xxd a.txt out", "xxd -pc a.txt out", "xxd -p -c 16 a.txt out", "strings -n @opts a.txt", "strings @opts", "jq -f /etc/x a.json", "jq 'env' a.json", "jq '$ENV' a.json", "jq '$ ENV' a.json", "jq '$ENV.X' a.json", "jq -n env.HOME", "jq 'input_filename, env.A' a.json", "jq --rawfile a /etc/passwd . b.json", "jq --slurpfile a /etc/passwd . b.json", "jq -L x . a.json", "jq -n --arg a $(echo 'x --rawfile p KEY $p') .", "jq 'import \"x\" as y; .' a.json", "ps -p $(echo 1 e)", "ps auxe", "ps e", "shuf -r a.txt", "shuf -r -i 1-9", "shuf -o out a.txt", "shuf --random-source=/etc/x a.txt",
    "git diff --output=x", "git diff --outpu=x", "git log --output=x", "git show --output x", "git diff --ext-diff", "git log --ext-diff -p", "git show --textconv", "git -c core.pager=zz log", "git -c core.fsmonitor=zz status", "git --exec-path=x status", "git -p log", "git --paginate log", "git grep -O x", "git grep -Ozz x", "git grep --open-files-in-pager=zz x", "git grep -f /etc/passwd", "git ls-remote", "git ls-remote --upload-pack=zz .", "git --git-dir=x status", "git --work-tree=/ status", "git -C sub status", "git -C /tmp log", "git --config-env=a=b status", "git branch new", "git branch -d old", "git branch -D old", "git branch -m a b", "git branch -f a b", "git branch -u origin/x", "git branch --edit-description", "git branch --set-upstream-to=x", "git tag v1", "git tag -d v1", "git tag -a v1", "git tag -f v1", "git stash", "git stash pop", "git stash drop", "git stash push", "git stash -- list", "git stash clear", "git stash apply", "git stash list --output=x", "git remote add a b", "git remote rm a", "git remote show origin", "git remote update", "git remote set-url a b", "git remote -v update", "git reflog expire --all", "git reflog delete x", "git config user.name x", "git config -e", "git config --list", "git fetch", "git pull", "git push", "git checkout main", "git checkout -- .", "git reset --hard", "git clean -fdx", "git commit -m x", "git add .", "git submodule update", "git bisect run zz", "git rebase -x zz", "git blame --contents /etc/passwd a.txt", "git worktree add ../x", "git notes add", "git difftool", "git cat-file --textconv HEAD:a", "git cat-file --filters HEAD:a", "git archive -o x HEAD", "git bundle create x HEAD", "git rev-parse --parseopt", "git describe --dirty --output=x", "git log -- /etc/passwd", "git diff --no-index /etc/passwd a.txt", "git show-ref --exclude-existing", "git branch --list -d x", "git --bare log", "git --namespace=x log",
    "sed 's|a|b|w out' a.txt", "sed 's/a/b/gw out' a.txt", "sed 's/[]/w]x/y/w out' a.txt", "sed 's/a\\/b/c/w out' a.txt", "sed '/a/w out' a.txt", "sed '1,2w out' a.txt", "sed -n '/a/{p;w out\n}' a.txt", "sed 's/a/b/e' a.txt", "sed 's/a/b/ge' a.txt", "sed 's,a,b,e' a.txt", "sed '/x/e' a.txt", "sed 'e' a.txt", "sed '1r ../x' a.txt", "sed -e p -e 'w out' a.txt", "sed -n -e '$!N;P;w out' a.txt", "sed 's/x/y/\nw out' a.txt", "sed 'y/a/b/;w out' a.txt", "sed 'a\\\ntext\nw out' a.txt", "sed '/[/]w/w out' a.txt", "sed --file=x a.txt", "sed -s --in-place=.x p a.txt", "sed -z -i p a.txt", "sed \"$x\" a.txt", "sed $x a.txt", "sed s/a/$x/ a.txt", "sed -n \"$x\"p a.txt",
    "awk '{print $1 > \"out\"}' a.txt", "awk '{print >> \"out\"}' a.txt", "awk '{printf \"x\" > \"out\"}' a.txt", "awk '{print | \"zz\"}' a.txt", "awk '{\"zz\" | getline}' a.txt", "awk '{getline < \"/etc/passwd\"; print}' a.txt", "awk '{system($1)}' a.txt", "awk 'BEGIN { ARGV[1]=\"/etc/passwd\" } 1' a.txt", "awk -i inplace '{print}' a.txt", "awk '@load \"x\"' a.txt", "awk '@include \"x\"' a.txt", "awk \"$x\" a.txt", "awk $x a.txt", "awk -v x=\"$y\" -f z a.txt", "awk 'BEGIN{print ENVIRON[\"A\"]}'", "awk '{print $1}' /etc/passwd", "awk '{print > $1}' a.txt", "awk '{close(\"zz\"); print |& \"zz\"}' a.txt",
    "jq 'env.A' a.json", "jq '. as $x | env' a.json", "jq '$__prog_args' a.json --args $(cat a.txt)", "jq 'include \"x\"; .' a.json", "jq 'input' a.json /etc/x", "jq 'get_search_list, env' a.json", "jq \"$x\" a.json", "jq $x a.json", "jq . /etc/x", "jq --argfile a /etc/x . b.json", "jq --from-file x a.json", "jq -nf x", "jq '$ENV|keys' a.json", "jq '[env]' a.json", "jq 'if env then 1 else 2 end' a.json", "jq '.a | $ENV' a.json", "jq '\"\\(env)\"' a.json", "jq '\"\\($ENV.A)\"' a.json",
    "find . -name x -exec zz {} +", "find . -name x -o -delete", "find . \\( -name x -delete \\)", "find . -printf a -fprintf out b", "find . ! -name x -delete", "find $x -name y", "find . -name $x", "find . -name \"$x\" -delete", "find . -follow -name x", "find . -newer /etc/passwd", "find . -samefile /etc/passwd", "find . -anewer ../x", "find . /etc -name x", "find ~ -name x", "find . -name x -quit -delete", "find . -fprint", "find . -unknown x", "find . -exec", "find . -okdir zz {} +",
    "ls --foo", "cat --foo a.txt", "head --foo", "grep --foo a b", "seq --foo", "tail --foo", "date --foo", "wc --foo", "stat --foo a.txt", "id --foo", "tee out", "ls | tee out", "split a.txt", "csplit a.txt 5", "awk 'BEGIN{system(\"zz\")}'", "awk '{print > \"out\"}' a.txt", "awk '{print | \"sh\"}' a.txt", "awk -f script a.txt", "awk 'BEGIN{while((getline l < \"/etc/passwd\")>0) print l}'", "man ls", "man -P zz ls", "vim a.txt", "tar --checkpoint-action=exec=zz -cf a.tar .", "tar xf a.tar", "python3 -c 1", "python3 x.py", "node -e 1", "perl -e 1", "bash x.sh", "sh -c ls", "bash -c ls", "source a", ". a", "eval ls", "exec ls", "make", "npm test", "cargo build", "env ls", "sudo ls", "watch ls", "setsid ls", "nohup zz", "xargs ls", "ls | xargs rm", "export A=1; zz", "enable -f x y", "alias ls=zz; ls", "shopt -s extglob; ls", "set -x; zz", "hash -p /x ls", "ls() { zz; }; ls", "PATH=. ls", "LD_PRELOAD=x ls", "IFS=x; ls", "GIT_EXTERNAL_DIFF=zz git diff", "PAGER=zz git log", "RIPGREP_CONFIG_PATH=x rg y", "GIT_DIR=x git status", "BASH_ENV=x ls", "GREP_OPTIONS=x grep y", "LESSOPEN=x ls", "export PATH=.; ls", "declare -x PATH=.; ls", "PATH+=:. ls", "read PATH < a.txt; ls", "for PATH in .; do ls; done", "printf -v PATH .; ls",
    "find . | xargs rm", "find . | xargs -I{} cat {}", "find . | xargs sh -c ls", "find . | xargs -a list cat", "cat list | xargs cat", "find / -name x | xargs cat", "find . -print0 | xargs -0 sed -i s/a/b/", "find . | xargs rg --pre zz x", "find . | xargs wc --files0-from=-", "echo /etc/passwd | xargs cat", "find . -printf '/etc/passwd\\n' | xargs cat", "git ls-files | sed 's/^/..\\//' | xargs cat", "find ../x | xargs cat", "find . | xargs -o cat", "find . | xargs sort -o out", "find . | xargs zz", "find . | xargs -E x cat", "git ls-files --with-tree=$x | xargs zz", "ls | xargs cat", "find . -exec echo /etc/passwd \\; | xargs cat", "find . | xargs env", "find . | xargs git add", "find . | xargs xargs cat", "find . | xargs grep -f", "find . | xargs uniq", "find . | xargs -L 1 cat", "fd -x rm", "fd -X rm", "fd --exec zz", "fd -xzz",
)  # fmt: skip

GLOBS = ("find *.txt", "find . -name *.py", "find src/* -name x", "sort *.txt", "sort src/*", "sed -n 1p *.txt", "sed -n 1,5p src/*.txt", "rg x *.py", "rg x src/*", "rg *.py", "git log *.py", "git diff *", "git log -- *.py", "git show *", "git ls-files *.py", "git grep x *.py", "find . -path ./x*", "sort a?.txt", "sort [ab].txt", "git blame src/*.py", "rg -g *.py x", "git status src/*")  # fmt: skip
QUOTED_GLOBS = ("find . -name '*.py'", "find . -name \"*.py\"", "find . -name \\*.py", "rg -g '*.py' x", "git log -- '*.py'", "git ls-files '*.py'", "grep -r --include='*.py' x src", "git grep x -- '*.py'", "echo '*'", "grep '*' a.txt", "find . -path './x*'", "git diff -- 'src/*'")  # fmt: skip

SECRET_NAMES = ("GITHUB_TOKEN", "NPM_TOKEN", "AWS_SECRET_ACCESS_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "DATABASE_PASSWORD", "GH_TOKEN", "STRIPE_SECRET_KEY", "PGPASSWORD", "SLACK_BOT_TOKEN", "AZURE_CLIENT_SECRET", "GITLAB_TOKEN", "HF_TOKEN", "JWT_SECRET", "SIGNING_KEY_PASSPHRASE", "DOCKER_PASSWORD", "CI_JOB_TOKEN", "SENTRY_AUTH_TOKEN", "PRIVATE_KEY", "MY_CREDENTIALS")  # fmt: skip
SECRET_FORMS = ("echo ${}", 'echo "${}"', "echo ${{{}}}", "printf '%s' \"${}\"", "echo ${{A:-${}}}", "echo ${{A:+${{{}}}}}", "echo \"${{A:-x${{{}}}y}}\"", "echo ${{{}:0:4}}", "cat <<< ${}", "cat <<EOF\n${}\nEOF", "x=${}; echo $x", "echo a ${} b", "echo $(echo ${})", "echo ${{{}:-none}}", "echo ${{{}#a}}", "echo ${{{}^^}}", "for i in ${}; do echo $i; done", "echo ${{A:=${}}}", "echo ${{A/x/${}}}", "[[ a == ${} ]] || echo ${}", "declare -p {}", "printenv {}", "echo ${{{}@Q}}", "grep \"${}\" a.txt")  # fmt: skip
PRINTS_ENVIRONMENT = ("printenv", "env", "set", "export", "export -p", "declare -p", "declare -x", "compgen -e", "compgen -v", "printenv HOME", "env | sort", "set | grep TOKEN", "cat /proc/self/environ", "cat /proc/1/environ", "typeset -p", "declare", "echo \"${!GITHUB@}\" && env", "ps eww", "readonly -p", "awk 'BEGIN{for(k in ENVIRON) print ENVIRON[k]}'", "xargs --show-limits env", "python3 -c 'import os; print(os.environ)'", "jq -n '$ENV'", "jq -n 'env'", "gawk 'BEGIN{print ENVIRON[\"A\"]}'")  # fmt: skip
PUBLIC_NAMES = ("HOME", "PWD", "USER", "PATH", "SHELL", "LANG", "TERM", "EDITOR", "GIT_AUTHOR_NAME", "TOKENIZERS_PARALLELISM", "HOSTNAME", "LOGNAME", "COLUMNS", "VIRTUAL_ENV", "NODE_ENV", "CI", "TZ")  # fmt: skip

SECRET_FILES = (
    ".env",
    "./.env",
    "sub/.env",
    ".env.local",
    ".env.production",
    "/repo/.env",
    "src/../.env",
    "'.env'",
    ".e'nv'",
    ".\\env",
    "sub/.env.test",
)
SECRET_READERS = ("cat {}", "head {}", "tail -n 1 {}", "grep KEY {}", "grep -n . a.txt {}", "sort {}", "diff {} .env.example", "diff .env.example {}", "sed -n 1p {}", "nl {}", "cut -d= -f1 {}", "tr a b < {}", "cat < {}", "echo \"$(cat {})\"", "echo $(<{})", "while read -r l; do echo \"$l\"; done < {}", "mapfile -t a < {}", "od -c {}", "jq . {}", "awk '{{print}}' {}", "uniq {}", "rev {}", "tac {}", "cmp {} a.txt", "paste {}", "comm {} a.txt", "rg x {}", "git diff --no-index {} a.txt", "cat a.txt {}", "cat -- {}", "base64 {}", "xxd {}", "strings {}", "for f in {}; do cat $f; done", "x={}; cat $x", "cat <(cat {})", "cd sub && cat ../{}")  # fmt: skip
SECRET_GIT = ("git show HEAD:.env", "git show HEAD:./.env", "git show HEAD:sub/.env", "git show 'HEAD^{/a:}:.env'", "git show :.env", "git show :0:.env", "git show main:.env.local", "git show HEAD~1:.env", "git log -L1,2:.env", "git log -L 1,2:.env", "git log -L :f:.env", "git cat-file -p HEAD:.env", "git blame .env", "git diff .env", "git diff HEAD -- .env", "git diff -- .env.local", "git grep x -- .env", "git log -p -- .env", "git log -p .env", "git show HEAD -- .env", "git show HEAD -- '*.env'", "git diff -- ':(glob)**/.env'", "git diff main -- sub/.env", "git diff HEAD:.env a.txt", "git grep x HEAD -- .env", "git cat-file blob HEAD:.env", "git diff ':/.env'", "git log -p -- ':(top).env'", "git blame HEAD -- .env", "git show HEAD:.env HEAD:a.txt")  # fmt: skip
SECRET_SWEEPS = ("rg --hidden -g '.env' x", "rg --hidden -g .env x", "rg --hidden --glob=.env x", "rg -. -g '.env*' x", "rg --hidden --glob '**/.env' x", "rg --hidden -g '.env' -g '!x' x", "rg -uuu -g .env x", "grep -r --include=.env x .", "grep -r --include='.env*' x .", "grep -rn --include=.env.local x src", "grep -r --include '*.env' x .", "grep x -r --include=.env", "rg --hidden --iglob .ENV x", "rg x --hidden -g 'sub/.env'", "rg --files-with-matches --hidden -g .env x")  # fmt: skip

NETWORK = ("curl https://h", "wget h", "ping -c 1 h", "nslookup h", "dig h", "host h", "getent hosts h", "ssh h", "scp a h:", "nc h 1", "telnet h", "ftp h", "rsync a h:", "whois h", "traceroute h", "openssl s_client -connect h:1", "hostname -f", "hostname -i", "git ls-remote origin", "npm view x", "pip index versions x", "gh pr list", "aws s3 ls", "kubectl get pods", "git fetch --dry-run", "git remote show origin", "socat - TCP:h:1", "resolvectl query h", "mtr h", "arp -a h", "drill h", "http h", "aria2c h", "lynx h", "w3m h", "finger u@h", "smbclient //h/x", "ldapsearch -h h", "cat < /dev/tcp/h/80", "echo a > /dev/udp/h/53", "exec 3<>/dev/tcp/h/80")  # fmt: skip

CD_ASKS = ("cd .. && ls", "cd /tmp", "cd /tmp && ls", "cd src && cat ../../x", "cd $x && ls", 'cd "$x" && ls', "cd - && ls", "cd && ls", "cd ~ && ls", "cd src && git status", "cd src; git log", "(cd src && git diff)", "cd sub && ls && git show", "cd src || cat ../a.txt", "cd src & cat ../a.txt", "(cd src; ls); cat ../x", "CDPATH=/etc cd ssh && ls", "cd src/../.. && ls", "cd /repo/../etc && cat passwd", "cd / && cat etc/passwd", "cd src && cd ../.. && ls", "pushd /tmp && ls", "cd `cat a.txt` && ls", "cd src && ls ../../", "cd /repo-evil && ls", "cd src | cat ../../x", "cd 'src' && cat '../../x'", "if cd src; then cat ../../x; fi", "cd -P .. && ls", "cd src && git -C .. status")  # fmt: skip


def _make_reading_case(text: str, clause: str = "C7", reads: bool | None = True) -> Case:
    program = text.split(maxsplit=1)[0]
    return Case(
        text,
        text,
        clause,
        program,
        reads=reads,
        edits=None,
        note="" if reads is not None else "the clauses do not name this form",
    )


def _make_asking_cases(texts, clause: str, whole: bool | None = None) -> list[Case]:
    """Commands outside the proof; what rules for their programs cover is another group's matter."""
    return [
        Case(
            text,
            text,
            clause,
            text.split()[0],
            prefix=None,
            exact=None,
            whole=whole,
            edits=None,
            unknown=None,
        )
        for text in dict.fromkeys(texts)
    ]


def _insert_substitutions() -> list[str]:
    """An unknown program in a substitution, at and inside every word."""
    found: list[str] = []
    for number, words in enumerate(PLAIN):
        for place in range(1, len(words) + 1):
            spelled = ("$(zz)", '"$(zz)"', "`zz`", "<(zz)", '"${v:-$(zz)}"')[(number + place) % 5]
            found.append(" ".join([*words[:place], spelled, *words[place:]]))
            if place < len(words) and "'" not in words[place]:
                found.append(
                    " ".join([*words[:place], words[place] + "$(zz)", *words[place + 1 :]])
                )
    return found


def make_rows() -> list[Row]:
    """Every proof and every way out of it."""
    careful = ("default", "plan", "dontAsk")
    plain = [_make_reading_case(" ".join(words)) for words in PLAIN]
    outside = [
        form.format(path)
        for number, form in enumerate(READERS_OF_PATHS)
        for step, path in enumerate(OUTSIDE_PATHS)
        if (number + step) % 2 == 0
        and not ("< ~" in form and path[0] == "~")
        and not (form.startswith("x=") and path[0] == "'")
    ]
    unknown = [
        form.format(path)
        for number, form in enumerate(READERS_OF_PATHS)
        for step, path in enumerate(UNKNOWN_PATHS)
        if (number + step) % 3 == 0 and not form.startswith(("x=", "for f"))
    ]
    secrets = [
        form.replace("{}", name)
        if "{{" not in form and "${}" not in form
        else form.format(*[name] * form.count("{}"))
        for number, form in enumerate(SECRET_FORMS)
        for step, name in enumerate(SECRET_NAMES)
        if (number + step) % 4 == 0
    ]
    files = [
        form.format(*[path])
        for number, form in enumerate(SECRET_READERS)
        for step, path in enumerate(SECRET_FILES)
        if (number + step) % 3 == 0 and not ("../{" in form and path[0] == "/")
    ]
    return [
        *cross("read-only", plain, MODES, [NO_RULE, WHOLE_OTHER_DENY]),
        *cross(
            "read-only",
            [_make_reading_case(text, "C26" if "xargs" in text else "C7") for text in COMPOUND],
            MODES,
            [NO_RULE],
        ),
        *cross(
            "read-only",
            [_make_reading_case(text) for text in LANGUAGES],
            ("default", "plan", "dontAsk"),
            [NO_RULE],
        ),
        *cross(
            "read-only",
            [_make_reading_case(text, reads=None) for text in (*OPEN_READS, *CUT_SHORT)],
            ("default",),
            [NO_RULE],
        ),
        *cross(
            "read-only",
            [_make_reading_case(f"echo ${name}", "C16") for name in PUBLIC_NAMES],
            ("default", "plan"),
            [NO_RULE],
        ),
        *cross(
            "read-only",
            [_make_reading_case(text) for text in QUOTED_GLOBS],
            ("default", "dontAsk"),
            [NO_RULE],
        ),
        *cross("outside paths", _make_asking_cases(outside, "C10"), careful, [NO_RULE]),
        *cross("outside paths", _make_asking_cases(OUTSIDE_BRACES, "C10"), careful, [NO_RULE]),
        *cross("unknown paths", _make_asking_cases(unknown, "C10"), careful, [NO_RULE]),
        *cross("unsafe options", _make_asking_cases(OPTIONS, "C7"), careful, [NO_RULE]),
        *cross("globs", _make_asking_cases(GLOBS, "C7"), careful, [NO_RULE]),
        *cross(
            "substitutions",
            _make_asking_cases(_insert_substitutions(), "C22"),
            ("default", "plan"),
            [NO_RULE],
        ),
        *cross("secret variables", _make_asking_cases(secrets, "C24"), careful, [NO_RULE]),
        *cross(
            "secret variables", _make_asking_cases(PRINTS_ENVIRONMENT, "C16"), careful, [NO_RULE]
        ),
        *cross("secret files", _make_asking_cases(files, "C23"), careful, [NO_RULE]),
        *cross(
            "secret files",
            _make_asking_cases([*SECRET_GIT, *SECRET_SWEEPS], "C23"),
            careful,
            [NO_RULE],
        ),
        *cross("network", _make_asking_cases(NETWORK, "C15"), careful, [NO_RULE]),
        *cross("cd", _make_asking_cases(CD_ASKS, "C11"), careful, [NO_RULE]),
        *cross(
            "cd",
            [
                Case(text, text, "C11", "echo", prefix=None, whole=None, exact=None)
                for text in (
                    "cd src && echo a > b.txt",
                    "cd src; cat a.txt > b.txt",
                    "(cd src && echo a >> b.txt)",
                )
            ],
            ("default", "acceptEdits", "plan"),
            [NO_RULE],
        ),
        *cross(
            "network",
            _make_asking_cases(NETWORK, "C15", whole=None),
            ("bypassPermissions",),
            [NO_RULE, WHOLE],
        ),
    ]
