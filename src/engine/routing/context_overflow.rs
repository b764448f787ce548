//! Context overflow errors: reads a model's token limit from each provider's message.

use crate::routing::{
    failure_class::{FailureClass, classify},
    overflow_words::{NumberInText, numbers},
};
use castor_base::model::Failure;

/// An overflow in tokens, as far as the provider says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextOverflow {
    /// The model's window, without the room that was wanted for the answer.
    pub window: Option<u64>,
    /// The request, by the provider's own count.
    pub size: Option<u64>,
}

/// No model reads less or more: whoever says so means something else.
const LEAST: u64 = 256;
const MOST: u64 = 1_000_000_000;

/// Words before a number of tokens, in lower case; the first that is there.
const WINDOW: &[&str] = &[
    "maximum input length of ",
    "maximum context length is ",
    "maximum context length of ",
    "maximum context length (",
    "context length is only ",
    "context length of only ",
    "context length (",
    "available context size (",
    "maximum number of tokens allowed (",
    "maximum number of tokens allowed ",
    "configured limit of ",
    " tokens > ",
    "`max_new_tokens` must be <= ",
];
/// The same where it stands in front.
const WINDOW_BEFORE: &[&str] = &[" maximum context length"];
/// Words before a single number that is a limit.
const LIMIT: &[&str] = &[
    "limit of",
    "limit is",
    "limit:",
    "up to",
    "length",
    "length of",
    "length is",
    "length:",
    "window of",
    "window is",
    "size is",
    "size:",
    "size of",
    "maximum",
    "maximum of",
    "at most",
    "must be <=",
    "should be",
    "exceed",
    "tokens:",
    "must have less than",
    "must be less than",
];
/// Units in which no window is counted.
const OTHER_UNITS: &[&str] = &["byte", "char", "mb", "kb", "second", "image"];
const SIZE: &[&str] = &[
    "resulted in ",
    "prompt is too long: ",
    "input token count (",
    "the request (",
    "request (",
    "prompt contains ",
    "input length (",
    "the input (",
];
const SIZE_BEFORE: &[&str] = &[" in the messages", " of text input", " input tokens", " `inputs` tokens"];
/// Words of providers that count the answer, too, if nothing more exact is said.
const WITH_ANSWER: &[&str] = &["you requested about ", "you requested "];
/// Room for the answer that a window has to hold as well.
const ANSWER_BEFORE: &[&str] = &[" in the completion", " in the output", " `max_new_tokens`"];

/// Reads an overflow from a failure; `None`: it is not about the length of the request, in tokens.
pub fn read_overflow(failure: &Failure) -> Option<ContextOverflow> {
    if classify(failure).class != FailureClass::ContextTooLong {
        return None;
    }
    let (text, details) = (failure.message.to_lowercase(), &failure.details);
    let said = summed(&text).or_else(|| in_a_minute(&text)).unwrap_or_else(|| in_words(&text, failure.status));
    let is_sane = |it: &u64| (LEAST..=MOST).contains(it);
    let window = details.window.or(said.window).filter(is_sane);
    // A count that would have fit is one of something else.
    let fits = |it: u64| window.is_some_and(|window| it <= window);
    let size = details.size.or(said.size).filter(|it| is_sane(it) && !fits(*it));
    Some(ContextOverflow { window, size })
}

/// Request and answer together: `exceed context limit: 188240 + 21333 > 200000`.
fn summed(text: &str) -> Option<ContextOverflow> {
    let (_, rest) = text.split_once("context limit: ")?;
    let (request, rest) = rest.split_once(" + ")?;
    let (answer, window) = rest.split_once(" > ")?;
    let window = number(window)?.checked_sub(number(answer)?)?;
    Some(ContextOverflow { window: Some(window), size: number(request) })
}

/// More than a limit by the minute holds: no request can be larger than that.
fn in_a_minute(text: &str) -> Option<ContextOverflow> {
    let (_, rest) = text.split_once("request too large for")?;
    Some(ContextOverflow { window: after(rest, "limit "), size: after(rest, "requested ") })
}

fn in_words(text: &str, status: Option<u16>) -> ContextOverflow {
    let behind = |marks: &[&str]| marks.iter().find_map(|it| after(text, it));
    let in_front = |marks: &[&str]| marks.iter().find_map(|it| before(text, it));
    let window = behind(WINDOW).or_else(|| in_front(WINDOW_BEFORE));
    // What is named as the most for the input has no room for the answer in it.
    let answer = in_front(ANSWER_BEFORE).unwrap_or_default();
    let window = window.map(|it| it.saturating_sub(answer));
    let size = behind(SIZE).or_else(|| in_front(SIZE_BEFORE)).or_else(|| behind(WITH_ANSWER));
    if window.is_some() { ContextOverflow { window, size } } else { by_numbers(text, status) }
}

/// Without words that are known: of two counts the larger one is the request; a single one is a limit where it says so.
fn by_numbers(text: &str, status: Option<u16>) -> ContextOverflow {
    let is_count = |it: &NumberInText<'_>| {
        let other = OTHER_UNITS.iter().any(|unit| it.after.trim_start().starts_with(unit));
        let is_status = status.is_some_and(|status| it.value == u64::from(status));
        (LEAST..=MOST).contains(&it.value) && !other && !is_status && !it.before.ends_with("by ")
    };
    let mut found: Vec<NumberInText<'_>> = numbers(text).filter(is_count).collect();
    found.sort_by_key(|it| it.value);
    found.dedup_by_key(|it| it.value);
    match &*found {
        [window, size] => ContextOverflow { window: Some(window.value), size: Some(size.value) },
        [one] => {
            let is_limit = LIMIT.iter().any(|it| one.before.trim_end_matches([' ', '[', '1', ',']).ends_with(it));
            ContextOverflow { window: is_limit.then_some(one.value), size: None }
        }
        _ => ContextOverflow::default(),
    }
}

fn after(text: &str, mark: &str) -> Option<u64> {
    text.match_indices(mark).find_map(|(at, _)| number(text.get(at + mark.len()..)?))
}

fn before(text: &str, mark: &str) -> Option<u64> {
    text.match_indices(mark).find_map(|(at, _)| {
        let words = text.get(..at)?;
        let (start, _) = words.char_indices().rev().take_while(|(_, it)| is_of_number(*it)).last()?;
        number(words.get(start..)?)
    })
}

/// The number that a text begins with: `8192`, `8,192`.
fn number(text: &str) -> Option<u64> {
    let end = text.find(|it: char| !is_of_number(it)).unwrap_or(text.len());
    let digits: String = text.get(..end)?.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn is_of_number(it: char) -> bool {
    it.is_ascii_digit() || it == ','
}

#[cfg(test)]
mod tests {
    use super::{ContextOverflow, read_overflow};
    use castor_base::model::{Details, Failure, FailureKind};

    fn refused(message: &str) -> Failure {
        Failure { status: Some(400), ..Failure::new(FailureKind::Status, message) }
    }

    /// Whole answers are in `tests/it/failures.txt`.
    #[test]
    fn each_provider_has_its_words() {
        for (message, window, size) in [
            ("This model's maximum context length is 8,192 tokens.", Some(8_192), None),
            (
                "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in \
                 the messages, 10000 in the completion). Please reduce the length of the messages or completion.",
                Some(6_384),
                Some(112_946),
            ),
            (
                "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
                Some(178_667),
                Some(188_240),
            ),
            ("Request too large for m on tokens per min: Limit 30000, Requested 60000.", Some(30_000), Some(60_000)),
            ("Prompt is too long: 9 tokens > 8 maximum", None, None),
            ("maximum context length is 8192 tokens, input length (100)", Some(8_192), None),
            ("maximum context length is 99999999999999999999 tokens", None, None),
            ("Your input exceeds the context window of this model.", None, None),
            ("the input token count is 9000 but model only supports up to 8000. Reduce it", Some(8_000), Some(9_000)),
            ("maximum prompt length is 131072 but the request contains 537812 tokens", Some(131_072), Some(537_812)),
            ("request exceeded model token limit: 262144 (requested: 291351)", Some(262_144), Some(291_351)),
            ("prompt token count of 148303 exceeds the limit of 128000", Some(128_000), Some(148_303)),
            ("<400> InvalidParameter: Range of input length should be [1, 98304]", Some(98_304), None),
            ("invalid params, context window exceeds limit (2013)", None, None),
            (
                "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512 `max_new_tokens`",
                Some(7_681),
                Some(9_000),
            ),
            ("`inputs` must have less than 4096 tokens. Given: 5000", Some(4_096), Some(5_000)),
            ("prompt too long; exceeded max context length by 1234 tokens", None, None),
            ("Request body too large for gpt-4o model. Max size: 8000 tokens.", Some(8_000), None),
        ] {
            assert_eq!(read_overflow(&refused(message)), Some(ContextOverflow { window, size }), "{message}");
        }
    }

    #[test]
    fn what_is_counted_in_bytes_says_nothing() {
        let large = Failure { status: Some(413), ..refused("Too large") };
        assert_eq!([read_overflow(&large), read_overflow(&refused("Odd"))], [None, None]);
        let words = vec!["exceed_context_size_error".to_owned()];
        let details = Details { words, window: Some(4_096), size: Some(5_000), ..Details::default() };
        let large = Failure { details: details.into(), ..large };
        assert_eq!(read_overflow(&large), Some(ContextOverflow { window: Some(4_096), size: Some(5_000) }));
    }
}
