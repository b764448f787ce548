//! The words of a full context window: which refusals speak of a request that is too long, and of how many tokens.

/// The thing that is too long by a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLong {
    /// The conversation, in tokens.
    Tokens,
    /// The body of the request, in bytes or characters.
    Bytes,
}

/// Codes of providers for a full window, without their signs between words: they stand in fields and in running text.
const CODES: &[&str] = &[
    "contextlengthexceed",
    "contextwindowexceed",
    "contextsizeexceed",
    "exceedcontextsize",
    "maxprompttokensexceed",
    "tokenslimitreached",
    "prompttoolong",
    "inputtoolong",
    "requestoutgrown",
];
/// castor's own: a refused request was far larger than any that was taken, and the refusal may be about its length.
pub const OUTGROWN: &str = "request_outgrown";
/// More than a minute's limit allows at once: no attempt can work.
const MORE_THAN_A_MINUTE: &str = "request too large for";
/// Words of limits by time or money, which are no window, and of limits that castor itself set.
const OTHER_LIMITS: &[&str] = &[
    "per min",
    "per day",
    "per hour",
    "per second",
    "per month",
    "per-min",
    "(tpm)",
    "rate limit",
    "rate_limit",
    "quota",
    "throttl",
    "too many requests",
    "please wait",
    "try again later",
    "credit",
    "api key",
];
/// A window, whatever else a sentence speaks of.
const WINDOW: &[&str] =
    &["context length", "context window", "context size", "context limit", "model length", "sequence length", "上下文"];
const INPUT: &[&str] = &["prompt", "input", "message", "conversation", "request", "history", "token", "输入"];
const LENGTH: &[&str] = &["token", "length", "long", "超长", "长度"];
const EXCESS: &[&str] = &[
    "exceed",
    "too long",
    "too large",
    "too many",
    "longer than",
    "larger than",
    "greater than",
    "more than",
    "beyond",
    "over the",
    "overflow",
    "reached",
    "maximum",
    "max ",
    "limit",
    "at most",
    "is only",
    "of only",
    "only supports",
    "must be less",
    "must have less",
    "must be <",
    "should be [",
    "reduce",
    "shorten",
    " > ",
    "超",
];
/// Sentences about other things that can be too long or too many.
const OTHER_THINGS: &[&str] = &[
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "maxoutputtokens",
    "output token",
    "completion token",
    "budget",
    "temperature",
    "top_p",
    "top_k",
    "stop",
    "tool",
    "function",
    "schema",
    "description",
    "metadata",
    "array too long",
    "string should have",
    "string too long",
    "input should",
    "input tag",
    "cache_control",
    "min_total_token",
];
const MEDIA: &[&str] = &["image", "audio", "video", "pdf", "document", "file", "attachment", "page"];
const OF_BYTES: &[&str] =
    &[" bytes", " kb", " mb", "payload", "entity too large", "body", "maximum size", "content length"];
/// A text that is longer than this, in characters, is no name and no id.
const LONG_TEXT: u64 = 100_000;

/// The thing that is too long by the words of a refusal; `None`: it is about something else. `words`: its codes and
/// types.
pub fn read_words(message: &str, words: &[String]) -> Option<TooLong> {
    let text = message.to_lowercase();
    let has_code = |text: &str| {
        let letters: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
        CODES.iter().any(|it| letters.contains(it))
    };
    if text.contains(MORE_THAN_A_MINUTE) || has_code(&text) || words.iter().any(|it| has_code(&it.to_lowercase())) {
        return Some(TooLong::Tokens);
    }
    if has(&text, OTHER_LIMITS) {
        return None;
    }
    // The text of a message, not a name or an id.
    if text.contains("string too long") {
        return numbers(&text).any(|it| it.value >= LONG_TEXT).then_some(TooLong::Bytes);
    }
    let found: Vec<TooLong> = sentences(&text).filter_map(read_sentence).collect();
    found.iter().find(|it| **it == TooLong::Tokens).or_else(|| found.first()).copied()
}

/// Tells whether a refusal may be about length at all, in words that nobody has seen.
pub fn may_be_length(message: &str) -> bool {
    let text = message.to_lowercase();
    let speaks = |it: &str| has(it, EXCESS) && (has(it, INPUT) || it.contains("context") || has(it, LENGTH));
    !has(&text, OTHER_LIMITS) && !has(&text, OTHER_THINGS) && sentences(&text).any(|it| speaks(it) && !has(it, MEDIA))
}

/// The largest body that a refusal names, in bytes; `None`: it names none.
pub fn read_byte_limit(message: &str) -> Option<u64> {
    let text = message.to_lowercase();
    let in_bytes = |it: NumberInText<'_>| {
        let unit = it.after.trim_start();
        let scale = [("bytes", 1), ("kb", 1 << 10), ("kib", 1 << 10), ("mb", 1 << 20), ("mib", 1 << 20)];
        let (_, scale) = scale.iter().find(|(name, _)| unit.starts_with(name))?;
        it.value.checked_mul(*scale)
    };
    // Behind the size of the request or alone: the smaller one.
    numbers(&text).filter_map(in_bytes).min()
}

fn read_sentence(it: &str) -> Option<TooLong> {
    let exceeds = has(it, EXCESS);
    if has(it, WINDOW) && (exceeds || it.contains(" but ")) {
        return Some(TooLong::Tokens);
    }
    if !exceeds {
        return None;
    }
    // Who limits request and answer together names both, the request first.
    let input = it.find("input").or_else(|| it.find("prompt"));
    let other = OTHER_THINGS.iter().filter_map(|other| it.find(other)).min();
    let is_other = other.is_some_and(|other| !(it.contains('+') && input.is_some_and(|input| input < other)));
    if is_other {
        return None;
    }
    let of_media = has(it, MEDIA);
    if has(it, OF_BYTES) {
        return (!of_media && (has(it, INPUT) || it.contains("payload") || it.contains("entity")))
            .then_some(TooLong::Bytes);
    }
    let of_length = has(it, INPUT) && has(it, LENGTH);
    (of_length && (!of_media || it.contains("token"))).then_some(TooLong::Tokens)
}

fn has(text: &str, parts: &[&str]) -> bool {
    parts.iter().any(|it| text.contains(it))
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split(". ").flat_map(|it| it.split(['\n', ';'])).filter(|it| !it.trim().is_empty())
}

/// A number of a text that belongs to no name, with what stands around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberInText<'a> {
    pub value: u64,
    pub before: &'a str,
    pub after: &'a str,
}

/// `8192`, `8,192`; not the digits of `model-4.5-128k`.
pub fn numbers(text: &str) -> impl Iterator<Item = NumberInText<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let begin = at + text.get(at..)?.find(|it: char| it.is_ascii_digit())?;
            let rest = text.get(begin..)?;
            let len = rest.find(|it: char| !it.is_ascii_digit() && it != ',').unwrap_or(rest.len());
            let len = rest.get(..len)?.trim_end_matches(',').len();
            at = begin + len;
            let (before, after) = (text.get(..begin)?, text.get(at..)?);
            let joins = |it: char| it.is_alphanumeric() || matches!(it, '-' | '_' | '.' | '/' | '#');
            let is_name = before.chars().next_back().is_some_and(joins)
                || after.chars().next().is_some_and(|it| it.is_alphanumeric() || matches!(it, '-' | '_' | '/'));
            let digits: String = rest.get(..len)?.chars().filter(char::is_ascii_digit).collect();
            if let Some(value) = digits.parse().ok().filter(|_| !is_name) {
                return Some(NumberInText { value, before, after });
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{TooLong, may_be_length, numbers, read_byte_limit, read_words};

    const TOKENS: Option<TooLong> = Some(TooLong::Tokens);
    const BYTES: Option<TooLong> = Some(TooLong::Bytes);

    #[test]
    fn full_windows_are_known_in_each_providers_words() {
        for message in [
            // OpenAI and Azure.
            "This model's maximum context length is 8,192 tokens. However, your messages resulted in 9000 tokens.",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
            "Request too large for m on tokens per min (TPM): Limit 30000, Requested 60000.",
            // Anthropic, Bedrock.
            "prompt is too long: 213462 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
            "Input is too long for requested model.",
            "The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
            "ValidationException: 1 validation error detected: Value at 'inputText' failed to satisfy constraint: too many input tokens. Max input tokens: 8192, request input token count: 9000",
            // Gemini, Vertex.
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
            "Unable to submit request because the input token count is 9000 but model only supports up to 8000. Reduce the input token count and try again.",
            // xAI, Moonshot, Copilot.
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
            "prompt token count of 148303 exceeds the limit of 128000",
            // DashScope, Zhipu, MiniMax, Baidu, Volcengine, SiliconFlow.
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
            "Prompt exceeds max length",
            "Prompt 超长",
            "invalid params, context window exceeds limit (2013)",
            "输入长度超过模型上限",
            "the max length of current question is 7200, prompt tokens too long",
            "Total tokens of image and text exceed max message tokens. Request id: 0217",
            "Input length 140000 exceeds the maximum length 131072.",
            "length of prompt_tokens (40000) must be less than max_seq_len (32768).",
            // Together and TGI, Fireworks, Cohere, Cerebras, Groq, Mistral, DeepSeek.
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512 `max_new_tokens`",
            "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
            "The input (300 tokens) is longer than the model's context length (200 tokens).",
            "The prompt is too long: 132092, model maximum context length: 131071",
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter prompt",
            "Please reduce the length of the messages or completion. Current length is 9273 while limit is 8192",
            "Please reduce the length of the messages or completion.",
            "Prompt contains 70000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            // OpenRouter, LiteLLM, GitHub.
            "This endpoint's maximum context length is 32768 tokens. However, you requested about 40010 tokens (30000 of text input, 10010 in the output).",
            "Input length exceeds maximum allowed input length of 131072 tokens.",
            "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: mock. Received Model Group=m",
            "The input exceeds the model's maximum context limit of 8192 tokens.",
            "Request body too large for gpt-4o model. Max size: 8000 tokens.",
            // vLLM, SGLang, llama.cpp, Ollama, LM Studio and other local servers.
            "The decoder prompt (length 163840) is longer than the maximum model length of 131072. Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens. For image inputs, it depends.",
            "Requested token count exceeds the model's maximum context length of 131072 tokens.",
            "Requested tokens (33000) exceed context window of 32768",
            "the request exceeds the available context size, try increasing it",
            "prompt too long; exceeded max context length by 1234 tokens",
            "Trying to keep the first 5846 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
            "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length",
            "Context size has been exceeded.",
            "Prompt has 32769 tokens, but the configured context size is 32768 tokens",
            "Prompt exceeds maximum context length",
            "token limit exceeded for this model",
        ] {
            assert_eq!(read_words(message, &[]), TOKENS, "{message}");
        }
        let codes = "context_length_exceeded model_context_window_exceeded model_max_prompt_tokens_exceeded \
                     exceed_context_size_error tokens_limit_reached CONTEXT_WINDOW_EXCEEDED request_outgrown";
        for code in codes.split(' ') {
            assert_eq!(read_words("No.", &[code.to_owned()]), TOKENS, "{code}");
        }
    }

    #[test]
    fn bodies_that_are_too_large_are_known() {
        for message in [
            "Request payload size exceeds the limit: 20971520 bytes.",
            "Request Entity Too Large",
            "Request exceeds the maximum size",
            "request entity too large",
            "The request body is too large. Maximum size is 4 MB.",
            "Invalid 'input[3].content': string too long. Expected a string with maximum length 10485760, but got a string with length 11000000 instead.",
        ] {
            assert_eq!(read_words(message, &[]), BYTES, "{message}");
        }
    }

    #[test]
    fn limits_of_bytes_are_read() {
        for (message, limit) in [
            ("Request payload size exceeds the limit: 20971520 bytes.", Some(20_971_520)),
            ("The request body is too large. Maximum size is 4 MB.", Some(4 << 20)),
            ("Request size 33,000,000 bytes exceeds 32 MB", Some(33_000_000)),
            ("Request exceeds the maximum size", None),
        ] {
            assert_eq!(read_byte_limit(message), limit, "{message}");
        }
    }

    #[test]
    fn other_refusals_are_not_taken_for_it() {
        for message in [
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
            "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20241022",
            "Range of max_tokens should be [1, 8192]",
            "`max_tokens` must be greater than `thinking.budget_tokens`.",
            "thinking.budget_tokens: Input should be greater than or equal to 1024",
            "temperature: Input should be less than or equal to 1",
            "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes",
            "messages.3.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels",
            "Too many images in request: the maximum is 20",
            "A maximum of 100 PDF pages may be provided.",
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 217 instead.",
            "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 9000 instead.",
            "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 53 instead.",
            "Invalid 'input[0].id': string too long. Expected a string with maximum length 64, but got a string with length 410 instead.",
            "tools.0.custom.name: String should have at most 128 characters",
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
            "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000.",
            "This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
            "Too many tokens, please wait before trying again.",
            "You exceeded your current quota, please check your plan and billing details.",
            "Prompt tokens limit exceeded: 12000 > 4096. To increase, visit the page of credits",
            "Incorrect API key provided. You can obtain an API key from the console; the maximum is 5 tokens.",
            "Unsupported parameter: 'temperature' is not supported with this model.",
            "The prompt was flagged as potentially violating our usage policy.",
            "The specified schema produces a constraint that has too many states for serving.",
            "messages: text content blocks must be non-empty",
            "No connected db.",
            "Cached content is too small. total_token_count=500, min_total_token_count=1024",
            "Conversation roles must alternate user/assistant/user/assistant",
            "Invalid value for 'stop': array too long. Expected an array with maximum length 4.",
            "The model `gpt-9` does not exist.",
            "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model.",
        ] {
            assert_eq!(read_words(message, &[]), None, "{message}");
            assert!(!may_be_length(message), "{message}");
        }
    }

    #[test]
    fn unseen_words_may_be_about_length() {
        for message in [
            "Sorry, that conversation is beyond what we accept. Please shorten it.",
            "upstream rejected: prompt larger than allowed",
            "You have reached the maximum for this chat context",
        ] {
            assert!(may_be_length(message), "{message}");
        }
    }

    #[test]
    fn numbers_belong_to_no_name() {
        let found = |text: &'static str| numbers(text).map(|it| it.value).collect::<Vec<_>>();
        let all = [8_192, 9_000, 1, 98_304, 7];
        assert_eq!(found("8,192 tokens, of glm-4.5-128k (9000), [1, 98304] <= 7."), all);
        assert_eq!(found("claude-3-5-sonnet-20241022: no 99999999999999999999 x1 2b"), [0_u64; 0]);
    }
}
