//! The parts that `castor run` and `castor chat` share as clients of an agent: its process, the session, keys, questions,
//! attachments, changes.

pub mod approval;
pub mod attachments;
pub mod background_answer;
pub mod change_summary;
pub mod changed_files;
pub mod child;
pub mod earlier_session;
pub mod form;
pub mod key_input;
pub mod keys;
pub mod line_editor;
pub mod link;
pub mod local_servers;
pub mod media;
pub mod menu;
pub mod probe;
pub mod prompt;
pub mod question;
pub mod question_queue;
pub mod question_subject;
pub mod signals;
pub mod start;
pub mod terminal;
pub mod trust_question;
