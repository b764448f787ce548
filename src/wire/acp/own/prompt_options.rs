//! Options of one prompt (`_meta.castor` of session/prompt), and the extension method `_castor/session/update`.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::SessionConfigOptionValue;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use crate::acp::{
    options::{ChosenOptions, LIMITS, MODE, MODEL, OfferedOptions, OptionChoice, SetOptionParams},
    own::host_tools::{ToolResultParams, read_results},
};
use castor_base::{
    content::HostResult,
    host_tools::{HostExecution, HostTool},
    ids::SessionId,
    limits::Limits,
    prompt_options::{AnswerForm, PromptModel, PromptOptions},
};

/// Largest schema of an answer, in bytes.
const MAX_SCHEMA: usize = 64 << 10;
/// Longest title, in characters.
const MAX_TITLE: usize = 200;

/// What holds for one prompt alone, in place of what the session has.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PromptOptionsParams {
    /// The id of one of the session's modes.
    mode: Option<String>,
    /// The id of one of the session's models.
    model: Option<String>,
    /// As the option `limits`: what it names is set, the rest is as in the session.
    limits: Option<String>,
    /// Names: the only ones of the session's tools that the model and its sub-agents have. Declarations: tools that the
    /// client runs, beside those.
    #[schemars(with = "Option<Vec<PromptTool>>")]
    tools: Option<Vec<Value>>,
    /// Which calls the client runs.
    host_tool_execution: Option<HostExecution>,
    /// True: questions of the turn may have fields, though the client did not declare `elicitation.form`.
    forms: Option<bool>,
    /// What the last answer has to look like: a JSON Schema, for providers that hold models to one. The prompt itself has
    /// to ask for it.
    answer_schema: Option<Map<String, Value>>,
    /// True: the prompt asks for nothing but an answer that fits `answerSchema`, so that no tool is needed.
    answer_only: Option<bool>,
    /// True: the prompt is empty, and the model continues where the last turn failed.
    resume: Option<bool>,
    /// Of all calls that the prompt before ended with.
    #[schemars(with = "Option<Vec<ToolResultParams>>")]
    tool_results: Option<Vec<Value>>,
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum PromptTool {
    Name(String),
    Declaration(Box<HostTool>),
}

impl PromptOptionsParams {
    /// What of it is on offer. `limits`: those of the session; `has_tool`: whether there is a tool of that name.
    ///
    /// # Errors
    /// Names what is not, and what there is instead.
    pub fn options(
        self,
        (offer, chosen): (&OfferedOptions, &ChosenOptions),
        limits: Limits,
        has_tool: impl Fn(&str) -> bool,
    ) -> Result<PromptOptions, String> {
        let wrong = |why: String| format!("_meta.castor: {why}");
        let mut res = PromptOptions::default();
        for (option, value) in [(MODE, self.mode), (MODEL, self.model)] {
            let Some(value) = value else { continue };
            let value = SessionConfigOptionValue::ValueId { value: value.into() };
            match SetOptionParams::new(SessionId::from(""), option, value).choice(offer, chosen).map_err(wrong)? {
                OptionChoice::Mode(mode) => res.mode = Some(mode),
                OptionChoice::Model(name) => res.model = Some(PromptModel { name, window: 0 }),
                _ => (),
            }
        }
        if let Some(text) = self.limits {
            let new = Limits::parse(&text).map_err(|it| wrong(format!("{LIMITS}: {it}")))?;
            let all = if new.is_none() { new } else { Limits::parse(&format!("{limits} {new}")).unwrap_or(new) };
            res.limits = Some(all);
        }
        (res.tools, res.host.tools) = prompt_tools(self.tools, has_tool).map_err(wrong)?;
        res.host.execution = self.host_tool_execution;
        res.forms = self.forms == Some(true);
        res.host.check().map_err(wrong)?;
        res.answer = answer_form(self.answer_schema, self.answer_only == Some(true)).map_err(wrong)?;
        Ok(res)
    }

    /// Whether the prompt says nothing new.
    pub fn resumes(&self) -> bool {
        self.resume == Some(true)
    }

    /// The results that the prompt brings.
    ///
    /// # Errors
    /// Names the call whose result is not usable.
    pub fn take_results(&mut self) -> Result<Vec<HostResult>, String> {
        let results = self.tool_results.take().unwrap_or_default();
        read_results(results).map_err(|it| format!("_meta.castor: {it}"))
    }
}

fn answer_form(schema: Option<Map<String, Value>>, is_alone: bool) -> Result<Option<AnswerForm>, String> {
    let Some(schema) = schema.map(Value::Object) else {
        return if is_alone { Err("answerOnly: send `answerSchema` with it".to_owned()) } else { Ok(None) };
    };
    if schema.to_string().len() > MAX_SCHEMA {
        return Err(format!("answerSchema: it has more than {MAX_SCHEMA} bytes; send a shorter one"));
    }
    Ok(Some(AnswerForm { schema: schema.into(), is_alone }))
}

/// Which of the session's tools there are, and which come with the prompt. Declared ones alone take none away.
fn prompt_tools(
    tools: Option<Vec<Value>>,
    has_tool: impl Fn(&str) -> bool,
) -> Result<(Option<Vec<String>>, Vec<HostTool>), String> {
    let Some(tools) = tools else { return Ok((None, Vec::new())) };
    let (mut names, mut declared) = (Vec::new(), Vec::new());
    for tool in tools {
        match tool {
            Value::String(name) => names.push(name),
            it @ Value::Object(_) => {
                declared.push(serde_json::from_value::<HostTool>(it).map_err(|it| format!("tools: {it}"))?)
            }
            _ => return Err("tools: send names of tools and declarations".to_owned()),
        }
    }
    if let Some(unknown) = names.iter().find(|it| !has_tool(it)) {
        return Err(format!("tools: the session has no tool {unknown:?}; name those that it has"));
    }
    let is_list = !names.is_empty() || declared.is_empty();
    names.extend(declared.iter().map(|it| it.name.clone()));
    Ok((is_list.then_some(names), declared))
}

/// Reads `_meta.castor` of a prompt.
///
/// # Errors
/// One line that names what is wrong.
pub fn read_prompt_options(meta: Option<Map<String, Value>>) -> Result<PromptOptionsParams, String> {
    match meta.and_then(|mut it| it.remove("castor")) {
        None => Ok(PromptOptionsParams::default()),
        Some(own) => serde_json::from_value(own).map_err(|it| crate::acp::params_error(&format!("_meta.castor: {it}"))),
    }
}

/// What a client changes of a session.
#[derive(Debug)]
pub struct UpdateParams {
    pub session: SessionId,
    pub title: Option<String>,
    options: Vec<SetOptionParams>,
    pub skills: BTreeMap<String, bool>,
}

/// Changes title, options and skills of a session: all of it, or nothing.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct UpdateMethod {
    params: Option<Params>,
    result: Option<Updated>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "written as that of session/set_config_option")]
struct Updated {
    /// All options, as in the answer to session/set_config_option.
    config_options: Vec<Map<String, Value>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "OfUpdate")]
struct Params {
    session_id: SessionId,
    #[schemars(length(min = 1, max = MAX_TITLE))]
    title: Option<String>,
    /// As the option `model`.
    model: Option<String>,
    /// Options by their ids.
    config: Option<BTreeMap<String, OptionParam>>,
    /// Skills by their names: whether the model may ask for them in this session.
    #[serde(default)]
    skills: BTreeMap<String, bool>,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum OptionParam {
    Flag(bool),
    Id(String),
}

/// Reads `_castor/session/update`.
///
/// # Errors
/// See [`crate::acp::params`]; also for a title that is none.
pub fn read_update(params: Option<&RawValue>) -> Result<UpdateParams, String> {
    let Params { session_id: session, title, model, config, skills, .. } = crate::acp::params(params)?;
    let is_title =
        |it: &String| !it.trim().is_empty() && it.chars().count() <= MAX_TITLE && !it.contains(char::is_control);
    if title.as_ref().is_some_and(|it| !is_title(it)) {
        return Err(format!("title: send one line of 1 to {MAX_TITLE} characters"));
    }
    let value = |it: OptionParam| match it {
        OptionParam::Flag(value) => SessionConfigOptionValue::Boolean { value },
        OptionParam::Id(value) => SessionConfigOptionValue::ValueId { value: value.into() },
    };
    let model = model.map(|it| (MODEL.to_owned(), OptionParam::Id(it)));
    let all = config.into_iter().flatten().chain(model);
    let options = all.map(|(option, it)| SetOptionParams::new(session.clone(), &option, value(it))).collect();
    Ok(UpdateParams { session, title, options, skills })
}

impl UpdateParams {
    /// What it asks for, if all of it is on offer.
    ///
    /// # Errors
    /// Names what there is instead.
    pub fn choices(&self, offer: &OfferedOptions, chosen: &ChosenOptions) -> Result<Vec<OptionChoice>, String> {
        let mut chosen = chosen.clone();
        let mut res = Vec::new();
        for it in &self.options {
            let choice = it.choice(offer, &chosen)?;
            // Two of them are parts of one choice.
            if let OptionChoice::Tuning(tuning) = &choice {
                chosen.tuning = *tuning;
            }
            res.push(choice);
        }
        Ok(res)
    }
}
