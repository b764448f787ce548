//! The seam between the chat's frame and what is drawn in the last lines of the screen: a composer, a picker, a question.
//!
//! A panel is pure: no clock, disk or terminal. Keys and news go in; lines go out, and actions for the frame. The frame
//! puts one panel on top of the composer at a time, sends it all keys but those of the frame itself (Ctrl-C, Ctrl-O,
//! Ctrl-T, Shift-Tab while no panel is on top), and draws it again after each key.

pub use crate::cli::client::{keys::KeyPress as Key, question_subject::ProposedText};
use crate::cli::render::text::{Color, Line, Style};
pub use castor_client::machine::RewindWhat;

/// A panel in the last lines of the screen: a composer, a picker or a question.
pub trait Panel {
    /// One key or paste; what the chat has to do about it. Ctrl-C comes only to clear what is typed.
    fn key(&mut self, key: &Key, out: &mut Vec<Action>);

    /// Passes on findings of the frame.
    fn tell(&mut self, _news: &News, _out: &mut Vec<Action>) {}

    /// Whether nothing is typed: a question that comes up gets the keys at once then.
    fn is_empty(&self) -> bool {
        true
    }

    /// Takes the draft that is typed and was not sent; it is gone from here then.
    fn take_draft(&mut self) -> Option<Draft> {
        None
    }

    /// Lines of at most `width` columns, at most `height` of them, and where the cursor stands in them.
    fn draw(&self, width: u16, height: u16, theme: &Theme) -> Drawn;
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    pub lines: Vec<Line>,
    /// Row and column in `lines`; `None` hides the cursor.
    pub cursor: Option<(u16, u16)>,
}

/// A message of the user's, ready to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// The text for the agent: folded pastes are in whole here. `@names` in it are attached by the frame.
    pub text: String,
    /// Paths of further files, such as images that were pasted; relative ones are seen from the chat's folder.
    pub files: Vec<String>,
}

/// An order of a panel to the chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Enter. The frame sends it as a prompt; while the agent works it steers the turn, or waits if it cannot.
    Submit(Draft),
    /// The message waits for the end of the turn, also where the agent could be steered.
    Queue(Draft),
    /// Esc with nothing to close: the turn is cancelled.
    Cancel,
    /// Esc Esc in an empty composer.
    OpenRewind,
    /// Alt-S, or what a picker of options wants.
    OpenSessions,
    OpenOptions,
    /// The text is edited in $EDITOR; the answer is [`News::Edited`].
    OpenEditor(String),
    /// Names of files for what stands behind an `@`; the answer is [`News::Files`].
    NeedFiles {
        query: String,
    },
    /// The answer is [`News::Commands`].
    NeedCommands,
    /// A line for the file of the history.
    Remember(String),
    /// Shift-Tab: the next mode.
    NextMode,
    /// A config option of the session, a mode or a model among them.
    SetOption {
        id: String,
        value: String,
    },
    OpenSession {
        id: String,
    },
    /// A search in what these sessions said; the answer is [`News::Found`].
    SearchSessions {
        query: String,
        ids: Vec<String>,
    },
    /// The image of the clipboard is wanted; the answer is [`News::Image`].
    ReadClipboard,
    /// A long text in the user's pager.
    Page(Vec<Line>),
    /// The text that an edit would write, for the user's editor.
    EditProposal(ProposedText),
    /// Back to before this message of the user's.
    Rewind {
        prompt: String,
        what: RewindWhat,
    },
    Redo,
    /// Text for the clipboard, over OSC 52.
    Copy(String),
    /// Something to say in the scrollback.
    Note(String),
    /// The panel is done, and the one below it comes back.
    Close,
    /// The chat ends.
    Quit,
}

/// A message of the frame to a panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Paths below the folder that may match the query, folders with a slash at their end.
    Files {
        query: String,
        paths: Vec<String>,
    },
    Commands(Vec<SlashCommand>),
    /// Earlier messages, the oldest first.
    History(Vec<String>),
    /// Sessions by their ids, each with a line that has the words.
    Found {
        query: String,
        lines: Vec<(String, String)>,
    },
    /// The path of an image that was in the clipboard.
    Image(String),
    /// The text as the editor left it; `None`: the editor failed, and the text stays.
    Edited(Option<String>),
    Agent(AgentPhase),
    /// A foreign agent has no `/shell` and no `/memory`: `!` and `#` are plain text then.
    Castor(bool),
    /// The keys of vi are wanted.
    ViKeys,
    /// Text that the user gets back: a message that was not sent, or the one that was rewound.
    Draft(Draft),
}

/// The agent's state, and so the fate of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentPhase {
    /// It waits for a message.
    #[default]
    Idle,
    /// It works, and reads what is sent meanwhile.
    Steerable,
    /// It works, and messages wait.
    Busy,
    /// Nothing can be sent any more.
    Gone,
}

impl AgentPhase {
    pub fn is_working(self) -> bool {
        matches!(self, Self::Steerable | Self::Busy)
    }
}

/// A command that the agent offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlashCommand {
    /// Without the slash.
    pub name: String,
    pub description: String,
    /// The hint at what to type behind it.
    pub hint: Option<String>,
}

/// The look of panels. Colours are the terminal's own or of a palette: that is the painter's matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// For screen readers: no boxes, no signs that only draw.
    pub is_plain: bool,
}

impl Theme {
    /// Frames of boxes.
    pub const BORDER: Style = Style::color(Color::Gray);
    /// Signs in front of text, keys, what matched.
    pub const ACCENT: Style = Style { bold: true, ..Style::color(Color::Cyan) };
    pub const HINT: Style = Style::DIM;
    pub const SELECTED: Style = Style { reverse: true, ..Style::PLAIN };
    pub const WARNING: Style = Style::color(Color::Yellow);
    pub const ERROR: Style = Style::color(Color::Red);
}
