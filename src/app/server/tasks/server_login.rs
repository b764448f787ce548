//! The task of a login at an MCP server, or of the end of one.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use super::jobs::ServerLogin;
use crate::{
    app::{panics, server::event::Event},
    base::{
        ids::{EffectId, SessionId},
        server_order::ServerVerb,
    },
    engine::step::Input,
    world::mcp::auth,
};

/// Answers as `Effect::ManageServer` says, unless nobody wants it any more.
pub async fn run(
    (session, effect): (SessionId, EffectId),
    login: ServerLogin,
    cancel: CancellationToken,
    events: Sender<Event>,
) {
    let ServerLogin { order, target, page } = login;
    let tell = async |input: Input| _ = events.send(Event::Engine { session: session.clone(), input }).await;
    let act = async {
        match order.verb {
            ServerVerb::Logout => auth::log_out(&target).await.map(|it| it.in_words()),
            _ => {
                let show = async |url: String| tell(Input::ServerPage { effect, url, page: page.clone() }).await;
                auth::log_in(&target, show).await.map(|()| "You are logged in".to_owned())
            }
        }
    };
    let ended = cancel.run_until_cancelled(AssertUnwindSafe(act).catch_unwind()).await;
    let result = match ended {
        None => return,
        Some(Ok(it)) => it.map_err(|it| it.to_string()),
        Some(Err(panic)) => Err(panics::panic_message(&*panic)),
    };
    tell(Input::ServerManaged { effect, order: Box::new(order), result }).await;
}
