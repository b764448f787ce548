//! The slash command `/stats`: tokens, calls and money of a session.

use crate::record::{CallTally, SpentTokens};

pub fn stats(spent: &SpentTokens) -> String {
    let total = spent.total();
    let usage = total.usage;
    let hits = total.hit_rate().map(|it| format!("; {it} %")).unwrap_or_default();
    let mut text = format!(
        "- Model calls: {}\n- Tokens in: {} (of these from a cache: {}{hits})\n- Tokens out: {}, thoughts: {}\n",
        total.n_calls, usage.input, usage.cached, usage.output, usage.thought
    );
    if let Some((last, size)) = spent.last {
        text += &format!("- Context: {} of {size} tokens\n", last.total);
    }
    if let Some(cost) = in_words(&total) {
        text += &format!("- Cost: {cost}\n");
    }
    for ((purpose, model), tally) in &spent.by_model {
        text += &format!("- `{model}` ({}): {}\n", purpose.as_str(), line(tally));
    }
    text
}

fn line(tally: &CallTally) -> String {
    let usage = tally.usage;
    let calls = if tally.n_calls == 1 { "1 call".to_owned() } else { format!("{} calls", tally.n_calls) };
    let hits = tally.hit_rate().map(|it| format!(" ({it} % cached)")).unwrap_or_default();
    let cost = in_words(tally).map(|it| format!(", {it}")).unwrap_or_default();
    format!("{calls}, in {}{hits}, out {}, thoughts {}{cost}", usage.input, usage.output, usage.thought)
}

/// `None` where no price is known: nothing is guessed.
fn in_words(tally: &CallTally) -> Option<String> {
    let cost = tally.cost.in_words();
    match tally.n_calls.saturating_sub(tally.n_priced) {
        _ if tally.n_priced == 0 => None,
        0 => Some(cost),
        n => Some(format!("{cost}, and {n} of {} calls without a known price", tally.n_calls)),
    }
}
