//! Single keys of a terminal, and which of them are older than what is on the screen.

use std::future;

use tokio::sync::mpsc;

use super::{
    keys::{KeyDecoder, KeyPress},
    terminal::{KeyTerminal, TypedBytes},
};
use castor_hands::process::cbreak::KeyModes;

/// Single keys of a terminal.
pub struct KeyInput {
    typed: mpsc::Receiver<TypedBytes>,
    decoder: KeyDecoder,
    terminal: Option<KeyTerminal>,
    /// What was read with a lower number was typed before the present question.
    pub discards: u64,
}

impl KeyInput {
    pub fn new(typed: mpsc::Receiver<TypedBytes>, terminal: Option<KeyTerminal>) -> Self {
        Self { typed, decoder: KeyDecoder::default(), terminal, discards: 0 }
    }

    /// The keyboard of this process's terminal; `None`: it gives lines only.
    pub fn open(modes: KeyModes) -> Option<Self> {
        let (terminal, typed) = KeyTerminal::open(modes)?;
        Some(Self { decoder: KeyDecoder::new(modes.is_raw), ..Self::new(typed, Some(terminal)) })
    }

    /// Ctrl-Z, as a key.
    pub fn stop(&self) {
        self.terminal.iter().for_each(KeyTerminal::stop);
    }

    /// Another program of ours reads the terminal, until it is taken again.
    pub fn lend(&self) {
        self.terminal.iter().for_each(KeyTerminal::lend);
    }

    pub fn take_again(&self) {
        self.terminal.iter().for_each(KeyTerminal::take_again);
    }

    /// The terminal was asked for its background, or its answer does not come any more.
    pub fn await_background(&mut self, awaits: bool) {
        self.decoder.await_background(awaits);
    }

    /// An answer that is still to come is no text for the next program.
    pub fn drop_answer(&mut self) {
        if self.decoder.awaits_background()
            && let Some(it) = &self.terminal
        {
            it.discard();
        }
    }

    /// The keys in what was typed.
    pub fn decode(&mut self, typed: &TypedBytes) -> Vec<KeyPress> {
        let mut keys = self.decoder.decode(&typed.bytes);
        keys.extend(typed.is_pause.then(|| self.decoder.pause()).flatten());
        keys
    }

    /// Whether it was typed after the last time that keys were discarded.
    pub fn is_current(&self, typed: &TypedBytes) -> bool {
        self.discards == typed.discards
    }

    pub async fn next(&mut self) -> Typed {
        let resumed = async {
            match &self.terminal {
                Some(it) => it.resumed().await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            biased;
            it = self.typed.recv() => it.map_or(Typed::End, Typed::Bytes),
            () = resumed => Typed::Resumed,
        }
    }

    /// What was typed so far, and is no answer to what comes up now.
    pub fn discard(&mut self) -> Vec<KeyPress> {
        let mut keys = Vec::new();
        while let Ok(it) = self.typed.try_recv() {
            keys.extend(self.decoder.decode(&it.bytes));
        }
        // The rest of a paste or an answer comes with its end.
        if self.decoder.is_open() {
            return keys;
        }
        self.decoder.reset();
        self.discards = self.terminal.as_ref().map_or(self.discards + 1, KeyTerminal::discard);
        keys
    }
}

/// What came from the user.
pub enum Typed {
    Line(String),
    Bytes(TypedBytes),
    /// The user came back after a stop, to a screen with other things on it.
    Resumed,
    /// There is nothing more to listen to.
    End,
}
