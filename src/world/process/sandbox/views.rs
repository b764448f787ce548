//! Hidden paths: credentials and secrets that a confined command cannot see. Only mounts can hide them.
//!
//! Each place gets something else mounted on it: an empty folder or file, or a folder with nothing but the mount points of
//! what is seen in it all the same. All of these lie in the session's own folder, in `view`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::symlink,
    path::{Component, Path, PathBuf},
};

use nix::{
    fcntl::{OFlag, openat},
    sys::stat::{Mode, mkdirat},
};
use serde::{Deserialize, Serialize};

use super::{GuardContext, SandboxPlan, nested_config, path_json, placeholder_files::open_folder};
use crate::{
    base::{
        guarded_names::{TOKEN_FILES, TOOL_FOLDERS},
        path::AbsPath,
        sandbox::Confinement,
    },
    world::door::inside,
};

/// Beside the folder for temporary files: castor's own, which commands read and never write.
const VIEW: &str = "view";
/// With the network these are private.
const SHARED: &[&str] = &["/tmp", "/var/tmp"];
/// With sockets of other programs the folder of all sockets is hidden, but for what name servers and programs need.
pub(super) const SOCKETS: &str = "/run";
const BESIDE_SOCKETS: &[&str] = &["/run/current-system", "/run/opengl-driver", "/run/systemd/resolve", "/run/wrappers"];
/// Where programs read which server looks names up: with a door, it does.
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Longer settings are searched for tokens no further.
const MAX_SETTINGS: u64 = 1 << 20;
const TOKENS: &[&str] = &["_auth", "apikey", "authident", "npmregistryserver:", "password", "secret", "token"];

/// One place, and what is seen there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct View {
    #[serde(with = "path_json::one")]
    pub place: PathBuf,
    /// `None`: what is there, in a place that is hidden around it.
    #[serde(with = "path_json::maybe")]
    pub shows: Option<PathBuf>,
    pub written: bool,
}

/// The folder beside a session's temporary files.
pub(super) fn view_folder(tmp: &Path) -> PathBuf {
    tmp.with_file_name(VIEW)
}

/// What is hidden of what there is, and seen all the same. The rest of the plan is known.
pub(super) fn plan_views(it: &Confinement, around: &GuardContext<'_>, plan: &SandboxPlan) -> io::Result<Vec<View>> {
    // One that is gone is no reason to fail.
    let read = it.read_only_paths.iter().map(AbsPath::as_path).filter(|it| is_folder(it)).chain(plan.tmp.parent());
    let given = it.grant.seen.iter().chain(&it.grant.reach.sockets).map(AbsPath::as_path).filter(|it| it.exists());
    let needed: BTreeSet<PathBuf> =
        plan.writable.iter().cloned().chain(read.chain(given).map(Path::to_owned)).collect();
    let masked = masked_secrets(it);
    let empty = view_folder(&plan.tmp);
    let mut covers: BTreeMap<PathBuf, bool> = BTreeMap::new();
    let mut seen = needed.clone();
    let mut links = Vec::new();
    if it.hides_secrets() {
        let shared = SHARED.iter().map(|it| (PathBuf::from(it), true));
        let shared = shared.chain((!it.grant.reach.sockets.is_empty()).then(|| (PathBuf::from(SOCKETS), false)));
        let home = it.home.iter().map(|it| (it.as_path().to_owned(), false));
        let is_whole = |place: &Path| !needed.iter().any(|root| place.starts_with(root));
        covers = shared.chain(home).filter(|(place, _)| is_whole(place) && is_folder(place)).collect();
        for path in visible_paths(it, around) {
            see(&path, &mut seen, &mut links);
        }
        seen.retain(|it| needed.contains(it) || !masked.iter().any(|secret| it.starts_with(secret)));
    }
    let mut views = BTreeMap::new();
    if let (true, Ok(place)) = (super::has_door(it), Path::new(RESOLV_CONF).canonicalize()) {
        views.insert(place.clone(), View { place, shows: Some(resolver_settings(&empty)?), written: false });
    }
    for secret in masked.into_iter().filter(|it| !needed.contains(it)) {
        let is_seen = seen.iter().any(|it| secret.starts_with(it));
        if !is_seen && covers.keys().any(|it| secret.starts_with(it)) {
            continue;
        }
        if needed.iter().any(|it| it.starts_with(&secret)) {
            covers.insert(secret, false);
            continue;
        }
        let shows = empty.join(if secret.is_dir() { "none" } else { "nothing" });
        views.insert(secret.clone(), View { place: secret, shows: Some(shows), written: false });
    }
    // In a place that shows nothing there is nowhere to mount.
    covers.retain(|place, _| !place.ancestors().any(|it| views.contains_key(it)));
    if views.is_empty() && covers.is_empty() {
        return Ok(Vec::new());
    }
    let all = Skeleton::open(&empty)?;
    for place in seen.iter().filter(|it| is_uncovered(it, &covers, &seen)) {
        all.make(place, place.is_dir())?;
        views.insert(place.clone(), View { place: place.clone(), shows: None, written: false });
    }
    for link in links.iter().filter(|link| covers.keys().any(|it| link.starts_with(it))) {
        all.link(link)?;
    }
    for (place, written) in covers {
        all.make(&place, true)?;
        let shows = Some(all.at(&place));
        views.insert(place.clone(), View { place, shows, written });
    }
    Ok(views.into_values().collect())
}

/// The file that says where names are looked up within. It may be in use: it is whole at any time.
fn resolver_settings(folder: &Path) -> io::Result<PathBuf> {
    super::make_private(folder)?;
    let path = folder.join("resolver");
    if path.symlink_metadata().is_err() {
        let new = path.with_extension(format!("{:?}", std::thread::current().id()));
        fs::write(&new, inside::RESOLV_CONF)?;
        fs::rename(new, &path)?;
    }
    Ok(path)
}

/// Whether it lies in what is covered, and in nothing between that is seen as a whole.
fn is_uncovered(place: &Path, covers: &BTreeMap<PathBuf, bool>, seen: &BTreeSet<PathBuf>) -> bool {
    let cover = place.ancestors().skip(1).find(|it| covers.contains_key(*it));
    let between = |cover: &Path| place.ancestors().skip(1).take_while(|it| *it != cover).any(|it| seen.contains(it));
    cover.is_some_and(|cover| !between(cover))
}

/// The secrets that are there, as they really are.
fn masked_secrets(it: &Confinement) -> BTreeSet<PathBuf> {
    let hides = |path: &Path| AbsPath::new(path).is_some_and(|path| it.masks_secret(&path));
    let named = it.masked.iter().map(|it| it.as_path().to_owned());
    let roots = it.roots.iter().filter(|_| it.hides_secrets());
    let of_workspace = roots.flat_map(|it| nested_config::secrets(it.as_path()));
    // Of what is worked in, the workspace's own rule says what is seen.
    let is_worked_in = |path: &Path, home: &AbsPath| {
        it.roots.iter().any(|root| path.starts_with(root.as_path()) && !home.is_within(root))
    };
    let of_home = it.home.iter().flat_map(|home| {
        nested_config::secrets_of_home(home.as_path()).into_iter().filter(|path| !is_worked_in(path, home))
    });
    let real = named.chain(of_workspace).chain(of_home).filter(|path| path.symlink_metadata().is_ok() && hides(path));
    let real = real.filter_map(|it| it.canonicalize().ok());
    let all: BTreeSet<PathBuf> = real.filter(|path| hides(path) && !is_without_token(path)).collect();
    let is_outer = |path: &&PathBuf| !path.ancestors().skip(1).any(|it| all.contains(it));
    all.iter().filter(is_outer).cloned().collect()
}

/// Settings of a package manager, and certificates, that open nothing.
fn is_without_token(path: &Path) -> bool {
    let is_settings = path.file_name().is_some_and(|name| TOKEN_FILES.iter().any(|it| name == *it));
    let is_armour = path.extension().is_some_and(|it| it == "pem");
    let is_short = || fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() <= MAX_SETTINGS);
    let text = ((is_settings || is_armour) && is_short()).then(|| fs::read(path).ok()).flatten();
    text.is_some_and(|it| {
        let text = String::from_utf8_lossy(&it).to_lowercase();
        match is_armour {
            true => text.contains("-----begin ") && !text.contains("private"),
            false => !TOKENS.iter().any(|it| text.contains(it)),
        }
    })
}

/// What is seen in the home folder with the network: tools, what the user allowed, and where the program lies.
fn visible_paths(it: &Confinement, around: &GuardContext<'_>) -> Vec<PathBuf> {
    let Some(home) = it.home.as_ref().map(AbsPath::as_path) else { return Vec::new() };
    let tools = TOOL_FOLDERS.iter().map(|it| home.join(it));
    let on_path = around.path.split(':').map(Path::new).filter(|it| it.starts_with(home));
    // What belongs to a program lies beside its folder: `~/.tool/bin`, `~/.tool/lib`.
    let on_path = on_path.map(|it| it.parent().filter(|above| *above != home).unwrap_or(it).to_owned());
    let words = std::iter::once(around.program)
        .chain(around.args.iter().copied())
        .map(Path::new)
        .filter(|it| it.is_absolute() && it.exists());
    let programs = words.filter_map(Path::parent).filter(|it| it.starts_with(home) && *it != home).map(Path::to_owned);
    // A private `/tmp` would hide a program that lies there.
    let is_hidden = |it: &&Path| SHARED.iter().any(|at| it.starts_with(at) && *it != Path::new(at));
    let own = Path::new(around.program).parent().filter(is_hidden).map(Path::to_owned);
    let allowed = it.grant.credentials.iter().map(|it| it.as_path().to_owned()).chain(own);
    let cwd = Some(around.cwd.as_path()).filter(|it| *it != home).map(Path::to_owned);
    let allowed = allowed.chain(BESIDE_SOCKETS.iter().map(PathBuf::from));
    tools.chain(on_path).chain(programs).chain(allowed).chain(cwd).filter(|it| it.symlink_metadata().is_ok()).collect()
}

/// By its name, and as it really is.
fn see(path: &Path, seen: &mut BTreeSet<PathBuf>, links: &mut Vec<PathBuf>) {
    let Ok(real) = path.canonicalize() else { return };
    if path.is_symlink() {
        links.push(path.to_owned());
    }
    seen.insert(real);
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|it| it.is_dir())
}

/// Empty folders and files under the names of what is mounted on them. Commands write in the private `/tmp` among them: no
/// link is followed.
struct Skeleton {
    top: PathBuf,
}

impl Skeleton {
    fn open(folder: &Path) -> io::Result<Self> {
        let res = Self { top: folder.join("under") };
        if res.top.symlink_metadata().is_err() {
            super::make_private(&res.top)?;
        }
        let above = open_folder(folder)?;
        make_entry(&above, Path::new("none"), true)?;
        make_entry(&above, Path::new("nothing"), false)?;
        Ok(res)
    }

    fn at(&self, place: &Path) -> PathBuf {
        self.top.join(place.strip_prefix("/").unwrap_or(place))
    }

    fn make(&self, place: &Path, is_dir: bool) -> io::Result<()> {
        let mut folder = open_folder(&self.top)?;
        let mut parts = place.components().filter(|it| matches!(it, Component::Normal(_))).peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            make_entry(&folder, part.as_ref(), is_dir || !is_last)?;
            if !is_last {
                let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
                folder = openat(&folder, Path::new(part.as_os_str()), flags, Mode::empty())?;
            }
        }
        Ok(())
    }

    fn link(&self, place: &Path) -> io::Result<()> {
        if let Some(above) = place.parent() {
            self.make(above, true)?;
        }
        match symlink(fs::read_link(place)?, self.at(place)) {
            Err(it) if it.kind() != io::ErrorKind::AlreadyExists => Err(it),
            _ => Ok(()),
        }
    }
}

fn make_entry(folder: &impl std::os::fd::AsFd, name: &Path, is_dir: bool) -> io::Result<()> {
    let made = match is_dir {
        true => mkdirat(folder, name, Mode::S_IRWXU),
        false => {
            let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            openat(folder, name, flags, Mode::S_IRUSR).map(drop)
        }
    };
    match made {
        Ok(()) | Err(nix::errno::Errno::EEXIST) => Ok(()),
        Err(it) => Err(it.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{GuardContext, SandboxPlan, fs, plan_views};
    use crate::base::{
        path::AbsPath,
        sandbox::{Confinement, OwnFolders},
    };

    #[test]
    fn nothing_is_mounted_in_a_hidden_place() {
        // With the network, all of `/tmp` is another folder.
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        for it in ["homes/me/.ssh", "w", "own/tmp", "own/view"] {
            fs::create_dir_all(top.join(it).as_path()).unwrap();
        }
        let at = |it: &str| top.join(it);
        let it = Confinement {
            masked: vec![at("homes"), at("homes/me"), at("homes/me/.ssh")],
            home: Some(at("homes/me")),
            network: true,
            own_folders: OwnFolders { tmp: at("own/tmp"), records: at("own/records"), caches: None },
            ..Confinement::for_folder(&at("w"))
        };
        let plan = SandboxPlan {
            writable: vec![at("w").as_path().to_owned()],
            tmp: at("own/tmp").as_path().to_owned(),
            ..SandboxPlan::default()
        };
        let around =
            GuardContext { cwd: &at("w"), home: None, path: "", program: "/bin/true", args: &[], in_front: false };
        let views = plan_views(&it, &around, &plan).unwrap();
        let hidden: Vec<_> = views.iter().map(|it| &it.place).filter(|it| it.starts_with(at("homes"))).collect();
        assert_eq!(hidden, [at("homes").as_path()]);
    }
}
