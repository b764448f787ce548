//! What the verbs print, and the sessions that they are about.

use std::fs;

use super::{castor, check_shell, holds, run, turn, write};
use crate::client::Sandbox;

#[test]
fn verbs_say_what_they_give_back() {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/a.txt", "one\n");
    check_shell(
        &mut sandbox,
        "
$ castor undo
castor: no session of $WS changed files that can be given back
[exit 1]
$ castor diff
castor: no session of $WS changed files that can be given back
[exit 1]
$ castor undo nob
castor: nob is too short: an id needs 5 characters at least, or say latest; `castor sessions list --all` has all
[exit 42]
$ castor rewind 1 nobody-is-called-so
castor: session nobody-is-called-so was not found; `castor sessions list --all` has all
[exit 42]
",
    );
    let first = turn(&mut sandbox, "", &(write("a.txt", "two\n") + " + " + &write("new/b.txt", "b\n")));
    assert!(first.contains("2 files +2 −1; 2 not looked at: castor diff (castor undo takes it back) · "), "{first}");
    turn(&mut sandbox, "--resume latest ", &write("a.txt", "three\n"));
    check_shell(
        &mut sandbox,
        "
$ castor diff
a.txt: written by an agent, not looked at
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-one
+three
new/b.txt: written by an agent, not looked at
--- /dev/null
+++ b/new/b.txt
@@ -0,0 +1 @@
+b
$ castor undo
Session $ID (go)
Restored
  a.txt
$ castor diff
a.txt: written by an agent, not looked at
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-one
+two
new/b.txt: written by an agent, not looked at
--- /dev/null
+++ b/new/b.txt
@@ -0,0 +1 @@
+b
$ castor undo
Session $ID (go)
Restored
  a.txt
Removed
  new
  new/b.txt
$ castor undo
castor: session $ID (go) is undone already, or changed no file. `castor redo` brings it back; `castor sessions list` shows other sessions
[exit 1]
$ castor diff
Session $ID (go): nothing that it changed still stands.
$ castor redo
Session $ID (go)
Restored
  a.txt
  new
  new/b.txt
$ castor redo
Session $ID (go)
Restored
  a.txt
$ castor redo
Session $ID (go)
castor: nothing was undone that can be done again
[exit 1]
$ castor undo 2
Session $ID (go)
Restored
  a.txt
Removed
  new
  new/b.txt
",
    );
    assert!(holds(&sandbox.workspace().join("a.txt"), "one\n") && !sandbox.workspace().join("new").exists());
}

#[test]
fn a_prompt_is_named_by_its_number_or_its_words() {
    let mut sandbox = Sandbox::new();
    turn(&mut sandbox, "", &write("a.txt", "one\n"));
    turn(&mut sandbox, "--resume latest ", &write("a.txt", "two\n"));
    check_shell(
        &mut sandbox,
        "
$ castor rewind nothing
Session $ID (go)
castor: There is no prompt `nothing`; `castor rewind` lists them.
[exit 42]
$ castor rewind go
Session $ID (go)
castor: 2 prompts say `go`; `castor rewind` lists them.
[exit 42]
$ castor undo two latest
castor: two is no number of turns
[exit 42]
$ castor undo 0
castor: 0: castor undo undoes the last turn; give a number from 1, or a session's id
[exit 42]
$ castor rewind
Session $ID (go)
1. go (just now)
   - new `a.txt` +1 -0
2. go (just now)
   - `a.txt` +1 -1

`castor undo` takes the last changes back, `castor rewind NUMBER` goes back to before a prompt.
$ castor undo --on-conflict sometimes
error: invalid value 'sometimes' for '--on-conflict <WHAT>'
  [possible values: fail, keep, restore]

For more information, try '--help'.
[exit 42]
$ castor rewind 2 --what files
Session $ID (go)
Restored
  a.txt
$ castor rewind 2
Session $ID (go)
The conversation is back at its state before that prompt.
$ castor rewind 1
Session $ID (go)
Removed
  a.txt
The conversation is back at its state before that prompt.
$ castor redo
Session $ID
Restored
  a.txt
",
    );
    assert!(holds(&sandbox.workspace().join("a.txt"), "one\n"));
}

#[test]
fn script_resolves_conflicts_with_user_changes() {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/a.txt", "one\n");
    turn(&mut sandbox, "", &run("echo two > a.txt; echo two > b.txt"));
    sandbox.write("ws/a.txt", "mine\n");
    check_shell(
        &mut sandbox,
        "
$ castor undo
Session $ID (go)
castor: these files are not as the agent left them; nothing was changed (--on-conflict keep leaves them, --on-conflict restore also restores them):
  a.txt: it was changed since
[exit 1]
$ castor undo --on-conflict fail
Session $ID (go)
castor: these files are not as the agent left them; nothing was changed (--on-conflict keep leaves them, --on-conflict restore also restores them):
  a.txt: it was changed since
[exit 1]
$ castor undo --on-conflict keep
Session $ID (go)
Removed
  b.txt
Not restored
  a.txt: it was changed since
The same command with --on-conflict restore also restores these
$ castor undo --on-conflict keep
Session $ID (go)
Not restored
  a.txt: it was changed since
The same command with --on-conflict restore also restores these
$ castor undo --on-conflict restore
Session $ID (go)
Restored
  a.txt
$ castor redo
Session $ID (go)
Restored
  a.txt
$ castor redo
Session $ID (go)
Restored
  b.txt
$ castor undo --on-conflict restore
Session $ID (go)
Restored
  a.txt
Removed
  b.txt
$ castor redo
Session $ID (go)
Restored
  a.txt
  b.txt
",
    );
    assert_eq!(fs::read_to_string(sandbox.workspace().join("a.txt")).unwrap(), "mine\n");
}

/// Who turned checkpoints off does not get back what an older session did.
#[test]
fn undo_without_checkpoints_is_reported() {
    let mut sandbox = Sandbox::new();
    turn(&mut sandbox, "", &write("a.txt", "one\n"));
    let settings = |it: &str| format!(r#"{{"general": {{"checkpointing": {{"enabled": {it}}}}}}}"#);
    for (line, is_refused) in [(run("cat a.txt"), false), (run("echo two > a.txt"), true), (write("b", ""), true)] {
        sandbox.write("home/.castor/settings.json", &settings("false"));
        turn(&mut sandbox, "", &line);
        sandbox.write("home/.castor/settings.json", &settings("true"));
        let said = castor(&mut sandbox, "diff");
        assert_eq!(
            said.starts_with("castor: nothing was held of what session $ID (go) did last: "),
            is_refused,
            "{said}"
        );
    }
    check_shell(
        &mut sandbox,
        "
$ castor undo latest
castor: nothing was held: checkpoints were off (`general.checkpointing.enabled`), or could not be taken
[exit 1]
$ castor undo
castor: nothing was held of what session $ID (go) did last: checkpoints were off (`general.checkpointing.enabled`), or could not be taken. To undo turns of another session, name it; `castor sessions list` lists them
[exit 1]
",
    );
    assert!(holds(&sandbox.workspace().join("a.txt"), "two\n"));
}

/// Nothing pretends that it gave back what was freed.
#[test]
fn undo_of_freed_checkpoints_is_reported() {
    let mut sandbox = Sandbox::new();
    turn(&mut sandbox, "", &write("a.txt", "two\n"));
    check_shell(
        &mut sandbox,
        "
$ castor clean
Checkpoints take 1 KB in $HOME/.castor/checkpoints.
`castor clean --yes` frees those of closed sessions.
$ castor clean --yes
Checkpoints take 1 KB in $HOME/.castor/checkpoints.
Freed 1 KB, of 1 session(s).
$ castor undo
Session $ID (go)
castor: nothing was restored: castor has no checkpoint of what changed
[exit 1]
$ castor redo
Session $ID (go)
castor: nothing was undone that can be done again
[exit 1]
$ castor diff
castor: castor has no checkpoint of what changed
[exit 1]
",
    );
    assert_eq!(fs::read_to_string(sandbox.workspace().join("a.txt")).unwrap(), "two\n");
}
