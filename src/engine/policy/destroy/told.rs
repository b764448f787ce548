//! More of what the table cannot say by words and options alone: programs that hand on, take off or switch off.

use super::{checks, rows_in, table::rows_of};
use crate::engine::policy::{
    glued,
    shell::{Word, base_name, is_shell},
};

fn texts(args: &[Word]) -> impl DoubleEndedIterator<Item = &str> {
    args.iter().map(|it| it.text.as_str())
}

fn operands(args: &[Word]) -> impl DoubleEndedIterator<Item = &str> {
    texts(args).filter(|it| !it.starts_with('-'))
}

/// `fzf --bind 'enter:execute(rm {})'`
pub(super) fn bound(args: &[Word]) -> Option<&str> {
    const RUNS: &[&str] = &["become(", "execute", "reload(", "transform"];
    let binds = |it: &&str| RUNS.iter().any(|run| it.contains(run));
    texts(args).filter(binds).find(|it| rows_in(it).is_some())
}

/// Maven's `-Dexec.executable=rm`, flatpak's `--command=rm`: programs that destroy by themselves, and shells.
pub(super) fn as_command(args: &[Word]) -> Option<&str> {
    let named = |it: &&str| {
        let program = ["--command=", "-Dexec.executable="].iter().find_map(|start| it.strip_prefix(start));
        program.map(base_name).is_some_and(|it| is_shell(it) || rows_of(it).any(|row| row.sub.is_empty()))
    };
    texts(args).find(named)
}

/// Where cargo puts copies of what it needs, and removes all else; a folder that is called so is theirs.
pub(super) fn vendored(args: &[Word]) -> Option<&str> {
    operands(args).next().filter(|it| !["vendor", "third_party", "third-party"].contains(&base_name(it)))
}

/// `apt-get install nginx-`
pub(super) fn taken_off(args: &[Word]) -> Option<&str> {
    operands(args).find(|it| it.len() > 1 && it.ends_with('-'))
}

/// Its words may be cut short: `btrfs subv d x`.
pub(super) fn btrfs(args: &[Word]) -> Option<&str> {
    let mut words = operands(args);
    let (group, verb) = (words.next()?, words.next()?);
    let deletes = group.starts_with("su") && verb.starts_with('d') || group.starts_with("res") && verb != "dump-super";
    (deletes || group.starts_with("fi") && verb.starts_with("res")).then_some(verb)
}

/// What turns the machine off over the bus.
pub(super) fn power(args: &[Word]) -> Option<&str> {
    const CALLS: &[&str] = &["Halt", "Hibernate", "KexecReboot", "PowerOff", "Reboot", "Suspend"];
    texts(args).find(|it| CALLS.iter().any(|call| it.rsplit('.').next() == Some(call)))
}

/// Whoever uses a file or a file system; who holds a port is no more than `kill`.
pub(super) fn fuser(args: &[Word]) -> Option<&str> {
    let is_option = |it: &&str| it.starts_with('-') && !it.starts_with("--");
    let kills = texts(args).find(|it| *it == "--kill" || is_option(it) && it.contains('k'))?;
    let ports = ["/tcp", "/udp"];
    let ported = operands(args).any(|it| ports.iter().any(|end| it.ends_with(end)));
    let space = texts(args).any(|it| matches!(it, "tcp" | "udp"));
    (!ported && !space).then_some(kills)
}

pub(super) fn second(args: &[Word]) -> Option<&str> {
    operands(args).nth(1)
}

/// What a program may do, as one of its file's attributes.
pub(super) fn capability(args: &[Word]) -> Option<&str> {
    texts(args).find(|it| it.contains("security.") || it.starts_with("--restore"))
}

/// The verbs of Hadoop's file systems.
pub(super) const HDFS: &[&str] = &["-R", "-deleteSnapshot", "-expunge", "-rm", "-rmr", "-skipTrash", "-truncate"];

/// What empties a server of keys, in what it is sent.
pub(super) fn flushes(args: &[Word]) -> Option<&str> {
    const WORDS: &[&str] = &["flush_all", "flushall", "flushdb"];
    texts(args).find(|it| {
        let mut words = it.split(|it: char| !(it.is_alphanumeric() || it == '_'));
        words.any(|it| {
            WORDS.iter().any(|word| it.eq_ignore_ascii_case(word) || it.eq_ignore_ascii_case(&format!("n{word}")))
        })
    })
}

/// Requests of more than one, as data: `{"DeleteRequest": …}`, `"Action":"DELETE"`.
pub(super) fn deletes_items(args: &[Word]) -> Option<&str> {
    let lower = |it: &str| it.contains("\"Delete\"") || it.contains("DeleteRequest");
    texts(args).find(|it| it.contains('{') && (lower(it) || it.contains("\"DELETE\"")) || it.contains("Action=DELETE"))
}

/// A command line for another machine.
pub(super) fn sends(args: &[Word]) -> Option<&str> {
    let purges = |it: &str| it.contains("acr purge");
    texts(args).filter(|it| it.contains(' ')).find(|it| purges(it) || rows_in(it).is_some())
}

/// `pkg.Users/DeleteUser`, `pkg.Users.DeleteUser`
pub(super) fn calls_delete(args: &[Word]) -> Option<&str> {
    const VERBS: &[&str] = &["BatchDelete", "Delete", "Destroy", "Drop", "Purge", "Remove"];
    let tells = operands(args).any(|it| matches!(it, "describe" | "list"));
    let method =
        |it: &str| it.rsplit_once(['/', '.']).is_some_and(|it| VERBS.iter().any(|verb| it.1.starts_with(verb)));
    operands(args).find(|it| !tells && method(it))
}

/// What waits for somebody before it is gone waits no longer.
pub(super) fn frees(args: &[Word]) -> Option<&str> {
    texts(args)
        .find(|it| it.contains("finalizers") && (it.contains("null") || it.contains("[]") || it.contains("remove")))
}

fn says<'w>(args: &'w [Word], verbs: &[&str]) -> Option<&'w str> {
    let says = |it: &&str| it.split([' ', ';', '\n', '"', '\'']).any(|word| verbs.contains(&word));
    texts(args).find(says)
}

pub(super) fn lftp(args: &[Word]) -> Option<&str> {
    says(args, &["--Remove-source-dirs", "--Remove-source-files", "--delete", "--delete-first", "mrm", "rm", "rmdir"])
}

pub(super) fn smb(args: &[Word]) -> Option<&str> {
    says(args, &["del", "deltree", "rd", "rm", "rmdir", "wdel"])
}

pub(super) fn keeper(args: &[Word]) -> Option<&str> {
    says(args, &["delete", "deleteall", "rmr"])
}

/// All that an app on a phone has, or the phone.
pub(super) fn wipes(args: &[Word]) -> Option<&str> {
    says(args, &["--wipe_data", "clear", "wipe"]).filter(|_| !texts(args).any(|it| it == "logcat"))
}

/// `ensure=absent`, `ensure => absent`
pub(super) fn absent(args: &[Word]) -> Option<&str> {
    texts(args).find(|it| it.contains("ensure") && it.contains("absent"))
}

/// A recipe that is given as a word: `directory "src" do action :delete end`.
pub(super) fn by_recipe(args: &[Word]) -> Option<&str> {
    texts(args).find(|it| it.contains(":delete") || rows_in(it).is_some())
}

/// `BEGIN{system("rm -rf src")}`
pub(super) fn starts(args: &[Word]) -> Option<&str> {
    texts(args).find(|it| it.contains("system(") && rows_in(it).is_some())
}

/// What TeX is told to start: `\\write18{rm -rf src}`, `\\directlua{os.execute("…")}`.
pub(super) fn typesets(args: &[Word]) -> Option<&str> {
    texts(args).find(|it| (it.contains("write18") || it.contains("directlua")) && rows_in(it).is_some())
}

/// What socat starts: `EXEC:'rm -rf src'`, and shells for whoever is at its other end.
pub(super) fn joins(args: &[Word]) -> Option<&str> {
    let program = |it: &str| is_shell(base_name(it.split([' ', ',']).next().unwrap_or_default()));
    texts(args).filter_map(joined).find(|it| program(it) || rows_in(it).is_some())
}

/// The line in `EXEC:line`, in whatever case.
fn joined(address: &str) -> Option<&str> {
    const STARTS: &[&str] = &["exec:", "shell:", "system:"];
    let start = |it: &&&str| address.get(..it.len()).is_some_and(|start| start.eq_ignore_ascii_case(it));
    address.get(STARTS.iter().find(start)?.len()..)
}

/// A shell for whoever is at the other end: `nc -e /bin/sh`.
pub(super) fn serves(args: &[Word]) -> Option<&str> {
    const OPTIONS: &[&str] = &["-c", "-e", "--exec", "--sh-exec"];
    let pairs = texts(args).zip(texts(args).skip(1));
    let mut lines = pairs.filter(|it| OPTIONS.contains(&it.0)).map(|it| it.1);
    lines.find(|it| it.split(' ').next().map(base_name).is_some_and(is_shell) || rows_in(it).is_some())
}

/// What a setting of hg or jj is set to runs: `--config alias.x='!rm -rf src'`.
pub(super) fn sets(args: &[Word]) -> Option<&str> {
    let told = texts(args).zip(texts(args).skip(1)).filter(|it| it.0 == "--config").map(|it| it.1);
    let stuck = texts(args).filter_map(|it| it.strip_prefix("--config="));
    told.chain(stuck).find(|it| it.split_once('=').is_some_and(|it| rows_in(it.1).is_some()))
}

/// `yt-dlp --exec before_dl:'rm -rf src'`
pub(super) fn executes(args: &[Word]) -> Option<&str> {
    let told = texts(args).zip(texts(args).skip(1)).filter(|it| it.0.starts_with("--exec")).map(|it| it.1);
    let stuck = texts(args).filter(|it| it.starts_with("--exec") && it.contains('='));
    told.chain(stuck).find(|it| rows_in(it).is_some())
}

/// What vim calls to delete; text that it only looks for is none.
pub(super) fn edits(args: &[Word]) -> Option<&str> {
    let calls = |it: &&str| it.contains("delete(") && !it.contains("s/") && !it.contains("g/");
    let joins = |it: &&str| glued::joined(it).is_some_and(|it| rows_in(&it).is_some());
    texts(args).find(|it| calls(it) || joins(it))
}

/// What tmux types: `send-keys -t x r m Space -rf`.
pub(super) fn types(args: &[Word]) -> Option<&str> {
    let mut words = texts(args).skip_while(|it| !it.starts_with("send")).skip(1).peekable();
    while let Some(it) = words.next_if(|it| it.starts_with('-')) {
        if matches!(it, "-N" | "-c" | "-t") {
            words.next();
        }
    }
    let key = |it: &str| match it {
        "Space" => " ".to_owned(),
        "C-j" | "C-m" | "Enter" | "KPEnter" => "\n".to_owned(),
        _ => it.to_owned(),
    };
    rows_in(&words.map(key).collect::<String>()).map(|it| it.program)
}

/// `ed '!rm -rf src'` reads what that prints.
pub(super) fn reads(args: &[Word]) -> Option<&str> {
    texts(args).find(|it| it.starts_with('!') && rows_in(it).is_some())
}

/// Code for a scripting language within another program: `mvn groovy:execute -Dsource=…`, `dotnet script eval …`.
pub(super) fn scripted(args: &[Word]) -> Option<&str> {
    const CALLS: &[&str] = &[".Delete(", ".Start(", ".delete()", "deleteDir()"];
    let code = |it: &&str| {
        it.starts_with("-Dscript=") || it.starts_with("-Dsource=") || !it.starts_with('-') && it.contains('(')
    };
    texts(args).filter(code).find(|it| CALLS.iter().any(|call| it.contains(call)) || rows_in(it).is_some())
}

/// A disk of Windows: `format d:`.
pub(super) fn drive(args: &[Word]) -> Option<&str> {
    texts(args).find(|it| matches!(it.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic()))
}

/// Anything but a look at what is there.
pub(super) fn parted(args: &[Word]) -> Option<&str> {
    const LOOKS: &[&str] = &["--list", "-l", "print"];
    const CHANGES: &[&str] = &[
        "disk_set",
        "disk_toggle",
        "mklabel",
        "mkpart",
        "mktable",
        "name",
        "rescue",
        "resizepart",
        "rm",
        "set",
        "toggle",
        "type",
    ];
    let looks = texts(args).any(|it| LOOKS.contains(&it));
    let changes = texts(args).find(|it| CHANGES.contains(it));
    changes.or((!looks).then_some(""))
}

/// ArangoDB's calls, in a word of JavaScript.
pub(super) fn arango(args: &[Word]) -> Option<&str> {
    const CALLS: &[&str] = &["._drop", ".drop(", ".remove(", ".removeBy", "._truncate", ".truncate("];
    texts(args).find(|it| CALLS.iter().any(|call| it.contains(call)))
}

/// What a change of a schema takes away, where it is not only tried.
pub(super) fn alters(args: &[Word]) -> Option<&str> {
    let alters = args.iter().zip(args.iter().skip(1)).find(|it| it.0.text == "--alter").map(|it| it.1);
    let executes = texts(args).any(|it| it == "--execute");
    alters.filter(|_| executes).and_then(|it| checks::sql(std::slice::from_ref(it)))
}

pub(super) fn kadmin(args: &[Word]) -> Option<&str> {
    says(args, &["delete_policy", "delete_principal", "delpol", "delprinc", "purgekeys"])
}

/// What an import finds there already: `TABLE_EXISTS_ACTION=REPLACE`.
pub(super) fn replaces_tables(args: &[Word]) -> Option<&str> {
    let replaces = |it: &str| it.eq_ignore_ascii_case("replace") || it.eq_ignore_ascii_case("truncate");
    texts(args).find(|it| {
        it.split_once('=')
            .is_some_and(|(name, value)| name.eq_ignore_ascii_case("table_exists_action") && replaces(value))
    })
}

/// `-m synchronize -a 'delete=yes'`, `-m git -a 'force=yes'`: also where their words are only known one by one.
pub(super) fn ansible(args: &[Word]) -> Option<&str> {
    const YES: &[&str] = &["True", "true", "yes"];
    let calls = |name: &str| texts(args).any(|it| it.rsplit('.').next() == Some(name));
    let says = |name: &str| texts(args).any(|it| it == name);
    let sets = |option: &str| {
        let set = |it: &str| it.split_once('=').is_some_and(|it| it.0 == option && YES.contains(&it.1));
        texts(args).any(|it| it.split_whitespace().any(set)) || says(option) && YES.iter().any(|it| says(it))
    };
    if calls("synchronize") && sets("delete") {
        return Some("delete");
    }
    (calls("git") && sets("force")).then_some("force")
}

/// What a cluster waits for before it removes a thing, written without.
pub(super) fn finalizes(args: &[Word]) -> Option<&str> {
    texts(args).find(|it| it.ends_with("/finalize"))
}

/// All modules, and nobody is asked.
pub(super) fn applies_all(args: &[Word]) -> Option<&str> {
    let applies = texts(args).any(|it| it == "apply");
    texts(args).find(|it| applies && it.ends_with("-non-interactive"))
}

/// Without a sub-command it releases.
pub(super) fn goreleases(args: &[Word]) -> Option<&str> {
    const HARMLESS: &[&str] = &["--help", "--snapshot", "--version", "-h", "-v"];
    let first = args.first().is_none_or(|it| it.text.starts_with('-'));
    (first && !texts(args).any(|it| HARMLESS.contains(&it))).then_some("")
}

/// An image that is copied to where others get it.
pub(super) fn to_registry(args: &[Word]) -> Option<&str> {
    operands(args).next_back().filter(|it| it.starts_with("docker://"))
}

/// All that migrations did, where nothing says how many of them.
pub(super) fn all_down(args: &[Word]) -> Option<&str> {
    operands(args).next_back().filter(|it| *it == "down")
}

/// Nothing of what ran stays: `--num-nodes=0`, `--desired-capacity 0`, `--scaling-config minSize=0,desiredSize=0`.
pub(super) fn to_zero(args: &[Word]) -> Option<&str> {
    const SIZES: &[&str] =
        &["--desired-capacity", "--new-capacity", "--node-count", "--nodes", "--num-nodes", "--size"];
    let pairs = args.iter().zip(args.iter().skip(1));
    let apart = pairs.filter(|it| SIZES.contains(&it.0.text.as_str()) && it.1.text == "0").map(|it| it.0.text.as_str());
    let is_zero = |it: &str| {
        it.split_once('=').is_some_and(|(name, value)| SIZES.contains(&name) && value == "0")
            || it.split(',').any(|it| it == "desiredSize=0")
    };
    apart.chain(texts(args).filter(|it| is_zero(it))).next()
}

/// Whatever another command lists: `$(docker ps -aq)`.
pub(super) fn listed(args: &[Word]) -> Option<&str> {
    texts(args).find(|it| ["$(", "`"].iter().any(|sign| it.contains(sign)))
}

/// `web=0`
pub(super) fn processes_to_zero(args: &[Word]) -> Option<&str> {
    operands(args).find(|it| it.ends_with("=0"))
}
