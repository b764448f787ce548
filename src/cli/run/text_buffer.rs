//! Buffer for answer text that an agent may still take back, as when a model's answer breaks off.

#[derive(Debug)]
struct BufferedText {
    /// The message that it is of.
    message: Option<String>,
    text: String,
}

/// Text that is not shown yet, in order.
#[derive(Debug, Default)]
pub struct TextBuffer {
    pieces: Vec<BufferedText>,
    /// The next text is a piece of its own.
    starts_piece: bool,
}

impl TextBuffer {
    pub fn push(&mut self, message: Option<&str>, text: &str) {
        let parted = std::mem::take(&mut self.starts_piece);
        match self.pieces.last_mut().filter(|it| !parted && it.message.as_deref() == message) {
            Some(piece) => piece.text.push_str(text),
            None => self.pieces.push(BufferedText { message: message.map(str::to_owned), text: text.to_owned() }),
        }
    }

    pub fn start_piece(&mut self) {
        self.starts_piece = true;
    }

    /// Forgets messages that do not count any more.
    pub fn discard(&mut self, messages: &[&str]) {
        self.pieces.retain(|it| it.message.as_deref().is_none_or(|it| !messages.contains(&it)));
    }

    /// What is sure now, each on a line of its own.
    pub fn take(&mut self) -> impl Iterator<Item = String> + use<> {
        std::mem::take(&mut self.pieces).into_iter().map(|it| it.text)
    }

    /// The same as one text.
    pub fn join(&mut self) -> String {
        self.take().fold(String::new(), |all, it| {
            if all.is_empty() || all.ends_with('\n') { all + &it } else { all + "\n" + &it }
        })
    }
}
