//! Names that git lists from its index: who reads these comes upon no secret that is not in there.

use super::*;
use crate::{
    base::tool::{Lead, Tracked},
    engine::policy::words,
};

/// Nobody looked at the index where `tracked` is none.
fn decided(command: &str, tracked: Option<&[&str]>, link: Option<&str>) -> Decision {
    let path = |it: &str| AbsPath::new(it).unwrap();
    let secrets = ["/w/.env", "/w/sub/prod.env"].map(path).to_vec();
    let tracked = tracked.map(|it| it.iter().map(|it| Tracked { path: path(it), changed: false }).collect());
    let lead = |it: &str| Lead { name: String::new(), path: path(it), real: path("/w/.env"), in_roots: true };
    let leads = link.map(lead).into_iter().collect();
    let targets = Targets { command: Some(command.to_owned()), secrets, tracked, leads, ..Targets::default() };
    let (args, roots) = (json!({ "command": command }), [path("/w")]);
    let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
    decide(&rules(""), &Query { mode: Mode::Yolo, roots: &roots, ..query }).decision
}

#[test]
fn what_is_not_in_the_index_is_not_come_upon() {
    for command in ALLOWED {
        assert_eq!(decided(command, Some(&[]), None), Decision::Allow, "{command}");
        assert_eq!(decided(command, Some(&["/w/.env"]), None), Decision::Ask, "{command}: it is tracked");
        assert_eq!(decided(command, Some(&["/w/sub/prod.env"]), None), Decision::Ask, "{command}: another is");
        assert_eq!(decided(command, Some(&[]), Some("/w/docs/l")), Decision::Ask, "{command}: a link may be");
        assert_eq!(decided(command, None, None), Decision::Ask, "{command}: nobody looked");
        assert!(words("run_shell_command", &json!({ "command": command })).shows, "{command}: nobody would look");
    }
    let wrong: Vec<&&str> = ASKED.iter().filter(|it| decided(it, Some(&[]), None) != Decision::Ask).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

const ALLOWED: &[&str] = &[
    "git ls-files | xargs grep x",
    "git --no-pager ls-files | xargs cat",
    "git ls-files -z | xargs -0 grep -n x",
    "git ls-files -m | head -20 | xargs -n1 head -5",
    "git ls-files | grep -v test | sort -u | xargs cat",
    "git ls-files | grep '\\.py$' | xargs -I{} sed -i s/a/b/ {}",
    "git ls-files | xargs -d '\\n' cat; echo done",
    "git diff --name-only | xargs grep -n TODO",
    "git diff --name-only -z --relative | xargs -0 sed -i 's/a/b/'",
    "git diff --cached --name-only --diff-filter=ACM | xargs cat",
    "git diff --staged --name-only --diff-filter=d | xargs cat",
    "git grep -l foo | xargs sed -i s/a/b/",
    "git grep -il foo | xargs sed -i s/a/b/ && cargo build",
    "git grep -lz -e foo | xargs -0 sed -i s/a/b/",
    "git grep -l foo src/ './sub*' | xargs grep bar",
    "sed -i s/a/b/ $(git grep -l foo)",
    "sed -i s/a/b/ $(git grep --files-with-matches foo) && git commit -am x",
    "grep foo $(git ls-files)",
    "cat \"$(git ls-files | head -1)\"",
    "wc -l x; cat $(git diff --name-only | tail -n 3)",
];

const ASKED: &[&str] = &[
    // What is not in the index, or is not said as it stands there.
    "git ls-files -o | xargs grep x",
    "git ls-files -co | xargs grep x",
    "git ls-files --others | xargs grep x",
    "git ls-files -i -o --exclude-standard | xargs cat",
    "git ls-files --with-tree=main | xargs cat",
    "git ls-files --full-name | xargs cat",
    "git ls-files --format='%(path)nv' | xargs cat",
    "git ls-files --recurse-submodules | xargs cat",
    "git ls-files $X | xargs cat",
    "git ls-files * | xargs cat",
    "git diff --name-only main | xargs cat",
    "git diff --name-only main... | xargs cat",
    "git diff --name-only HEAD | xargs cat",
    "git diff --name-only --cached | xargs cat",
    "git diff --name-only --cached --diff-filter=D | xargs cat",
    "git diff --name-only --cached --diff-filter=AD | xargs cat",
    "git diff --name-only --no-index a b | xargs cat",
    "git diff | xargs cat",
    "git status --porcelain | xargs cat",
    "git show --name-only | xargs cat",
    "git ls-tree --name-only main | xargs cat",
    "git grep -l foo main | xargs cat",
    "git grep -l foo main@{1}/ | xargs cat",
    "git grep -l -e foo main | xargs cat",
    "git grep -l foo main -- src sub | xargs cat",
    "git grep -l --untracked foo | xargs cat",
    "git grep -l --no-index foo | xargs cat",
    "git grep -h foo | xargs cat",
    "git grep foo | xargs cat",
    "git grep -l -f names | xargs cat",
    // Another index, or another folder.
    "git -C sub ls-files | xargs cat",
    "git --git-dir=x ls-files | xargs cat",
    "GIT_INDEX_FILE=x git ls-files | xargs cat",
    "env GIT_INDEX_FILE=x git ls-files | xargs cat",
    "export GIT_INDEX_FILE=x; cat $(git ls-files)",
    "./git ls-files | xargs cat",
    "cd sub && cat $(git ls-files)",
    "git add -f . && cat $(git ls-files)",
    "cat $(git ls-files); git add -f .",
    "git update-index --add x; cat $(git ls-files)",
    "git() { echo x; }; git ls-files | xargs cat",
    // Others say names, too, or change them.
    "{ printf x; git ls-files; } | xargs cat",
    "{ git ls-files; printf x; } | xargs cat",
    "git ls-files | sed 's/.example//' | xargs cat",
    "git ls-files | cut -c2- | xargs cat",
    "git ls-files | head -c 4 | xargs cat",
    "git ls-files | grep -o '.en.' | xargs cat",
    "git ls-files | sort names - | xargs cat",
    "git ls-files | xargs dirname | xargs cat",
    "git ls-files | xargs -I{} cat {}nv",
    "git ls-files | xargs -I% cat %nv",
    "git ls-files | xargs -d_ cat",
    "git ls-files | xargs -a names cat",
    "git ls-files | xargs cat < names",
    "git ls-files | xargs cat <<< x",
    "git ls-files | xargs sh -c 'cat \"${1%.example}\"' cat",
    "git ls-files | xargs perl -ne print",
    "git ls-files | xargs grep -r x",
    "git ls-files | xargs rg --hidden x",
    "grep -r x $(git ls-files)",
    "cat $(git ls-files)nv",
    "cat .$(git ls-files)",
    "cat $(git ls-files)$(git ls-files)",
    "cat $(git ls-files -z)",
    "cat $(git ls-files; cat names)",
    "cat $(git ls-files | sed 's/.example//')",
    "cat $(git ls-files | head -c4)",
    "IFS=_; cat $(git ls-files)",
    "cat `git ls-files`",
];
