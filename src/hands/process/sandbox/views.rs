//! Hidden paths: credentials and secrets that a confined command cannot see. Only mounts can hide them.
//!
//! Each place gets something else mounted on it: an empty folder or file, or a folder with nothing but the mount points of
//! what is seen in it all the same. All of these lie in the session's own folder, in `view`. On the folders for temporary
//! files that all programs share, the session's own is mounted.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::{
        fd::BorrowedFd,
        unix::{ffi::OsStrExt, fs::symlink},
    },
    path::{Path, PathBuf},
};

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use super::{
    GuardContext, SandboxPlan, environment, nested_config,
    placeholder_files::open_folder,
    secret_masks::{make_mask, new_folder},
    sockets,
};
use crate::{disk::dirfd, door::inside};
use castor_base::{
    guarded_names::{CACHE_VARIABLES, SECRETS, TOKEN_FILES, TOOL_CACHES, TOOL_FOLDERS},
    path::AbsPath,
    path_text,
    sandbox::{Confinement, SHARED_TMP},
};

/// Beside the folder for temporary files: castor's own, which commands read and never write.
const VIEW: &str = "view";
/// The folder of the system's sockets is hidden, but for what name servers and programs need.
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
    #[serde(with = "path_text")]
    pub place: PathBuf,
    /// `None`: what is there, in a place that is hidden around it.
    #[serde(with = "path_text::maybe")]
    pub shows: Option<PathBuf>,
    pub written: bool,
    /// What is written there lies below this folder, and what is there stays as it is. Only the helper's mounts do that.
    #[serde(with = "path_text::maybe")]
    pub own: Option<PathBuf>,
}

impl View {
    fn of(place: &Path, shows: Option<PathBuf>, written: bool) -> Self {
        Self { place: place.to_owned(), shows, written, own: None }
    }
}

/// The folder beside a session's temporary files.
pub(super) fn view_folder(tmp: &Path) -> PathBuf {
    tmp.with_file_name(VIEW)
}

/// What is hidden of what there is, and seen all the same. The rest of the plan is known.
pub(super) fn plan_views(it: &Confinement, around: &GuardContext<'_>, plan: &SandboxPlan) -> io::Result<Vec<View>> {
    // One that is gone is no reason to fail.
    let read = it.read_only_paths.iter().map(AbsPath::as_path).filter(|it| is_folder(it)).chain(plan.tmp.parent());
    let empty = view_folder(&plan.tmp);
    let given = it.grant.seen.iter().chain(&it.grant.reach.sockets).map(AbsPath::as_path).filter(|it| is_real(it));
    let roots = it.roots.iter().chain(&it.git_dirs).map(AbsPath::as_path).filter(|it| is_real(it));
    let needed: BTreeSet<PathBuf> =
        plan.writable.iter().cloned().chain(read.chain(given).chain(roots).map(Path::to_owned)).collect();
    let mut masked = masked_secrets(it);
    if it.opens_sockets() {
        masked.extend(sockets::of_others(it));
    }
    let (mut seen, mut links) = (needed.clone(), Vec::new());
    for path in visible_paths(it, around) {
        see(&path, &mut seen, &mut links);
    }
    seen.retain(|it| needed.contains(it) || !masked.iter().any(|secret| it.starts_with(secret)));
    let mut covers = whole_covers(it, &needed);
    let (mut views, masks) = (BTreeMap::new(), new_folder(&empty));
    if let (true, Ok(place)) = (super::has_door(it), Path::new(RESOLV_CONF).canonicalize()) {
        views.insert(place.clone(), View::of(&place, Some(resolver_settings(&empty)?), false));
    }
    for secret in masked.iter().filter(|it| !needed.contains(*it)) {
        let around = secret.ancestors().find(|it| covers.contains_key(*it) || seen.contains(*it));
        if around.is_some_and(|it| covers.contains_key(it)) {
            continue;
        }
        if needed.iter().any(|it| it.starts_with(secret)) {
            covers.insert(secret.clone(), false);
            continue;
        }
        let name = if secret.is_dir() { "none" } else { "nothing" };
        let is_watched = is_of_workspace(it, secret);
        let shows = if is_watched { make_mask(&masks, views.len(), secret)? } else { empty.join(name) };
        views.insert(secret.clone(), View::of(secret, Some(shows), false));
    }
    let caches = own_caches(it, around, &needed, &masked);
    // In a place that shows nothing there is nowhere to mount.
    covers.retain(|place, _| !place.ancestors().any(|it| views.contains_key(it)));
    if views.is_empty() && covers.is_empty() {
        return Ok(Vec::new());
    }
    let all = Skeleton::open(&empty, &plan.tmp)?;
    for place in &seen {
        let Some(cover) = cover_of(place, &covers, &seen) else { continue };
        all.make_point(place, place.is_dir(), cover)?;
        views.entry(place.clone()).or_insert(View::of(place, None, false));
    }
    for link in &links {
        cover_of(link, &covers, &seen).map_or(Ok(()), |cover| all.link(link, cover))?;
    }
    for (place, written) in &covers {
        cover_of(place, &covers, &seen).map_or(Ok(()), |cover| all.make_point(place, true, cover))?;
        let shows = Some(if is_shared(place) { plan.tmp.clone() } else { all.make_cover(place)? });
        views.insert(place.clone(), View::of(place, shows, *written));
    }
    views.extend(caches.into_iter().map(|it| (it.place.clone(), it)));
    Ok(views.into_values().collect())
}

/// Folders that are hidden as a whole, and whether something is written there all the same.
fn whole_covers(it: &Confinement, needed: &BTreeSet<PathBuf>) -> BTreeMap<PathBuf, bool> {
    let hidden = it.opens_sockets().then(|| PathBuf::from(SOCKETS)).into_iter();
    let hidden = hidden.chain(it.home.iter().map(|it| it.as_path().to_owned())).map(|it| (it, false));
    let is_whole = |place: &Path| !needed.iter().any(|root| place.starts_with(root));
    let shared = SHARED_TMP.iter().map(|it| (PathBuf::from(it), true)).chain(hidden);
    shared.filter(|(place, _)| is_whole(place) && is_folder(place)).collect()
}

/// Folders in which tools keep what they fetched: each with a layer of castor's own for what commands write, but for the
/// programs in it, which nobody replaces.
fn own_caches(
    it: &Confinement,
    around: &GuardContext<'_>,
    needed: &BTreeSet<PathBuf>,
    masked: &BTreeSet<PathBuf>,
) -> Vec<View> {
    let (Some(home), Some(own)) = (&it.home, &it.own_folders.caches) else { return Vec::new() };
    let named = |wanted: &dyn Fn(&str) -> bool| -> Vec<PathBuf> {
        environment::named_paths(around.env)
            .filter(|it| wanted(it.0))
            .filter_map(|it| it.1.canonicalize().ok())
            .collect()
    };
    let in_home = TOOL_CACHES.iter().filter_map(|it| home.join(*it).as_path().canonicalize().ok());
    let is_hidden = |place: &Path| masked.iter().any(|it| place.starts_with(it));
    let clashes = |place: &Path| needed.iter().any(|it| it.starts_with(place) || place.starts_with(it));
    let is_apart = |place: &PathBuf| place.is_dir() && !clashes(place) && !is_hidden(place);
    let all: BTreeSet<PathBuf> = in_home.chain(named(&|it| CACHE_VARIABLES.contains(&it))).filter(is_apart).collect();
    // Its whole path in one name.
    let layer = |place: &Path| own.join("tools").join(place.display().to_string().replace('/', "-"));
    let outer = all.iter().filter(|it| !it.ancestors().skip(1).any(|it| all.contains(it)));
    let on_path = named(&|it| it == "PATH");
    let views = outer.flat_map(|place| {
        let programs = on_path.iter().cloned().chain(place.join("bin").canonicalize());
        let programs = programs.filter(|it| it.starts_with(place) && it != place && !is_hidden(it));
        let cache = View { own: Some(layer(place).as_path().to_owned()), ..View::of(place, None, true) };
        [cache].into_iter().chain(programs.map(|it| View::of(&it, None, false))).collect::<Vec<_>>()
    });
    views.collect()
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

/// Where a path of the shared folders is to commands that are confined so; `None`: where it is to all.
pub fn own_tmp_path(it: &Confinement, path: &AbsPath) -> Option<AbsPath> {
    it.own_tmp_path(path, |it| is_real(it.as_path())).filter(|_| super::has_mounts())
}

fn is_shared(place: &Path) -> bool {
    SHARED_TMP.iter().any(|it| place == *it)
}

/// Whether no link leads there: of what was named nobody knows who made it.
fn is_real(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| real == path)
}

/// What covers a place; `None`: nothing does, or it lies in what is seen as a whole.
fn cover_of<'p>(place: &'p Path, covers: &BTreeMap<PathBuf, bool>, seen: &BTreeSet<PathBuf>) -> Option<&'p Path> {
    let above = place.ancestors().skip(1).find(|it| covers.contains_key(*it) || seen.contains(*it))?;
    covers.contains_key(above).then_some(above)
}

/// Whether it is hidden for the network's sake alone.
fn is_of_workspace(it: &Confinement, secret: &Path) -> bool {
    let is_own = |root: &AbsPath| !it.home.as_ref().is_some_and(|home| home.is_within(root));
    it.hides_secrets() && it.roots.iter().any(|root| secret.starts_with(root.as_path()) && is_own(root))
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
        let more: Vec<&Path> = it.grant.seen.iter().filter(|it| it.is_within(home)).map(AbsPath::as_path).collect();
        let is_whole = it.roots.iter().any(|root| home.is_within(root));
        let found = nested_config::secrets_of_home(home.as_path(), &more, is_whole);
        found.into_iter().filter(|path| !is_worked_in(path, home))
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

/// What is seen in the home folder and in the shared ones: tools, what the user allowed, and where the program lies.
fn visible_paths(it: &Confinement, around: &GuardContext<'_>) -> Vec<PathBuf> {
    let home = it.home.as_ref().map(AbsPath::as_path);
    let is_home = |path: &Path| home == Some(path);
    let is_hidden = |path: &Path| {
        home.is_some_and(|home| path.starts_with(home)) || SHARED_TMP.iter().any(|it| path.starts_with(it))
    };
    // A whole shared folder is nobody's tool.
    let is_within = |path: &&Path| is_hidden(path) && !is_home(path) && !is_shared(path);
    let tools = home.into_iter().flat_map(|home| TOOL_FOLDERS.iter().map(move |it| home.join(it)));
    // What belongs to a program lies beside its folder: `~/.tool/bin`, `~/.tool/lib`.
    let beside = |it: &Path| it.parent().filter(is_within).unwrap_or(it).to_owned();
    let is_plain = |it: &Path| is_within(&it) && SECRETS.find(it).is_none();
    let named = environment::named_paths(around.env).filter(|it| is_plain(it.1));
    let named = named.map(|(name, it)| if name == "PATH" { beside(it) } else { it.to_owned() });
    let words = std::iter::once(around.program)
        .chain(around.args.iter().copied())
        .map(Path::new)
        .filter(|it| it.is_absolute() && it.exists());
    let programs = words.filter_map(Path::parent).filter(is_within).map(Path::to_owned);
    let allowed = it.grant.credentials.iter().map(|it| it.path.as_path().to_owned());
    let cwd = Some(around.cwd.as_path()).filter(|it| is_within(it)).map(Path::to_owned);
    // What says where names are looked up often lies among the sockets.
    let resolver = Path::new(RESOLV_CONF).canonicalize().ok().filter(|it| it.starts_with(SOCKETS));
    let allowed = allowed.chain(BESIDE_SOCKETS.iter().map(PathBuf::from)).chain(resolver);
    let shared = it.seen_of_shared().map(|it| it.as_path().to_owned()).filter(|it| is_real(it));
    // Of the repository around a root git reads the other files, too.
    let around_root = |git: &AbsPath| git.parent().filter(|all| it.roots.iter().any(|root| root.is_within(all)));
    let repositories = it.git_dirs.iter().filter_map(around_root).map(|it| it.as_path().to_owned());
    let all = tools.chain(named).chain(programs).chain(allowed).chain(cwd).chain(shared).chain(repositories);
    all.filter(|it| it.symlink_metadata().is_ok()).collect()
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

/// Empty folders and files under the names of what is mounted on them. Those in the session's own folder for temporary files
/// lie among what commands write: no link is followed.
struct Skeleton {
    top: PathBuf,
    tmp: PathBuf,
}

impl Skeleton {
    fn open(folder: &Path, tmp: &Path) -> io::Result<Self> {
        let res = Self { top: folder.join("under"), tmp: tmp.to_owned() };
        if res.top.symlink_metadata().is_err() {
            super::make_private(&res.top)?;
        }
        make_below(folder, Path::new("none"), true)?;
        make_below(folder, Path::new("nothing"), false)?;
        Ok(res)
    }

    /// A place to mount on, in the folder that covers it.
    fn make_point(&self, place: &Path, is_dir: bool, cover: &Path) -> io::Result<()> {
        let (top, below) = self.point(place, cover);
        make_below(top, below, is_dir)
    }

    /// The folder that is mounted on a place.
    fn make_cover(&self, place: &Path) -> io::Result<PathBuf> {
        let below = place.strip_prefix("/").unwrap_or(place);
        make_below(&self.top, below, true)?;
        Ok(self.top.join(below))
    }

    fn link(&self, place: &Path, cover: &Path) -> io::Result<()> {
        let (top, below) = self.point(place, cover);
        if let Some(above) = below.parent() {
            make_below(top, above, true)?;
        }
        match symlink(fs::read_link(place)?, top.join(below)) {
            Err(it) if it.kind() != io::ErrorKind::AlreadyExists => Err(it),
            _ => Ok(()),
        }
    }

    fn point<'p>(&self, place: &'p Path, cover: &Path) -> (&Path, &'p Path) {
        let (top, above) = if is_shared(cover) { (&self.tmp, cover) } else { (&self.top, Path::new("/")) };
        (top, place.strip_prefix(above).unwrap_or(place))
    }
}

fn make_below(top: &Path, below: &Path, is_dir: bool) -> io::Result<()> {
    let top = open_folder(top)?;
    let way: Vec<&Path> = below.ancestors().collect();
    let mut way = way.into_iter().rev().skip(1);
    way.try_for_each(|it| top.at(it.as_os_str().as_bytes(), |dir, name| make_entry(dir, name, is_dir || it != below)))
}

/// A command may have put another thing in the place of one to mount on.
fn make_entry(folder: BorrowedFd, name: &[u8], is_dir: bool) -> io::Result<()> {
    let wanted = if is_dir { FileType::Directory } else { FileType::RegularFile };
    match dirfd::stat(folder, name)?.map(|it| dirfd::file_type(&it)) {
        Some(it) if it == wanted => return Ok(()),
        Some(FileType::Directory) => _ = dirfd::remove_dir(folder, name),
        _ => _ = dirfd::remove(folder, name),
    }
    let made = match is_dir {
        true => dirfd::make_dir(folder, name, 0o700),
        false => dirfd::create_new(folder, name, 0o400).map(drop),
    };
    // Another command is faster.
    made.or_else(|it| if it.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(it) })
}

#[cfg(test)]
mod tests {
    use super::{GuardContext, SandboxPlan, fs, plan_views};
    use castor_base::{
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
            GuardContext { cwd: &at("w"), home: None, env: &[], program: "/bin/true", args: &[], in_front: false };
        let views = plan_views(&it, &around, &plan).unwrap();
        let hidden: Vec<_> = views.iter().map(|it| &it.place).filter(|it| it.starts_with(at("homes"))).collect();
        assert_eq!(hidden, [at("homes").as_path()]);
    }
}
