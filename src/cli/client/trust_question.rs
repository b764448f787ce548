//! The trust question of `castor run`, before a session in a mode that only trusted folders have.

use std::io::{self, BufRead, BufReader};

use super::terminal::columns;
use crate::cli::{
    render::{text::Line, wrap::wrap},
    terminal_text::{escape_line, escape_text},
};
use castor_agent::session::policies;
use castor_base::{
    log::Mode,
    path::AbsPath,
    trust::{Trust, TrustChoice, allowed_by_trust},
};
use castor_hands::{process::cbreak::open_terminal, secrets::Env};
use castor_tools::workspace::{castor_home, folder_config};

/// Asks about a folder without a decision, and saves an approval. Without one the agent refuses the mode, and says what
/// allows it. Gives warnings for the user.
///
/// # Errors
/// An approval that cannot be saved.
pub fn ask_for_mode(
    mode: Mode,
    env: &Env,
    cwd: &AbsPath,
    ask: &mut dyn FnMut(&str) -> bool,
) -> io::Result<Vec<String>> {
    let Some(home) = castor_home(env).filter(|_| mode > Mode::Default) else { return Ok(Vec::new()) };
    let ground = folder_config::load(env, cwd);
    // A home folder is not a matter of one click: `castor trust` asks again.
    if ground.trust != Trust::Unknown || folder_config::broad_folder(env, &ground, TrustChoice::Folder).is_some() {
        return Ok(Vec::new());
    }
    let about = match &ground.doubt {
        Some(it) => it.form.message.clone() + &allowed_by_trust(&policies::allowed_if_trusted(&ground, env)),
        None => format!("You have not decided about {} yet. ", escape_line(&ground.folder.to_string())),
    };
    if !ask(&format!("The mode {} needs a trusted folder. {about}Trust this folder?", mode.flag())) {
        return Ok(Vec::new());
    }
    let warnings = folder_config::save_decision(&home, &ground, TrustChoice::Folder)?;
    Ok(warnings.iter().map(ToString::to_string).collect())
}

/// Asks on the terminal itself, as stdin may be a pipe.
pub fn ask_on_terminal(question: &str) -> bool {
    let Ok(terminal) = open_terminal() else { return false };
    let question = format!("{} [y/N] ", escape_text(question));
    let wrapped = question.split('\n').flat_map(|it| wrap(&Line::plain(it), columns(), "  "));
    eprint!("{} ", wrapped.map(|it| it.text()).collect::<Vec<_>>().join("\n").trim_end());
    let mut line = String::new();
    _ = BufReader::new(terminal).read_line(&mut line);
    matches!(line.trim(), "y" | "Y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::ask_for_mode;
    use crate::cli::testing::Ground;
    use castor_base::{log::Mode, trust::Trust};
    use castor_hands::secrets::Env;
    use castor_tools::workspace::folder_config;

    #[test]
    fn a_mode_of_trusted_folders_asks_about_a_folder_once() {
        let ground = Ground::new();
        let env = Env::from_pairs([("HOME", ground.root.join("h").to_string().as_str())]);
        ground.write("w/plain/a.txt", "");
        ground.write("w/full/.castor/settings.json", "{}");
        let trust = |folder: &str| folder_config::load(&env, &ground.root.join(folder)).trust;
        let check = |mode: Mode, folder: &str, answer: bool| {
            let mut asked = Vec::new();
            let mut ask = |it: &str| {
                asked.push(it.replace(&ground.root.to_string(), "$ROOT"));
                answer
            };
            ask_for_mode(mode, &env, &ground.root.join(folder), &mut ask).unwrap();
            asked
        };
        let plain = "The mode auto_edit needs a trusted folder. You have not decided about $ROOT/w/plain yet. Trust this folder?";
        assert_eq!(check(Mode::AutoEdit, "w/plain", false), [plain]);
        assert_eq!(trust("w/plain"), Trust::Unknown);
        assert!(check(Mode::Default, "w/plain", true).is_empty());
        assert_eq!(check(Mode::AutoEdit, "w/plain", true), [plain]);
        assert!(trust("w/plain").is_trusted() && check(Mode::Yolo, "w/plain", true).is_empty());
        let asked = check(Mode::Yolo, "w/full", true).concat();
        assert!(asked.contains("Do you trust the folder $ROOT/w/full?") && asked.contains("settings.json"), "{asked}");
        assert!(folder_config::load(&env, &ground.root.join("w/full")).doubt.is_none());
        assert!(check(Mode::Yolo, "h", true).is_empty(), "a home folder is for `castor trust`");
    }
}
