//! Refusals as a table: what a provider says, and what of the request it is about.

use super::{MediaKind, RefusedPart, SentParts, read_refusal};
use castor_base::model::{Details, Failure, FailureKind};

const TOOLS: &[&str] = &["read_file", "replace", "mcp_s_w", "mcp_a.b_c", "glob"];

fn read(status: u16, param: &str, message: &str) -> String {
    let param = (!param.is_empty()).then(|| param.to_owned());
    let details = Details { param, ..Details::default() };
    let failure =
        Failure { status: Some(status), details: details.into(), ..Failure::new(FailureKind::Status, message) };
    let sent = SentParts { tools: TOOLS, media: &[MediaKind::Image, MediaKind::Document] };
    match read_refusal(&failure, sent) {
        None => "-".to_owned(),
        Some(RefusedPart::Tool(at)) => TOOLS[at].to_owned(),
        Some(RefusedPart::Parameter { parameter, lasting }) => {
            format!("{}{}", parameter.as_str(), if lasting { "" } else { " for now" })
        }
        Some(RefusedPart::Media { kind, which }) => format!("{which:?} {}", kind.as_str()),
    }
}

#[test]
fn parameters() {
    for (param, message, expected) in [
        ("temperature", "Unsupported parameter: 'temperature' is not supported with this model.", "temperature"),
        (
            "temperature",
            "Unsupported value: 'temperature' does not support 0.1 with this model. Only the default (1) value is supported.",
            "temperature",
        ),
        ("", "Unsupported parameter: 'temperature' is not supported with this model.", "temperature"),
        ("", "`temperature` is deprecated for this model.", "temperature"),
        ("", "temperature: Input should be less than or equal to 1", "temperature for now"),
        ("", "`top_p` cannot be specified when `temperature` is used", "top_p for now"),
        (
            "",
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
            "temperature for now",
        ),
        ("top_p", "Unsupported parameter: 'top_p' is not supported with this model.", "top_p"),
        ("", "top_k: Extra inputs are not permitted", "top_k"),
        (
            "max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "the name of max_tokens",
        ),
        ("", "Unrecognized request argument supplied: max_completion_tokens", "the name of max_tokens"),
        (
            "max_tokens",
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
            "max_output_tokens for now",
        ),
        (
            "",
            "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-x",
            "max_output_tokens for now",
        ),
        ("reasoning_effort", "Unrecognized request argument supplied: reasoning_effort", "thinking"),
        (
            "reasoning_effort",
            "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. Please use /v1/responses instead.",
            "thinking",
        ),
        (
            "reasoning.effort",
            "Unsupported value: 'minimal' is not supported with the 'm' model. Supported values are: 'low', 'medium', and 'high'.",
            "thinking",
        ),
        ("reasoning.summary", "Your organization must be verified to generate reasoning summaries.", "thoughts"),
        (
            "",
            "Thinking level MINIMAL is not supported for this model. Please retry with other thinking level.",
            "thinking",
        ),
        (
            "",
            "Invalid JSON payload received. Unknown name \"thinkingLevel\" at 'generation_config.thinking_config': Cannot find field.",
            "thinking",
        ),
        (
            "",
            "Unable to submit request because thinking_budget is out of range; supported values are integers from 512 to 24576.",
            "thinking for now",
        ),
        ("", "This model does not support the effort parameter.", "thinking"),
        ("", "adaptive thinking is not supported on this model", "thinking"),
        ("", "thinking.budget_tokens: Input should be greater than or equal to 1024", "thinking for now"),
        ("", "\"m\" does not support thinking", "thinking"),
        ("", "stream_options: Extra inputs are not permitted", "stream_options"),
        (
            "",
            "{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"stream_options\"],\"msg\":\"Extra inputs are not permitted\",\"input\":{\"include_usage\":true}}]}",
            "stream_options",
        ),
        ("", "Unknown parameter: 'stream_options'.", "stream_options"),
        ("store", "Unknown parameter: 'store'.", "store"),
        ("include", "Encrypted content is not supported with this model.", "include"),
        (
            "response_format",
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
            "response_format",
        ),
        ("", "This response_format type is unavailable now", "response_format"),
        ("text.format", "Unsupported parameter: 'text.format' is not supported.", "response_format"),
        ("stop", "Unsupported parameter: 'stop' is not supported with this model.", "stop"),
        ("", "cache_control: Extra inputs are not permitted", "cache_control"),
        (
            "",
            "litellm.UnsupportedParamsError: openai does not support parameters: ['temperature'], for model=m.",
            "temperature",
        ),
        ("", "output_config.effort: unsupported value", "thinking for now"),
        (
            "",
            "Function calling with a response mime type: 'application/json' is unsupported",
            "response_format for now",
        ),
        ("", "Budget 0 is invalid. This model only works in thinking mode.", "thinking for now"),
    ] {
        assert_eq!(read(400, param, message), expected, "{message}");
    }
}

#[test]
fn tools() {
    for (param, message, expected) in [
        (
            "tools[2].function.parameters",
            "Invalid schema for function 'mcp_s_w': In context=('properties', 'l'), array schema missing items.",
            "mcp_s_w",
        ),
        (
            "",
            "tools.2.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'",
            "mcp_s_w",
        ),
        ("", "tools.3.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", "mcp_a.b_c"),
        (
            "",
            "* GenerateContentRequest.tools[0].function_declarations[4].parameters.properties[x].items: missing field.",
            "glob",
        ),
        ("", "functionDeclaration parameters.p schema didn't specify the schema type field for `mcp_s_w`", "mcp_s_w"),
        ("", "Duplicate function declaration found: mcp_s_w", "mcp_s_w"),
        (
            "",
            "{\"detail\":[{\"loc\":[\"body\",\"tools\",2,\"function\",\"parameters\"],\"msg\":\"field required\"}]}",
            "mcp_s_w",
        ),
        ("tools", "Invalid schema for function 'replace': 'None' is not of type 'object'.", "replace"),
        ("", "Please replace the file and call the function again.", "-"),
        ("tools[0].strict", "Unknown parameter: 'tools[0].strict'.", "-"),
        (
            "tools",
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 217 instead.",
            "-",
        ),
        ("", "This model does not support tools.", "-"),
        ("tools[99].name", "Invalid name.", "-"),
        ("messages", "messages with role 'tool' must be a response to a preceding message with 'tool_calls'", "-"),
    ] {
        assert_eq!(read(400, param, message), expected, "{message}");
    }
}

#[test]
fn media() {
    for (status, param, message, expected) in [
        (404, "", "No endpoints found that support image input", "All image"),
        (400, "", "Model does not support images. Please use a model that does.", "All image"),
        (
            500,
            "",
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            "All image",
        ),
        (
            400,
            "messages[0].content[1].image_url",
            "Invalid content type. image_url is only supported by certain models.",
            "All image",
        ),
        (
            400,
            "",
            "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text`",
            "All image",
        ),
        (
            400,
            "",
            "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes",
            "Largest image",
        ),
        (
            400,
            "",
            "messages.3.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels",
            "Largest image",
        ),
        (400, "", "messages.0.content.1.image.source: Could not process image", "Newest image"),
        (400, "input[1].content[1].image_url", "Invalid image data.", "Newest image"),
        (400, "", "Unable to process input image. Please retry.", "Newest image"),
        (
            400,
            "",
            "messages.0.content.1.document.source.base64: A maximum of 100 PDF pages may be provided.",
            "Largest document",
        ),
        (400, "", "This model does not support audio.", "-"),
        (404, "", "No endpoints found that support cache control", "cache_control"),
        (400, "", "At most 0 image(s) may be provided in one request.", "All image"),
        (
            400,
            "",
            "messages.0.content.1.image.source.media_type: Input should be 'image/jpeg', 'image/png'",
            "Newest image",
        ),
        (500, "", "Internal error while an image was made", "-"),
        (400, "", "Imagine: what you said is not allowed.", "-"),
    ] {
        assert_eq!(read(status, param, message), expected, "{message}");
    }
}

#[test]
fn nothing_else_is_left_out() {
    for (status, param, message) in [
        (400, "messages", "Invalid value for 'messages': expected an array."),
        (400, "messages[0].content", "messages: text content blocks must be non-empty"),
        (400, "model", "Invalid value: 'm' is not a valid model."),
        (400, "safety_settings", "safety_settings: invalid category"),
        (400, "", "Invalid value at 'safety_settings[0].threshold'"),
        (400, "", "system: unknown field"),
        (400, "", "The prompt was flagged as potentially violating our usage policy."),
        (400, "", "No connected db."),
        (400, "", "We could not parse the JSON body of your request."),
        (400, "", "Please stop and include what you store; this is not supported."),
        (429, "temperature", "Unsupported parameter: 'temperature'."),
        (401, "", "Unsupported parameter: 'temperature'."),
        (503, "", "'temperature' is not supported"),
        (400, "", "invalid_request: contents is not specified"),
    ] {
        assert_eq!(read(status, param, message), "-", "{message}");
    }
}
