//! Temporary files of the session: written without a question.

use super::{
    tools::{check_tools, path},
    *,
};

/// Rules of people's and guarded names count there as everywhere.
#[test]
fn temporary_files_are_written_without_a_question() {
    let table = "
        default   write_file  edit  /w/own-tmp/a.md!                => allow
        default!  write_file  edit  /w/own-tmp/a.md!                => deny
        autoEdit  replace     edit  /w/own-tmp/a.md!                => allow
        plan      write_file  edit  /w/own-tmp/a.md!                => deny
        default   write_file  edit  /w/own-tmp/.env!                => ask
        default   write_file  edit  /w/own-tmp/.git/hooks/x!        => ask
        default   write_file  edit  /w/own-tmp/a.md! /w/src/a.md!   => ask edits
        default   write_file  edit  /w/src/a.md!                    => ask edits
        ";
    check_tools(&rules(""), &[], table);
    let asks = rules("[[rule]]\ntoolName='write_file'\ndecision='ask_user'\npriority=900");
    check_tools(&asks, &[], "default write_file edit /w/own-tmp/a.md! => ask edits");
    // It lies below castor's own.
    let real = AbsPath::new("/h/.castor/tmp/s/tmp/a.md").unwrap();
    let own = TargetPath { real, temporary: true, in_roots: true, ..path("/tmp/a.md", Access::Write) };
    let targets = Targets { paths: vec![own], ..Targets::default() };
    let query = Query::new("write_file", ToolKind::Edit, &Value::Null, &targets);
    assert_eq!(decide(&rules(""), &query).decision, Decision::Allow);
}
