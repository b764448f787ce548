//! The HTTP client of streamable MCP servers: rmcp's, where each event is read as a line of a process is.

use std::{collections::HashMap, sync::Arc};

use futures_util::{StreamExt, stream::BoxStream};
use reqwest::{
    Client, Error,
    header::{HeaderName, HeaderValue},
};
use rmcp::{
    RoleClient,
    model::ClientJsonRpcMessage,
    service::RxJsonRpcMessage,
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::Sse;

use crate::mcp::incoming::IncomingReader;

type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// rmcp passes over an event that it cannot read, and its call would wait without end.
#[derive(Clone)]
pub(in crate::mcp) struct HttpClient {
    client: Client,
    reader: IncomingReader,
}

impl HttpClient {
    pub(in crate::mcp) fn new(client: Client) -> Self {
        Self { client, reader: IncomingReader::default() }
    }

    fn mend_events(&self, events: Events) -> Events {
        let reader = self.reader.clone();
        events.flat_map(move |it| futures_util::stream::iter(mend_event(&reader, it))).boxed()
    }
}

/// The event as it is, if rmcp can read it; else one for each message that the reader makes of it.
fn mend_event(reader: &IncomingReader, event: Result<Sse, SseError>) -> Vec<Result<Sse, SseError>> {
    let Ok(Sse { data: Some(data), .. }) = &event else { return vec![event] };
    if data.is_empty() || serde_json::from_str::<RxJsonRpcMessage<RoleClient>>(data).is_ok() {
        return vec![event];
    }
    let messages = reader.read(data.as_bytes());
    let texts = messages.iter().filter_map(|it| serde_json::to_string(it).ok());
    let (kind, id) = event.map(|it| (it.event, it.id)).unwrap_or_default();
    texts.map(|it| Ok(Sse { event: kind.clone(), data: Some(it), id: id.clone(), retry: None })).collect()
}

impl StreamableHttpClient for HttpClient {
    type Error = Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<Error>> {
        self.reader.note_sent(&message);
        let answer = StreamableHttpClient::post_message(&self.client, uri, message, session, token, headers).await?;
        Ok(match answer {
            StreamableHttpPostResponse::Sse(events, session) => {
                StreamableHttpPostResponse::Sse(self.mend_events(events), session)
            }
            it => it,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), StreamableHttpError<Error>> {
        self.client.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, StreamableHttpError<Error>> {
        let events = self.client.get_stream(uri, session, last_event, token, headers).await?;
        Ok(self.mend_events(events))
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ListToolsRequest, RequestId};
    use sse_stream::Sse;

    use super::{IncomingReader, mend_event};

    fn mended(data: &str) -> Vec<String> {
        let reader = IncomingReader::default();
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::default());
        let sent: ClientJsonRpcMessage = JsonRpcMessage::request(request, RequestId::Number(7));
        reader.note_sent(&sent);
        let event = Sse { event: None, data: Some(data.to_owned()), id: Some("e".to_owned()), retry: None };
        mend_event(&reader, Ok(event)).into_iter().map(|it| it.unwrap().data.unwrap()).collect()
    }

    #[test]
    fn each_event_can_be_read_or_fails_its_call() {
        let whole = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[],"isError":false}}"#;
        assert_eq!(mended(whole), [whole]);
        assert_eq!(mended(""), [""], "the first event of a stream that can be resumed");
        let half = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"cut \ud83c"}]}}"#;
        assert!(mended(half)[0].contains("cut \u{fffd}"), "{:?}", mended(half));
        let broken = mended(r#"{"jsonrpc":"2.0","id":7,"result":{"content":["#);
        assert!(broken[0].contains("cannot be read") && broken[0].contains("\"id\":7"), "{broken:?}");
        assert!(mended("hello").is_empty());
    }
}
