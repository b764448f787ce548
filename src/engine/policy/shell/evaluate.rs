//! Arithmetic and subscripts: bash runs the `$( )` that it finds in them when it evaluates, quoted or not.

mod numbers;

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::{Command, Script, Word};

/// Builtins that take a variable's name, subscript included, or arithmetic.
const EVALUATE: &[&str] = &[
    "[",
    "declare",
    "export",
    "let",
    "local",
    "mapfile",
    "printf",
    "read",
    "readarray",
    "readonly",
    "test",
    "typeset",
    "unset",
    "wait",
];

/// Those that set variables to what nobody sees here.
const TAKE_IN: &[&str] = &["getopts", "mapfile", "read", "readarray", "select"];

/// Variables that bash fills with what was typed.
const TYPED: &[&str] = &["_", "BASH_ARGV", "BASH_COMMAND", "BASH_EXECUTION_STRING", "BASH_REMATCH"];

/// Whether the builtin's words have a subscript with a command in it.
pub(super) fn hides_in_subscript(name: &str, args: &[Word]) -> bool {
    // `printf "[$(date)]"` only prints.
    let prints = name == "printf" && !args.first().is_some_and(|it| it.text.starts_with(['-', '$']));
    EVALUATE.contains(&name) && !prints && args.iter().any(|it| runs_in_subscript(&it.text))
}

fn runs_in_subscript(text: &str) -> bool {
    // `\$(` in an expanded word counts too: the text is as written.
    let runs = |it: &str| it.contains("$(") || it.contains('`');
    text.split_once('[').is_some_and(|it| runs(it.1))
}

/// What a script evaluates, and whether its variables may hold more than numbers and names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluated {
    /// The first arithmetic over variables, as written.
    first: Option<String>,
    /// The names in all of it.
    names: BTreeSet<String>,
    /// There is more in it than names: words that something was called with, or what a builtin takes for arithmetic.
    open: bool,
    /// A variable is set to text that may have a command in it.
    planted: bool,
    /// What variables are set to, as written: each may be such text.
    values: Vec<String>,
    /// What commands print in the arithmetic itself, and that, as written.
    printed: Vec<(String, String)>,
    /// Words may come back as `$1`.
    functions: bool,
    /// A word has a `$` or a back-quote in it that is not the shell's.
    quoted: bool,
    /// The text runs a command as it stands.
    direct: bool,
    /// What was listed as a command for it.
    listed: Option<String>,
}

impl Evaluated {
    /// Whether that is no command as written, but arithmetic in which there may be some.
    pub fn lists(&self, command: &Command) -> bool {
        command.words.len() == 1 && self.listed.as_ref() == Some(&command.text)
    }

    pub(super) fn enter(&mut self, node: Node, text: &str) {
        match node.kind() {
            "variable_assignment" => {
                let (name, value) = text.split_once('=').unwrap_or((text, ""));
                self.values.push(value.to_owned());
                if name.contains('[') {
                    self.evaluates(name, name.split_once('[').map_or("", |it| it.1));
                }
            }
            "for_statement" => {
                let items = text.split_once(" in ").map_or("", |it| it.1);
                let items = items.split([';', '\n']).next().unwrap_or_default();
                // A file may be called so.
                self.planted |= items.contains(['*', '?', '[']);
                self.values.push(items.to_owned());
            }
            "function_definition" => self.functions = true,
            "arithmetic_expansion" | "c_style_for_statement" => {
                let (what, printed) = without_printed(node, text);
                self.printed.extend(printed);
                self.evaluates(text, what.trim_start_matches('$'));
            }
            "compound_statement" if text.starts_with("((") => {
                let (what, printed) = without_printed(node, text);
                self.printed.extend(printed);
                self.evaluates(text, &what);
            }
            "subscript" => self.evaluates(text, text.split_once('[').map_or("", |it| it.1)),
            // `${a:x}` counts with `x`.
            "expansion" => {
                let from = text.split_once(':').map(|it| it.1).filter(|it| !it.starts_with(['-', '=', '+', '?']));
                from.into_iter().for_each(|it| self.evaluates(text, it));
            }
            "test_command" => {
                self.test(node, text);
            }
            _ => (),
        }
    }

    fn test(&mut self, node: Node, text: &str) {
        const COUNTS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
        let double = text.starts_with("[[");
        self.direct |= runs_in_subscript(text.trim_start_matches('['));
        // `[` takes what a command prints for what it is.
        let (what, printed) = if double { without_printed(node, text) } else { (text.to_owned(), Vec::new()) };
        let inside = what.trim_start_matches('[');
        let counts = inside.split_whitespace().any(|it| it == "-v" || double && COUNTS.contains(&it));
        self.printed.extend(printed.into_iter().filter(|_| counts));
        if counts || self.direct {
            let operands: Vec<&str> = inside.split_whitespace().filter(|it| !COUNTS.contains(it)).collect();
            self.evaluates(text, &operands.join(" "));
        }
    }

    /// `what` is the arithmetic in `text`.
    fn evaluates(&mut self, text: &str, what: &str) {
        let names = || what.split(|it: char| !(it.is_ascii_alphanumeric() || it == '_'));
        let typed = names().any(|it| TYPED.contains(&it));
        let called = |it: &str| it.starts_with(|it: char| it.is_ascii_digit() || "@*{(`".contains(it));
        self.open |= what.split('$').skip(1).any(called) || what.contains('`');
        self.names
            .extend(names().filter(|it| it.starts_with(|it: char| it.is_alphabetic() || it == '_')).map(str::to_owned));
        // What is quoted in it is handed on, and run.
        let quoted = what.contains('[') && what.contains(['\\', '\'', '`']);
        self.direct |= typed || quoted;
        if what.contains(|it: char| it.is_alphabetic() || matches!(it, '$' | '_')) {
            self.first.get_or_insert_with(|| text.to_owned());
        }
    }

    /// What the commands make of the variables.
    fn hear(&mut self, command: &Command, script: &Script) {
        let Some(name) = command.name() else { return };
        let args = command.args();
        let holds = |it: &Word| match it.literal() {
            Some(text) => text.contains(['$', '`']),
            None => is_planted(&it.text, script),
        };
        self.quoted |= args.iter().any(holds);
        self.planted |= TAKE_IN.contains(&name) || name == "set" && args.iter().any(holds);
        let option = |letter: &str| args.iter().find(|it| it.text.starts_with('-') && it.text.contains(letter));
        let indirect = match name {
            "let" => args.first(),
            "declare" | "typeset" | "local" | "readonly" | "export" => {
                // A name that is put together may be one with a subscript; `-n` makes one of the value.
                let unknown = |it: &&Word| it.text.split('=').next().is_some_and(|it| it.contains(['$', '`']));
                option("i").or(option("n")).or_else(|| args.iter().find(unknown))
            }
            "test" => option("v"),
            "getopts" | "mapfile" | "read" | "readarray" | "unset" | "wait" => {
                args.iter().find(|it| it.text.contains('$'))
            }
            "printf" => {
                let sets = option("v");
                self.planted |= sets.is_some();
                sets.filter(|_| args.get(1).is_some_and(|it| it.text.contains('$')))
            }
            _ => None,
        };
        if indirect.is_some() {
            self.open = true;
            self.first.get_or_insert_with(|| command.text.clone());
        }
    }
}

/// The text with a number in place of what its commands print, and these.
fn without_printed(node: Node, text: &str) -> (String, Vec<(String, String)>) {
    let (mut res, mut printed, mut at, mut waiting) = (String::new(), Vec::new(), 0, vec![node]);
    while let Some(it) = waiting.pop() {
        let place = |byte: usize| byte.saturating_sub(node.start_byte());
        let (start, end) = (place(it.start_byte()), place(it.end_byte()));
        if it.kind() == "command_substitution" && start >= at {
            res += text.get(at..start).unwrap_or_default();
            res.push('0');
            printed.extend(text.get(start..end).map(|it| (it.to_owned(), text.to_owned())));
            at = end;
        } else {
            let mut children: Vec<Node> = it.children(&mut it.walk()).collect();
            children.reverse();
            waiting.extend(children);
        }
    }
    (res + text.get(at..).unwrap_or_default(), printed)
}

/// Lists what the arithmetic of a script may run: nobody knows what.
pub(super) fn list_hidden(script: &mut Script) {
    let mut evaluated = std::mem::take(&mut script.evaluated);
    script.commands.iter().for_each(|it| evaluated.hear(it, script));
    evaluated.planted |= evaluated.values.iter().any(|it| is_planted(it, script));
    let text = evaluated.printed.iter().find(|it| !prints_number(&it.0, script, &[])).map(|it| it.1.clone());
    if let Some(it) = text {
        evaluated.direct = true;
        evaluated.first.get_or_insert(it);
    }
    let sown = evaluated.planted || evaluated.functions && evaluated.quoted;
    let sown = sown && (evaluated.open || !evaluated.names.iter().all(|it| counts(it, script, &[])));
    if let Some(text) = evaluated.first.filter(|_| sown || evaluated.direct) {
        let words = vec![Word::expanded(&text)];
        (script.has_definitions, script.loops.beside) = (true, true);
        script.evaluated.listed = Some(text.clone());
        script.commands.push(Command::new(words, text));
    }
}

/// Variables that get their numbers from others, at most.
const DEPTH: usize = 4;

/// `above`: variables that have numbers if this is one.
fn prints_number(substitution: &str, script: &Script, above: &[&str]) -> bool {
    // What prints a number may be a function that prints something else.
    let relied = script.functions.iter().any(|it| numbers::is_relied_on(it));
    !relied && numbers::prints_number(substitution, &|name| counts(name, script, above))
}

/// Whether a variable only ever has numbers: `n=0; ((n++))`, `n=$(expr $n + 1)`.
fn counts(name: &str, script: &Script, above: &[&str]) -> bool {
    if above.contains(&name) || above.len() >= DEPTH {
        return above.contains(&name);
    }
    let above = &[above, &[name]].concat();
    let takes = |it: &Command| {
        it.name().is_some_and(|it| TAKE_IN.contains(&it) || matches!(it, "printf" | "set" | "eval" | "."))
    };
    let same = |it: &str| it.split('[').next() == Some(name) || it.starts_with('-') && it.ends_with(name);
    let named = |it: &Word| it.literal().is_none_or(same);
    let set_by_name = script.commands.iter().any(|it| takes(it) && it.args().iter().any(named));
    let declared = script.commands.iter().any(super::changed::declares_oddly);
    let is_count = |it: &str| {
        let counted = it.strip_prefix("$((").and_then(|it| it.strip_suffix("))"));
        let own = || numbers::with_default(it).is_some_and(|it| counts(it, script, above));
        it.bytes().all(|it| it.is_ascii_digit())
            || counted.is_some_and(|it| !it.contains(['$', '`', '(', '[']))
            || own()
            || prints_number(it, script, above)
    };
    let mut set = script.values.all.iter().filter(|it| it.name.as_deref() == Some(name)).peekable();
    !set_by_name
        && !declared
        && set.peek().is_some()
        && set.all(|it| is_count(it.word.text.trim_matches('"')) || is_own_count(&it.word.text))
}

/// `$?`, `$#`, `${#a}`: what the shell counts.
fn is_own_count(value: &str) -> bool {
    let value = value.trim_matches('"');
    let length = value.strip_prefix("${#").and_then(|it| it.strip_suffix('}'));
    let name = |it: &str| it.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    matches!(value, "$?" | "$#" | "$$" | "$!")
        || length.is_some_and(|it| name(it.trim_end_matches("[@]").trim_end_matches("[*]")))
}

/// Whether a value, as written, may have more in it than numbers, names and other variables' values.
fn is_planted(value: &str, script: &Script) -> bool {
    let value = value.trim();
    let counted = || prints_number(value, script, &[]) || numbers::with_default(value).is_some();
    !is_own_count(value) && is_odd(value) && !counted()
}

fn is_odd(value: &str) -> bool {
    let mut rest = value;
    while let Some(at) = rest.find(['$', '`']) {
        let from = rest.get(at + 1..).unwrap_or_default();
        let name = |it: &str| it.find(|it: char| !(it.is_ascii_alphanumeric() || it == '_')).unwrap_or(it.len());
        let (plain, behind) = match from.strip_prefix('{') {
            Some(inside) => {
                let behind = inside.get(name(inside)..).unwrap_or_default();
                (name(inside) > 0 && behind.starts_with('}'), behind)
            }
            None => (name(from) > 0, from.get(name(from)..).unwrap_or_default()),
        };
        let typed = TYPED.iter().any(|it| from.trim_start_matches('{').split(['}', ' ', '"']).next() == Some(it));
        let escaped = at > 0 && rest.as_bytes().get(at - 1) == Some(&b'\\');
        if let Some(inside) = from.strip_prefix("((").filter(|_| rest.as_bytes().get(at) == Some(&b'$')) {
            // What is counted is a number.
            rest = inside.split_once("))").map_or("", |it| it.1);
            continue;
        }
        if !plain || typed || escaped || rest.as_bytes().get(at) == Some(&b'`') {
            return true;
        }
        rest = behind;
    }
    false
}
