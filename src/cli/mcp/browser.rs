//! The user's browser, opened on a page.

use castor_base::path::AbsPath;
use castor_hands::{
    process::{Groups, Spawn, Stdin},
    secrets::Env,
};

/// What a browser finds its screen by.
const SCREEN: &[&str] = &["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "BROWSER"];

/// Whether a program was started that shows the page. Must be called within a tokio runtime.
pub fn open(url: &str, env: &Env, cwd: &AbsPath) -> bool {
    let Some(program) = program(env) else { return false };
    let allowed: Vec<String> = SCREEN.iter().map(|it| (*it).to_owned()).collect();
    let env = env.child_env(&allowed, &[]);
    let spawn = Spawn { program: &program, args: &[url], cwd, env: &env, stdin: Stdin::Null, confined: None };
    match spawn.start(&Groups::default()) {
        Ok(child) => {
            // The browser stays when castor ends.
            std::mem::forget(child);
            true
        }
        Err(_) => false,
    }
}

/// `None`: nobody would see a page here.
fn program(env: &Env) -> Option<String> {
    let named = env.get("BROWSER").and_then(|it| it.split(':').next()).filter(|it| !it.is_empty());
    if let Some(it) = named {
        return Some(it.to_owned());
    }
    if cfg!(target_os = "macos") {
        return Some("open".to_owned());
    }
    let has_screen = env.first_set(&["DISPLAY", "WAYLAND_DISPLAY"]).is_some();
    has_screen.then(|| "xdg-open".to_owned())
}

#[cfg(test)]
mod tests {
    use super::program;
    use castor_hands::secrets::Env;

    #[test]
    fn without_a_screen_there_is_no_browser() {
        let of = |vars: &[(&str, &str)]| program(&Env::from_pairs(vars.iter().copied()));
        assert_eq!(of(&[("BROWSER", "firefox:w3m"), ("DISPLAY", ":0")]).as_deref(), Some("firefox"));
        if !cfg!(target_os = "macos") {
            assert_eq!(of(&[("DISPLAY", ":0")]).as_deref(), Some("xdg-open"));
            assert_eq!(of(&[("BROWSER", "")]), None);
        }
    }
}
