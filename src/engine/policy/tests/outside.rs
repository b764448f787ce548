//! Where output goes that leaves the workspace: what the question names, and which files a yes opens.

use super::*;
use crate::{
    base::{
        sandbox::Granted,
        tool::{Beyond, Output},
    },
    engine::policy::words,
};

/// As the world finds it, with the home `/h`; `/w/out` leads to `/opt/out`.
fn place(name: &str) -> Option<AbsPath> {
    let path = match name.strip_prefix('~') {
        Some(rest) => AbsPath::new("/h")?.join(rest.strip_prefix('/')?),
        None => AbsPath::new("/w")?.join(name),
    };
    let real = path.to_string().replacen("/w/out", "/opt/out", 1);
    AbsPath::new(real).filter(|it| !it.is_within(&AbsPath::new("/w").unwrap()))
}

/// The decision, what a yes opens outside, and behind `:` why.
fn said(mode: Mode, command: &str) -> String {
    let args = json!({ "command": command });
    let outputs = words("run_shell_command", &args).outputs;
    let outputs = outputs.into_iter().filter_map(|name| Some(Output { real: place(&name)?, name })).collect();
    let targets = Targets {
        command: Some(command.to_owned()),
        beyond: Box::new(Beyond { outputs, ..Beyond::default() }),
        ..Targets::default()
    };
    let roots = [AbsPath::new("/w").unwrap()];
    let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
    let said = decide(&rules(""), &Query { mode, roots: &roots, ..query });
    let files = said.gives.iter().map(|it| match it {
        Granted::Output(it) => it.to_string(),
        it => panic!("{it:?}"),
    });
    let opens = std::iter::once(word(said.decision).to_owned()).chain(files).collect::<Vec<_>>().join(" ");
    said.why.map_or_else(|| opens.clone(), |why| format!("{opens}: {why}"))
}

#[test]
fn a_yes_opens_the_files_that_the_question_names() {
    let check = |command: &str, files: &str, names: &str| {
        let want = format!("ask{files}: its output goes outside the workspace: {names}");
        assert_eq!(said(Mode::Yolo, command), want, "{command}");
    };
    check("echo x > ~/zzz", " /h/zzz", "~/zzz");
    check("echo x > ~/zzz; ls", " /h/zzz", "~/zzz");
    check("echo x >> \"$HOME/a b\"", " /h/a b", "\"$HOME/a b\"");
    check("echo x | tee -a ~/a ../b", " /b /h/a", "~/a, ../b");
    check("echo x > /opt/x/y; echo y > /opt/z", " /opt/x/y /opt/z", "/opt/x/y, /opt/z");
    check("cd /opt/x && echo y > z", " /opt/x/z", "/opt/x/z");
    check("cd /opt/x; cd y; echo y > z", " /opt/x/y/z", "/opt/x/y/z");
    check("make > ~/log 2> /tmp/errors", " /h/log /tmp/errors", "~/log, /tmp/errors");
    check("echo x > ../b; cd y; ls", " /b", "../b");
    // What only the shell knows.
    check("echo x > ~/$f", "", "~/$f");
    check("echo x > ~/*", "", "~/*");
    check("echo x > \"$HOME/it's\"", "", "\"$HOME/it's\"");
    check("echo x > $HOME/'a$f'", "", "$HOME/'a$f'");
    check("echo x > ~/a$f", "", "~/a$f");
    check("echo x > $HOME/a$f", "", "$HOME/a$f");
    check("echo x > \"$HOME/a`f`\"", "", "\"$HOME/a`f`\"");
    check("read HOME; echo x > $HOME/a", "", "$HOME/a");
    check("export HOME=/opt; echo x > $HOME/a", "", "$HOME/a");
    check("for HOME in a b; do echo x > $HOME/a; done", "", "$HOME/a");
    check("echo x > ~other/f", "", "~other/f");
    check("for it in a b; do echo x > ~/$it; done", "", "~/$it");
    check("HOME=/opt; echo x > $HOME/f", "", "$HOME/f");
    // It would make a folder of that name in the workspace its own.
    check("echo x > '~/f'", "", "~/f");
    for it in ["echo x > /tmp/a", "echo x > /dev/stderr", "cd y; echo x > ../a"] {
        assert_eq!(said(Mode::Yolo, it), "allow", "{it}");
    }
}

#[test]
fn what_is_guarded_no_such_yes_opens() {
    for it in
        ["~/.bashrc", "~/.ssh/id", "~/.cargo/env", "/opt/.git/config", "/opt/r/HEAD", "~/.cargo/bin/x", "/dev/sda"]
    {
        let got = said(Mode::Yolo, &format!("echo x > {it}"));
        assert!(got.starts_with("ask: "), "{it}: {got}");
    }
    let got = said(Mode::Yolo, "echo x > ~/.bashrc; echo y > ~/b");
    let both = "configuration that castor, an editor, a shell or git obeys: .bashrc; its output goes outside the \
                workspace: ~/.bashrc, ~/b";
    assert_eq!(got, format!("ask /h/b: {both}"));
}

#[test]
fn it_is_named_beside_other_reasons_and_in_other_modes() {
    let outside = "its output goes outside the workspace";
    let got = said(Mode::Yolo, "git push --force > ~/log");
    assert_eq!(got, format!("ask /h/log: destructive: git push --force; {outside}: ~/log"));
    for mode in [Mode::Default, Mode::AutoEdit] {
        assert_eq!(said(mode, "make > ~/log"), format!("ask /h/log: {outside}: ~/log"), "{mode:?}");
        assert_eq!(said(mode, "ls > /tmp/x"), format!("ask /tmp/x: {outside}: /tmp/x"), "{mode:?}");
    }
    assert_eq!(said(Mode::Default, "make"), "ask");
}

/// A yes is for what can be read in the question.
#[test]
fn what_the_question_does_not_say_stays_shut() {
    let many: String = (0..40).map(|it| format!("echo x > ~/{it}-a-long-name; ")).collect();
    let got = said(Mode::Yolo, &many);
    let (opens, why) = got.split_once(": ").unwrap();
    let opened: Vec<&str> = opens.split(' ').skip(1).collect();
    assert!((1..16).contains(&opened.len()), "{opens}");
    assert!(opened.iter().all(|it| why.contains(&it.replacen("/h", "~", 1))), "{got}");
    let long = "x".repeat(250);
    assert!(said(Mode::Yolo, &format!("echo x > ~/{long}")).starts_with("ask: "));
}
