//! Policy errors: why a policy file, or one of its rules or safety checkers, is left out.

use super::rule::RuleSource;

/// The reason why a whole file is left out.
#[derive(Debug, thiserror::Error)]
#[error("{0}: {1}")]
pub struct FileError(pub RuleSource, pub RuleError);

/// The reason why a rule or a safety checker is left out.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum RuleError {
    #[error("{}", .0.message())]
    Toml(#[from] toml::de::Error),
    #[error("{0} is not a key that castor knows")]
    UnknownKey(String),
    #[error("{0} is not a key that castor knows; did you mean {1}?")]
    MisspeltKey(String, &'static str),
    #[error("{0} is missing")]
    Missing(&'static str),
    /// Its author said something that means nothing.
    #[error("{0}")]
    Invalid(&'static str),
    /// It is well said, but such a rule may not say it.
    #[error("{0}")]
    Refused(&'static str),
    #[error("timeout must be 1 to {0} milliseconds")]
    Timeout(u64),
    #[error("its pattern is longer than {0}")]
    LongPattern(usize),
    #[error("its pattern {0:?} is not a regular expression")]
    Pattern(String),
    #[error("it does not match its example `{0}`")]
    Example(String),
    #[error("it matches `{0}`, which it should not")]
    CounterExample(String),
    #[error("castor has no checker {0:?}")]
    UnknownChecker(String),
    #[error("the program {0:?} is neither absolute nor below ~/")]
    RelativeProgram(String),
}
