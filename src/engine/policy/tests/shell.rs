//! The shell reader on here-documents, and compared with bash on random scripts.
#![allow(clippy::disallowed_methods)]

use std::{fs, process::Command};

use super::{
    super::shell::{Script, ShellLine, WordKind, parse},
    fuzz::Dice,
    *,
};

/// The commands as the reader lists them; `!` where the line is opaque.
fn listed(text: &str) -> String {
    let ShellLine::Plain(script) = parse(text) else { return "!".to_owned() };
    let name = |it: &super::super::shell::ShellCommand| {
        it.words.iter().map(|it| it.literal().unwrap_or("$")).collect::<Vec<_>>().join(" ")
    };
    script.commands.iter().map(name).collect::<Vec<_>>().join("; ")
}

#[test]
fn here_documents() {
    for (text, want) in [
        ("cat <<EOF⏎hi $x⏎EOF", "cat"),
        ("cat - <<EOF⏎hi⏎EOF", "cat -"),
        ("cat -<<EOF⏎hi⏎EOF", "cat -"),
        ("cat > f <<'EOF'⏎rm x⏎$(rm y)⏎EOF⏎ls", "cat; ls"),
        ("cat <<'EOF' > f⏎rm x⏎EOF", "cat"),
        ("cat >f <<\"EOF\"⏎\\n\\⏎x⏎EOF", "cat"),
        ("cat <<'EOF' | sort⏎b⏎EOF", "cat; sort"),
        ("cat <<EOF && ls⏎b⏎EOF", "cat; ls"),
        ("cat <<A <<B⏎1⏎A⏎2⏎B⏎ls", "cat; ls"),
        ("cat <<A; tac <<B⏎1⏎A⏎2⏎B", "cat; tac"),
        ("cat <<A⏎1⏎A⏎cat <<B⏎2⏎B", "cat; cat"),
        ("cat <<-EOF⏎⇥hi⏎⇥EOF⏎ls", "cat; ls"),
        ("python3 - <<'PY'⏎print(\"a << b\")⏎PY", "!"),
        ("python3 <<'PY'⏎x⏎PY⏎ls", "!"),
        ("git commit -m \"$(cat <<'EOF'⏎It's a `test` (really⏎EOF⏎)\"", "git commit -m $; cat"),
        ("git commit -m \"$(cat <<EOF⏎a⏎EOF⏎)\" && git push", "git commit -m $; cat; git push"),
        ("bash <<'EOF'⏎rm x⏎ls⏎EOF", "!"),
        ("bash -s <<'EOF'⏎rm x⏎EOF", "!"),
        ("bash <<EOF⏎rm x⏎EOF", "!"),
        ("cat <<EOF⏎$(rm x) ${y}⏎EOF", "!"),
        ("cat <<EOF⏎\\$(rm x)⏎EOF", "!"),
        ("cat <<EOF⏎`rm x`⏎EOF", "!"),
        ("cat <<EOF⏎${y:-$(rm x)}⏎EOF", "!"),
        ("cat <<EOF⏎$(echo \")\"; rm x)⏎EOF", "!"),
        ("cat <<EOF⏎hi⏎ EOF", "!"),
        ("cat <<EOF⏎hi", "!"),
        ("cat <<EOF \"⏎EOF⏎\" rm x", "!"),
        ("cat <<EOF $(ls⏎EOF⏎)", "!"),
        ("cat <<E\\OF⏎x⏎EOF", "!"),
        ("cat <<E\"O\"F⏎x⏎EOF", "!"),
        ("cat <<$X⏎x⏎$X", "!"),
        ("cat 2<<EOF⏎x⏎EOF", "!"),
        ("echo '<<EOF'⏎rm x⏎EOF", "echo <<EOF; rm x; EOF"),
        ("echo \"<<EOF\"⏎rm x⏎EOF", "echo <<EOF; rm x; EOF"),
        ("# <<EOF⏎rm x⏎EOF", "rm x; EOF"),
        ("echo $((1<<EOF))⏎rm x⏎EOF", "!"),
        ("((x<<EOF))⏎rm x⏎EOF", "!"),
        ("echo ${x#<<EOF}⏎rm x⏎EOF", "!"),
        ("echo $'\\'<<EOF'⏎rm x⏎EOF", "echo $; rm x; EOF"),
        ("cat <<<EOF⏎rm x⏎EOF", "cat; rm x; EOF"),
        ("cat <<EOF; rm x⏎EOF", "cat; rm x"),
        ("cat <<EOF # '⏎EOF⏎rm x", "cat; rm x"),
        ("if cat <<EOF⏎x⏎EOF⏎then rm x; fi", "cat; rm x"),
        ("while read l; do echo $l; done <<'EOF'⏎rm x⏎EOF", "!"),
        ("cat a 2>f", "cat a"),
        ("cat a 2>&1 >f", "cat a"),
    ] {
        let text = text.replace('⏎', "\n").replace('⇥', "\t");
        assert_eq!(listed(&text), want, "{text}");
    }
}

/// What the grammar takes for text, and bash runs, is not read.
#[test]
fn nothing_runs_unseen() {
    for text in [
        "echo \"${x:-`rm y`}\"",
        "echo ${x:=`rm y`}",
        "x=${y:-`rm y`}",
        "echo $(( ${x:-`rm y`} ))",
        "echo ${1:-${2:-`rm y`}}",
        "echo ${x:->(rm y)}",
        "cat ${x:-<(rm y)}",
        "echo \"${x:-'$(rm y)'}\"",
        "echo \"${x:-'}\"; rm y; echo \"'}\"",
        "echo ${x//`rm y`/}",
        "echo $'a\\\\'; rm y #'",
        "x='a[$(rm y)]'; echo \"${!x}\"",
        "x='(rm y)]'; y='a[$'; z=$y$x; echo ${!z}",
    ] {
        assert_eq!(listed(text), "!", "{text}");
    }
    for (text, want) in [
        ("echo \"a `ls` b\" 'c `d` $(e)' # f `g`", "echo $ c `d` $(e); ls"),
        ("echo $(ls) \"${x}\" $'it\\'s' \"$(pwd)\"", "echo $ $ $ $; ls; pwd"),
        ("echo \"a <(b) >(c)\" <(ls) \\`x", "echo a <(b) >(c) $ `x; ls"),
        ("echo \"it's ${x} 'quoted'\"", "echo $"),
    ] {
        let said = listed(text);
        assert!(said == want, "{text}: {said}");
    }
}

#[test]
fn here_documents_are_decided_on() {
    check(
        &rules(&rule("deny", "commandPrefix='rm'")),
        &[],
        "
        default  cat <<'EOF'⏎rm x⏎EOF => allow
        default  cat > f <<'EOF'⏎x⏎EOF => ask
        autoEdit  cat > f <<'EOF'⏎x⏎EOF => allow
        yolo  cat > f <<'EOF'⏎rm x⏎EOF => allow
        yolo  bash <<'EOF'⏎rm x⏎EOF => deny
        yolo  cat <<EOF⏎$(rm x)⏎EOF => deny
        yolo  cat <<'EOF' | sh⏎rm x⏎EOF => deny
        yolo  git commit -m \"$(cat <<'EOF'⏎rm x⏎EOF⏎)\" => allow
        yolo  git commit -m \"$(cat <<'EOF'⏎y⏎EOF⏎rm x)\" => deny
        yolo  python3 - <<'PY'⏎print(1)⏎PY => deny",
    );
}

const PIECES: &[&str] = &[
    "aa",
    "bb",
    "rm",
    " x",
    " ",
    " ",
    " ",
    "; ",
    " && ",
    " || ",
    " | ",
    "\n",
    "\n",
    "\\\n",
    "'",
    "\"",
    "`",
    "$(",
    ")",
    "( ",
    "{ ",
    "; }",
    "$x",
    "${x}",
    "${x:-aa}",
    " <<EOF",
    " <<'EOF'",
    "<<-EOF",
    " <<\"E\"",
    "\nEOF\n",
    "\nE\n",
    "\n\tEOF\n",
    " # ",
    "#",
    " >f",
    " 2>f",
    " >f bb",
    " 2>&1 rm",
    ">f aa ",
    " </dev/null",
    "<(",
    " <<< bb",
    "A=b ",
    "if aa; then ",
    "; fi",
    "case x in x) ",
    " ;; esac",
    "for i in a b; do ",
    "; done",
    "! ",
    "[[ -n x ]]",
    "((1<<2))",
    "$((1+2))",
    "f() { ",
    "eval ",
    " -",
    "\\",
    "$'a",
    "$'a\\\\'",
    "\\'",
    "${x:-`",
    "${x:-'",
    "${x:->(",
    "${x:=$(",
    "${!x}",
    "}",
    "$((",
    "))",
    "$\"",
    "declare -n x=",
    "let ",
    "*",
    "~",
    "{a,b}",
    "=",
    "&& ",
    "é",
    "\t",
    "a=(aa rm)",
    "\"${a[@]}\"",
    "${a[@]:1}",
    "${!a[@]}",
    "${#x}",
    "${x//a/b}",
    "${x^^}",
    "\"$@\"",
    "$*",
    "$'\\x72m'",
    "$[1+2]",
    "coproc ",
    "coproc A { ",
    "trap 'rm y' EXIT",
    "trap -- ",
    "alias aa=rm",
    "shopt -s expand_aliases extglob\n",
    "time ",
    "time -p ",
    "until aa; do ",
    "select i in a; do ",
    "function g { ",
    "g() (",
    "[[ x =~ ",
    " ]]",
    " &>f ",
    " |& ",
    " & ",
    " <>f",
    " >|f",
    "{fd}>f ",
    "export A=",
    "readonly ",
    "command ",
    "builtin ",
    "bash -c ",
    "bash -ec '",
    "bash -x ",
    "env ",
    ";;& ",
    ";& ",
    "else ",
    "do ",
    "@(aa|rm)",
];

/// Runs what bash runs of `script`: nothing is found, and bash itself notes what it looked for.
fn seen_by_bash(folder: &std::path::Path, script: &str) -> Option<Vec<Vec<String>>> {
    let log = tempfile::Builder::new().tempfile_in(folder).ok()?.into_temp_path();
    let quiet = std::process::Stdio::null;
    let status = Command::new("/bin/bash")
        .args(["--noprofile", "--norc", "-c", script])
        .env_clear()
        .env("PATH", "/nonexistent")
        .env("BASH_ENV", folder.join("prelude"))
        .env("LOG", &*log)
        .current_dir(folder.join("work"))
        .stdin(quiet())
        .stdout(quiet())
        .stderr(quiet())
        .status();
    status.ok()?;
    let text = fs::read_to_string(&log).unwrap_or_default();
    let lines = text.split('\x01').map(|it| it.split('\x02').map(str::to_owned).collect::<Vec<_>>());
    Some(
        lines
            .map(|mut it| {
                it.pop();
                it
            })
            .filter(|it| !it.is_empty())
            .collect(),
    )
}

/// Tells whether one of the listed commands is the one that ran.
fn lists(script: &Script, ran: &[String]) -> bool {
    script.commands.iter().any(|it| {
        let fixed = it.words.iter().take_while(|it| it.kind == WordKind::Literal).count();
        let same = it.words.iter().take(fixed).zip(ran).all(|(word, ran)| word.text == *ran);
        same && fixed > 0 && if fixed == it.words.len() { ran.len() == fixed } else { ran.len() >= fixed }
    })
}

/// Whatever bash runs is in our list, or we say that we do not know.
#[test]
fn bash_runs_nothing_that_is_not_listed() {
    let temp = tempfile::tempdir().unwrap();
    // One write for each, or pipes would mix them; what runs in the background is waited for.
    let prelude = "command_not_found_handle() { printf -v R '%s\\002' \"$@\"; printf '%s\\001' \"$R\" >> \"$LOG\"; }\n\
                   trap wait EXIT\n";
    fs::write(temp.path().join("prelude"), prelude).unwrap();
    fs::create_dir(temp.path().join("work")).unwrap();
    if seen_by_bash(temp.path(), "aa x") != Some(vec![vec!["aa".to_owned(), "x".to_owned()]]) {
        eprintln!("skipped: there is no bash here that says what it runs");
        return;
    }
    let seeds = std::env::var("CASTOR_BASH_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(300);
    let (mut dice, mut n_read, mut wrong) = (Dice::new(0x5eed), 0, String::new());
    for _ in 0..seeds {
        // What is unparsed says nothing: roll until something is read.
        let (text, script) = loop {
            let text: String = (0..2 + dice.roll(14)).map(|_| PIECES[dice.roll(PIECES.len())]).collect();
            if let ShellLine::Plain(script) = parse(&text) {
                break (text, script);
            }
        };
        n_read += usize::from(text.contains("<<"));
        let ran = seen_by_bash(temp.path(), &text).unwrap();
        for ran in ran.iter().filter(|it| !lists(&script, it)) {
            wrong += &format!("{text:?} ran {ran:?}, listed: {}\n", listed(&text));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(n_read > 0);
}
