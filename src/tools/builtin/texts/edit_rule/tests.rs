//! Cases of the edit rule: a text, what is replaced by what, and the text or the refusal that follows.

mod property;

use super::{EditRefusal, Lines, Match, Replacement, apply, find};

fn edit(before: &str, old: &str, new: &str, all: bool) -> Result<(String, Match), EditRefusal> {
    let text = before.replace("\r\n", "\n");
    let found = find(&Lines::new(&text), Replacement { old, new, all })?;
    Ok((apply(before, &found.edits), found.by))
}

#[track_caller]
fn check(by: Match, before: &str, old: &str, new: &str, after: &str) {
    assert_eq!(edit(before, old, new, false), Ok((after.to_owned(), by)));
}

#[track_caller]
fn check_refused(before: &str, old: &str, new: &str, expected: EditRefusal) {
    assert_eq!(edit(before, old, new, false), Err(expected));
}

fn unknown(first: usize, count: usize, new: &str) -> EditRefusal {
    EditRefusal::UnknownDepth { first, count, new: new.to_owned() }
}

fn contradiction(first: usize, line: usize, count: usize) -> EditRefusal {
    EditRefusal::Contradiction { first, line, count }
}

fn stale(first: usize, line: usize, count: usize, old: &str) -> EditRefusal {
    EditRefusal::Stale { first, line, count, old: old.to_owned() }
}

#[test]
fn exact_text_is_replaced_as_written() {
    let check = |before: &str, old: &str, new: &str, after: &str| check(Match::Exact, before, old, new, after);
    check("a b c\n", "b", "x", "a x c\n");
    check("a\nb\nc\n", "b\n", "", "a\nc\n");
    check("\tif a:\n", "if a:", "    if b:", "\t    if b:\n");
    check("ñandú\n日本\n", "日", "月", "ñandú\n月本\n");
    assert_eq!(edit("aaa\n", "aa", "b", true).unwrap().0, "ba\n");
    check_refused("a\nb a\n", "a", "x", EditRefusal::Ambiguous { places: vec![1, 2] });
}

#[test]
fn line_ends_are_those_of_the_place() {
    let check = |before: &str, old: &str, new: &str, after: &str| check(Match::Exact, before, old, new, after);
    check("a\r\nb\r\nc\r\n", "a\nb", "a\nx\nb", "a\r\nx\r\nb\r\nc\r\n");
    // Lines that stay keep their own; a new one ends as the line before it.
    check("a\r\nb\nc\r\nd\r\n", "a\nb\nc\n", "a\nx\nb\ny\nc\n", "a\r\nx\r\nb\ny\nc\r\nd\r\n");
    check("a\nb\nc\r\n", "b", "x\ny", "a\nx\ny\nc\r\n");
    check("a\r\nb\nc\n", "b\nc", "b\nx", "a\r\nb\nx\n");
    check("a\rb\n", "b", "c", "a\rc\n");
    // The last line's end stays, unless it is all that changes.
    check("a\nb\n", "b\n", "c", "a\nc\n");
    check("a\nb", "b", "c\n", "a\nc");
    check("a\nb", "b", "b\n", "a\nb\n");
    check("a\r\nb\r\n", "b\n", "b", "a\r\nb");
}

#[test]
fn blanks_at_line_ends_do_not_count() {
    let check = |before: &str, old: &str, new: &str, after: &str| check(Match::TrailingBlanks, before, old, new, after);
    check("a  \nb\n", "a\nb\n", "a\nc\n", "a\nc\n");
    check("a\n\nb\n", "a \n  \nb \t", "a\n   \nc", "a\n   \nc\n");
    // New text goes in as written, whatever its indentation.
    let class = "class A:\n    def f(self):\n        return 1\n\n\nrun()\n";
    let (old, new) =
        ("    def f(self): \n        return 1\n", "    def f(self):\n        return 2\n\n\nif x:\n    y()\n");
    check(class, old, new, "class A:\n    def f(self):\n        return 2\n\n\nif x:\n    y()\n\n\nrun()\n");
    check("x\r\n  a\r\n", "  a \n", "  b\n  c\n", "x\r\n  b\r\n  c\r\n");
    // At the end of a file that has no last line end.
    check("x\na", "a\n", "b\nc\n", "x\nb\nc");
    check("x\na  \n", "a\n", "", "x\n");
    check("x\n    a  \ny\n", "    a\n", "    b", "x\n    b\ny\n");
    check_refused("a \n-\na\t\n", "a  \n", "b\n", EditRefusal::Ambiguous { places: vec![1, 3] });
    assert_eq!(edit("a \n-\na\t\n", "a  \n", "b\n", true).unwrap().0, "b\n-\nb\n");
}

#[test]
fn indentation_is_retyped() {
    let check = |before: &str, old: &str, new: &str, after: &str| check(Match::Indentation, before, old, new, after);
    // A file in tabs, an edit in blanks, at every depth; and the reverse.
    check("all:\n\tgcc a.c\n", "all:\n    gcc a.c", "all:\n    clang a.c", "all:\n\tclang a.c\n");
    let tabs = "class A:\n\tdef f(self):\n\t\tif x:\n\t\t\tgo()\n";
    let blanks = "class A:\n    def f(self):\n        if x:\n            go()\n";
    let new = "    def f(self):\n        if y:\n            go()\n            if z:\n                stop()\n";
    let after = "\tdef f(self):\n\t\tif y:\n\t\t\tgo()\n\t\t\tif z:\n\t\t\t\tstop()\n";
    check(tabs, &blanks[9..], new, &format!("class A:\n{after}"));
    check(blanks, &tabs[9..], after, &format!("class A:\n{new}"));
    check(
        tabs,
        "  def f(self):\n    if x:\n",
        "  def f(self):\n    if y:\n      z\n    if x:\n",
        "class A:\n\tdef f(self):\n\t\tif y:\n\t\t\tz\n\t\tif x:\n\t\t\tgo()\n",
    );
    // A tab as eight columns, with four blanks for half of it.
    check("a\n    b\n\tc\n\t    d\n", "a\n    b\n        c\n            d\n", "a\n            e\n", "a\n\t    e\n");
    // The common indentation is missing, or too much.
    check(
        "{\n    if a {\n        b\n    }\n}\n",
        "if a {\n    b\n}\n",
        "if a {\n    if c {\n        b\n    }\n}\n",
        "{\n    if a {\n        if c {\n            b\n        }\n    }\n}\n",
    );
    check("if a:\n    b\n", "    if a:\n        b\n", "    if a:\n        c\n    d\n", "if a:\n    c\nd\n");
    // Another unit.
    check(
        "{\n  a {\n    b\n  }\n}\n",
        "    a {\n        b\n    }\n",
        "    a {\n        c {\n            d\n        }\n    }\n",
        "{\n  a {\n    c {\n      d\n    }\n  }\n}\n",
    );
    // Only `old_string` is typed otherwise: the new lines stand where the file has them.
    check("{\n    a\n    b\n}\n", "a\nb\n", "    a\n    c\n    b\n", "{\n    a\n    c\n    b\n}\n");
    // Blank lines are as written, and those that stay as they are.
    check("\ta\n\t\n\tb\n", "    a\n\n    b\n", "    a\n\n    c\n\n    b\n", "\ta\n\t\n\tc\n\n\tb\n");
    check("x\n  a\n  b\ny\n", "a\nb\n", "", "x\ny\n");
    check("\n  a\n  b\ny\n", "\na\nb\n", "", "y\n");
    check("{\r\n\ta\r\n\tb\r\n}\r\n", "    a\n    b\n", "    a\n    c\n    b\n", "{\r\n\ta\r\n\tc\r\n\tb\r\n}\r\n");
    check(
        "\tfoo(\n\t    a,\n\t)",
        "    foo(\n        a,\n    )\n",
        "    foo(\n        b,\n    )\n",
        "\tfoo(\n\t    b,\n\t)",
    );
    let (before, after) = ("  a\n  b\n-\n\ta\n\tb\n", "  c\n-\n\tc\n");
    assert_eq!(edit(before, "a\nb", "c", true).unwrap().0, after);
    check_refused(before, "a\nb", "c", EditRefusal::Ambiguous { places: vec![1, 4] });
}

#[test]
fn indentation_that_contradicts_itself_is_refused() {
    // Half of it is shifted.
    check_refused("{\n    a\n    b\n    c\n    d\n}\n", "a\nb\n    c\n    d\n", "x\n", contradiction(2, 4, 4));
    check_refused(
        "a:\n  b:\n    c\n  d:\n    e\n",
        "a:\n  b:\n    c\n    d:\n      e\n",
        "a:\n",
        contradiction(1, 4, 5),
    );
    // The block is one level deeper than its end says.
    let python = "def g():\n    if a:\n        for x in y:\n            call(\n                x\n            )\n    else:\n        call(z)\n";
    let old = "        call(\n            x\n        )\n    else:\n        call(z)\n";
    check_refused(python, old, &old.replace('z', "q"), contradiction(4, 7, 5));
    check_refused("    a\n\n b\n", "a\n\nb\n", "c\n", contradiction(1, 3, 3));
    // One blank more or less is no level.
    check_refused("\tif a:\n\t\tb\n", "    if a:\n       b\n", "x\n", contradiction(1, 2, 2));
}

#[test]
fn a_depth_that_nothing_tells_is_refused() {
    // Either `old_string` is shifted by a level, or its levels have two blanks.
    let file = "class A:\n    def f():\n        b\n        c\n";
    check_refused(file, "    b\n    c\n", "    b\nd\n", unknown(3, 2, "d"));
    check(
        Match::Indentation,
        file,
        "    b\n    c\n",
        "    b\n        d\n",
        "class A:\n    def f():\n        b\n            d\n",
    );
    // A line left of the first column.
    check_refused("if a:\n    b\n", "    if a:\n        b\n", "c\n", unknown(1, 2, "c"));
}

#[test]
fn spacing_within_lines_is_the_files() {
    let check = |before: &str, old: &str, new: &str, after: &str| check(Match::Spacing, before, old, new, after);
    check("let v = f( a , b );\n", "let v=f(a,b );", "let v = g();", "let v = g();\n");
    check("x = \"a  b\"; y = 1\n", "x = \"a b\"; y = 1", "x = \"a b\"; y = 2", "x = \"a  b\"; y = 2\n");
    check(
        "    if (a){\n        b( c );\n    }\n",
        "if (a) {\n    b(c);\n}",
        "if (a) {\n    b(c);\n    d();\n}",
        "    if (a){\n        b( c );\n        d();\n    }\n",
    );
    // Quotes and dashes that a keyboard does not have.
    check("say “hi” – now\nend\n", "say \"hi\" - now\nend", "say \"hi\" - now\nstop", "say “hi” – now\nstop\n");
    check("say “hi”\n", "say \"hi\"", "say \"ho\"", "say “ho”\n");
    check("a(x,\u{a0}y)\nb\n", "a(x, y)\nb\n", "a(x, y)\nc\n", "a(x,\u{a0}y)\nc\n");
    // Words that touch are other words.
    check_refused("ab(c)\n", "a b(c )", "x", EditRefusal::Absent);
    check_refused("f(xy)zz\n", "f( xy)z", "x", EditRefusal::Absent);
    check_refused("f( a)\nf(a )\n", "f( a )", "x", EditRefusal::Ambiguous { places: vec![1, 2] });
}

#[test]
fn slips_in_lines_that_go_do_not_count() {
    let main = "fn main() {\n    let message = compute_message(first, second);\n    println!(\"{message}\");\n}\n";
    let old = "let mesage = compute_message(first, second);\nprintln!(\"{message}\")";
    check(
        Match::Slips,
        main,
        old,
        "let m = 1;\nprintln!(\"{m}\");",
        "fn main() {\n    let m = 1;\n    println!(\"{m}\");\n}\n",
    );
    check(Match::Slips, main, &format!("{old}\n"), "", "fn main() {\n}\n");
    // What stays would be the word that the file does not have, or its own word would go.
    let kept = "let mesage = compute_message(first, second);\nprintln!(\"{m}\");";
    check_refused(main, old, kept, stale(2, 2, 2, "let mesage = compute_message(first, second);"));
    let kept = "let message = compute_message(first);\nprintln!(\"{message}\")";
    check_refused(main, old, kept, stale(2, 3, 2, "println!(\"{message}\")"));
    // Another number or another word is no slip.
    let check_absent = |before: &str, old: &str| check_refused(before, old, "gone", EditRefusal::Absent);
    check_absent("    timeout = read_timeout(15)\n", "    timeout = read_timeout(25)\n");
    check_absent("    reminder: str = make(one)\n", "    remainder_of: str = make(one)\n");
    check_absent("let value_one = compute(first);\n", "let value_two = compute(first);");
    check_absent("abcdefghi\n", "abcdefghj");
    // Nobody knows which was meant.
    let twice = "let valueone = compute(first);\n-\nlet valueona = compute(first);\n";
    check_refused(twice, "let valueonx = compute(first);", "x", EditRefusal::Ambiguous { places: vec![1, 3] });
}

#[test]
fn lines_that_only_one_side_has_are_refused() {
    let file = "fn a() {\n    one();\n    two();\n    three();\n    four();\n}\n";
    for old in [
        "    one();\n    three();\n    four();\n",
        "    one();\n    two();\n    extra();\n    three();\n    four();\n",
        "\n\n    one();\n    two();\n",
        "    one();\n    twice();\n    three();\n",
    ] {
        check_refused(file, old, "    none();\n", EditRefusal::Absent);
    }
    check_refused("", "a", "b", EditRefusal::Absent);
    check_refused("x\n\n\n\n", " \n \n", "b", EditRefusal::Absent);
}

/// The most that can be asked for takes no time to speak of.
#[test]
fn large_files_are_searched_at_once() {
    let same = "some line of text here\n".repeat(50_000);
    check_refused(&same, &("some lime of text here\n".repeat(5_000) + "end\n"), "x", EditRefusal::Absent);
    check_refused(&same, &("  some line of text here\n".repeat(25_000) + "end\n"), "x", EditRefusal::Absent);
    let near = "let value = compute(first, second, third);\n".repeat(50_000);
    check_refused(&near, "let walve = compote(furst, sekond, thord, more);", "x", EditRefusal::Absent);
    let long = format!("a\n{}\nb\n", "word ( x ) ; ".repeat(100_000));
    check_refused(&long, &format!("a\n{}\nc\n", "word(x); ".repeat(100_000)), "x", EditRefusal::Absent);
    let (old, new) = (format!(" a\n {}\n", long.lines().nth(1).unwrap()), " z\n");
    assert_eq!(edit(&long, &old, new, false).unwrap().0, "z\nb\n");
}
