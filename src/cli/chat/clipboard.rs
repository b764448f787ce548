//! Image of the clipboard, by the programs that desktops have for it: `wl-paste`, `xclip`, `pngpaste`.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::timeout,
};

use castor_base::path::AbsPath;
use castor_hands::{
    process::{Groups, PipedProcess, Spawn, Stdin},
    secrets::Env,
};

/// A program, where it can reach a clipboard, and how it gives an image.
struct ClipboardReader {
    /// The variable that names the desktop; empty: macOS.
    variable: &'static str,
    program: &'static str,
    args: &'static [&'static str],
}

const READERS: &[ClipboardReader] = &[
    ClipboardReader {
        variable: "WAYLAND_DISPLAY",
        program: "wl-paste",
        args: &["--no-newline", "--type", "image/png"],
    },
    ClipboardReader {
        variable: "DISPLAY",
        program: "xclip",
        args: &["-selection", "clipboard", "-target", "image/png", "-out"],
    },
    ClipboardReader { variable: "", program: "pngpaste", args: &["-"] },
];
const ALLOWED: &[&str] = &["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR"];
/// As many bytes as an attachment may have.
const MAX_IMAGE: u64 = 8 << 20;
const LIMIT: Duration = Duration::from_secs(3);
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const NO_IMAGE: &str = "the clipboard holds no image";

/// The bytes of a PNG.
///
/// # Errors
/// In words: no program can be asked, or there is no image.
pub async fn read_image(env: &Env, cwd: &AbsPath) -> Result<Vec<u8>, String> {
    let has = |name: &str| env.get(name).is_some_and(|it| !it.is_empty());
    let readers =
        READERS.iter().filter(|it| if it.variable.is_empty() { cfg!(target_os = "macos") } else { has(it.variable) });
    let mut why = "no clipboard can be reached from here; the path of an image can be pasted".to_owned();
    for it in readers {
        match it.read(env, cwd).await {
            Ok(bytes) => return Ok(bytes),
            Err(it) => why = it,
        }
    }
    Err(why)
}

impl ClipboardReader {
    async fn read(&self, env: &Env, cwd: &AbsPath) -> Result<Vec<u8>, String> {
        let allowed: Vec<String> = ALLOWED.iter().map(|it| (*it).to_owned()).collect();
        let env = env.child_env(&allowed, &[]);
        // It is the user's own program on the user's own clipboard: no sandbox.
        let spawn =
            Spawn { program: self.program, args: self.args, cwd, env: &env, stdin: Stdin::Null, confined: None };
        let process = spawn.start_piped(&Groups::default()).map_err(|it| self.absence(&it))?;
        let PipedProcess { mut life, stdin, stdout, stderr } = process;
        drop(stdin);
        let ended = timeout(LIMIT, async {
            let (image, _) = tokio::join!(read_all(stdout), read_all(stderr));
            (image, life.wait().await)
        });
        let (image, _) = ended.await.map_err(|_| format!("{} does not answer", self.program))?;
        let image = image.map_err(|it| format!("{}: {it}", self.program))?;
        match image.starts_with(PNG) {
            _ if image.len() as u64 > MAX_IMAGE => Err("the image of the clipboard is larger than 8 MiB".to_owned()),
            true => Ok(image),
            false => Err(NO_IMAGE.to_owned()),
        }
    }

    fn absence(&self, error: &io::Error) -> String {
        match error.kind() {
            io::ErrorKind::NotFound => format!("{} is not installed: it reads the clipboard", self.program),
            _ => format!("{} cannot be started: {error}", self.program),
        }
    }
}

async fn read_all(from: impl AsyncRead + Unpin) -> io::Result<Vec<u8>> {
    let mut res = Vec::new();
    from.take(MAX_IMAGE + 1).read_to_end(&mut res).await.map(|_| res)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]

    use std::os::unix::fs::PermissionsExt;

    use super::{NO_IMAGE, PNG, read_image};
    use crate::cli::testing::Ground;
    use castor_hands::secrets::Env;

    async fn read_from(script: Option<&str>) -> Result<Vec<u8>, String> {
        let ground = Ground::new();
        ground.write("bin/x", "");
        if let Some(it) = script {
            ground.write("bin/wl-paste", &format!("#!/bin/sh\n{it}\n"));
            let program = ground.root.join("bin/wl-paste");
            std::fs::set_permissions(program.as_path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:/usr/bin:/bin", ground.root.join("bin"));
        let env = Env::from_pairs([("PATH", path.as_str()), ("WAYLAND_DISPLAY", "wayland-0")]);
        read_image(&env, &ground.root).await
    }

    #[tokio::test]
    async fn the_image_of_the_clipboard_is_read() {
        let image = read_from(Some(r#"[ "$3" = image/png ] && printf '\211PNG\r\n\032\nrest'"#)).await.unwrap();
        assert_eq!(image, [PNG, b"rest"].concat());
        assert_eq!(read_from(Some("echo No suitable type; exit 1")).await.unwrap_err(), NO_IMAGE);
        let much = read_from(Some(r"printf '\211PNG\r\n\032\n'; head -c 9000000 /dev/zero")).await;
        assert!(much.unwrap_err().contains("larger than 8 MiB"));
    }

    #[tokio::test]
    async fn what_is_missing_is_said() {
        let ground = Ground::new();
        let nothing = read_image(&Env::from_pairs([("PATH", "/usr/bin")]), &ground.root).await;
        assert!(cfg!(target_os = "macos") || nothing.unwrap_err().contains("no clipboard can be reached"));
        // The machine may have a real one.
        let absent = Env::from_pairs([("PATH", "/nowhere"), ("WAYLAND_DISPLAY", "wayland-0")]);
        assert!(read_image(&absent, &ground.root).await.unwrap_err().contains("wl-paste is not installed"));
    }
}
