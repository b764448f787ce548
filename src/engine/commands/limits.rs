//! The slash command `/limits`: shows and sets the limits of turns and session.

use crate::{
    record::Step,
    turn::{self, Spec},
};
use castor_base::{
    limits::{LimitSpan, LimitUsage, Limits, UnknownLimit},
    log::Fact,
};

pub fn run(step: &mut Step<'_>, spec: &Spec, args: &str) -> String {
    let limits = match args {
        "" => return shown(step, spec),
        "default" => None,
        text => match changed(turn::limits(step.record, spec), text) {
            Ok(it) => Some(it),
            Err(why) => return why.to_string(),
        },
    };
    step.log(Fact::Limits { limits });
    format!("The limits are `{}` now.", turn::limits(step.record, spec))
}

/// What is named is set, what is not stays; `none` takes all of them away.
fn changed(now: Limits, text: &str) -> Result<Limits, UnknownLimit> {
    let new = Limits::parse(text)?;
    if new.is_none() {
        return Ok(new);
    }
    Limits::parse(&format!("{now} {new}"))
}

fn shown(step: &Step<'_>, spec: &Spec) -> String {
    let in_words = |LimitUsage { requests, tokens, ms, cost }: LimitUsage| {
        format!("{requests} model calls, {tokens} tokens, {} s, {}", ms / 1000, cost.in_words())
    };
    format!(
        "- Limits: `{}`\n- Configured: `{}`\n- This session used {}.\n\n`/limits requests=20 session.cost=5` sets some, \
         `/limits none` takes them away, `/limits default` goes back to the settings.",
        turn::limits(step.record, spec),
        spec.bounds.limits,
        in_words(step.record.limit_usage(LimitSpan::Session))
    )
}
