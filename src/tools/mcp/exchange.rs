//! A request to a server until its answer: progress, silence, cancellation, and what the server needs before it answers.

use std::time::Duration;

use rmcp::{
    RoleClient,
    model::{ClientRequest, ProgressNotificationParam, ServerResult},
    service::{PeerRequestOptions, RequestHandle, ServiceError},
};
use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout};

use super::{
    call::{Connection, Patience},
    connection::ServerLink,
    error::NoAnswer,
    output::result_json,
    required_input::{GivenInput, RequiredInput, required_input},
    required_page::required_pages,
};
use castor_base::text;

/// Progress is shown no more often than this.
const SHOW_EVERY: Duration = Duration::from_millis(200);
/// One report of progress, in characters.
const MAX_PROGRESS: usize = 500;
/// For the model.
const NOT_DONE: &str =
    "the user was sent to a page of the server, and is not done there; make the call again when they are";
/// How often one request is made while the server wants something first.
const MAX_ROUNDS: usize = 8;
/// A server that does not read must not hold up a cancel.
const CANCELLING: Duration = Duration::from_millis(500);

/// What a server needs before it answers.
enum Needed {
    Pages(Vec<Value>),
    Input(RequiredInput),
}

impl Needed {
    fn of(answer: &Result<ServerResult, ServiceError>) -> Option<Self> {
        match answer {
            Ok(result) => required_input(&result_json(result)).map(Self::Input),
            Err(ServiceError::McpError(it)) => required_pages(it).map(Self::Pages),
            Err(_) => None,
        }
    }
}

impl Connection {
    /// A server that needs the user on a page first, or an answer, has not done what it was asked: after that it is asked
    /// once more. `line` knows afterwards why it is gone.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(super) async fn exchange(
        &self,
        line: &mut ServerLink,
        request: &ClientRequest,
        patience: &Patience<'_>,
    ) -> Result<Value, NoAnswer> {
        let (mut given, mut was_on_page) = (GivenInput::default(), false);
        for _ in 0..MAX_ROUNDS {
            // A page changes nothing of the request.
            let request = std::mem::take(&mut given).add_to(request.clone());
            let answer = self.send_once(line, request, patience).await?;
            let (Some(needed), Some(asking)) = (Needed::of(&answer), &self.asking) else {
                return answer.map(|it| result_json(&it)).map_err(NoAnswer::Failed);
            };
            let provided = match needed {
                Needed::Pages(_) if was_on_page => Err(NOT_DONE.to_owned()),
                Needed::Pages(pages) => asking.visit(&pages, patience.cancel).await.map(|()| was_on_page = true),
                Needed::Input(it) => {
                    asking.provide(it, &self.roots, patience.cancel).await.map(|provided| given = provided)
                }
            };
            if patience.cancel.is_cancelled() {
                return Err(NoAnswer::Cancelled);
            }
            provided.map_err(NoAnswer::Unprovided)?;
        }
        Err(NoAnswer::Unprovided("it wants more input again and again".to_owned()))
    }

    /// The inner result is the server's.
    async fn send_once(
        &self,
        line: &mut ServerLink,
        request: ClientRequest,
        patience: &Patience<'_>,
    ) -> Result<Result<ServerResult, ServiceError>, NoAnswer> {
        // Before the request: a report that comes at once must not be missed.
        let mut reports = self.progress.subscribe();
        let mut asks = self.open_questions.clone();
        let peer = line.peer(patience.cancel).await?;
        let sending = peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let mut handle = match patience.cancel.run_until_cancelled(sending).await {
            Some(Ok(it)) => it,
            Some(Err(it)) => return Ok(Err(it)),
            None => return Err(NoAnswer::Cancelled),
        };
        let mut deadline = Instant::now() + patience.silence;
        let mut next_show = Instant::now();
        loop {
            // People take the time they need.
            let asks_somebody = *asks.borrow_and_update() > 0;
            tokio::select! {
                biased;
                () = patience.cancel.cancelled() => return Err(cancel(handle, NoAnswer::Cancelled).await),
                answer = &mut handle.rx => return Ok(answer.unwrap_or(Err(ServiceError::TransportClosed))),
                Ok(()) = asks.changed() => deadline = Instant::now() + patience.silence,
                () = sleep_until(deadline), if !asks_somebody => {
                    return Err(cancel(handle, NoAnswer::Silent(patience.silence.as_secs_f64())).await);
                }
                Ok(report) = reports.recv() => {
                    if report.progress_token != handle.progress_token {
                        continue;
                    }
                    deadline = Instant::now() + patience.silence;
                    if let Some(show) = patience.show.filter(|_| next_show <= Instant::now()) {
                        next_show = Instant::now() + SHOW_EVERY;
                        show(progress_text(&report)).await;
                    }
                }
            }
        }
    }
}

async fn cancel(handle: RequestHandle<RoleClient>, why: NoAnswer) -> NoAnswer {
    _ = timeout(CANCELLING, handle.cancel(Some(why.to_string()))).await;
    why
}

fn progress_text(it: &ProgressNotificationParam) -> String {
    let count = match it.total {
        Some(total) => format!("{}/{total}", it.progress),
        None => it.progress.to_string(),
    };
    match it.message.as_deref().map(|it| text::first_line(it, MAX_PROGRESS)) {
        Some(message) if !message.is_empty() => format!("[{count}] {message}\n"),
        _ => format!("[{count}]\n"),
    }
}
