//! The slash command `/hooks`: lists the hooks, and switches them for the session.

use crate::{hooks::Hooks, record::Step, turn::Spec};
use castor_base::{
    hook::{Hook, HookSource, HookSwitch},
    log::Fact,
    text,
};

pub fn hooks(step: &mut Step<'_>, spec: &Spec, args: &str) -> String {
    let all = &spec.toolbox.hooks;
    if all.is_empty() {
        return "No hooks are configured. Add some to `hooks` of the settings.".to_owned();
    }
    let (verb, name) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
    let to = match verb {
        "" | "list" | "panel" => return all.all().map(|it| hook_in_words(it, all, step)).collect(),
        "enable" | "enable-all" => HookSwitch::On,
        "disable" | "disable-all" => HookSwitch::Off,
        _ => {
            return "`/hooks` lists the hooks, `/hooks enable NAME` and `/hooks disable NAME` switch one, or `all`."
                .into();
        }
    };
    let everyone = verb.ends_with("-all") || name.trim() == "all";
    // An interceptor is the client's matter.
    let mut keys: Vec<String> = all.all().filter(|it| !it.is_of_client()).map(|it| it.key().to_owned()).collect();
    keys.retain(|it| everyone || it == name.trim());
    keys.dedup();
    if keys.is_empty() {
        return format!("There is no hook `{}`; `/hooks` lists them.", text::first_line(name, 100));
    }
    let n = keys.len();
    keys.into_iter().for_each(|hook| step.log(Fact::HookSwitched { hook, to }));
    let what = if to == HookSwitch::On { "on" } else { "off" };
    match n {
        1 => format!("It is {what} in this session."),
        n => format!("{n} hooks are {what} in this session."),
    }
}

fn hook_in_words(hook: &Hook, all: &Hooks, step: &Step<'_>) -> String {
    let standing = all.check_enabled(hook.key(), &step.record.switches).err().unwrap_or("on");
    let matcher = hook.matcher.as_ref().map(|it| format!(" `{}`", text::first_line(it, 100))).unwrap_or_default();
    let whose = match hook.source {
        HookSource::User => "",
        HookSource::Project => ", of the workspace",
        HookSource::Extension => ", of an extension",
        HookSource::Client => ", of your client",
    };
    let about = hook.description.as_ref().map(|it| format!(": {}", text::first_line(it, 200))).unwrap_or_default();
    let (event, name) = (hook.event.as_str(), text::first_line(hook.key(), 200));
    format!("- {event}{matcher}: `{name}`{whose}, {standing}{about}\n")
}
