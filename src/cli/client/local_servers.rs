//! Local model servers, found by their usual ports. `castor run` names them and never uses them by itself.

use std::time::Duration;

use futures_util::future::join_all;

use castor_hands::http::is_open;

/// Their providers and ports.
pub const SERVERS: &[(&str, u16)] = &[("ollama", 11_434), ("llamacpp", 8_080)];
/// The time limit for all of them in parallel, since absent servers cost time.
const WITHIN: Duration = Duration::from_millis(50);

/// A line for each one that is there, with the flag that uses it.
pub async fn server_notes(servers: &[(&str, u16)]) -> Vec<String> {
    let looks = servers.iter().map(|(name, port)| async move {
        let note = || {
            format!("a server answers on port {port}: --model {name}/NAME uses it, `castor models {name}` lists names")
        };
        is_open(*port, WITHIN).await.then(note)
    });
    join_all(looks).await.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::server_notes;

    #[tokio::test]
    async fn only_who_is_there_is_named() {
        let here = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ports = [here.local_addr().unwrap().port(), gone.local_addr().unwrap().port()];
        drop(gone);
        let expected = format!(
            "a server answers on port {}: --model ollama/NAME uses it, `castor models ollama` lists names",
            ports[0]
        );
        assert_eq!(server_notes(&[("ollama", ports[0]), ("llamacpp", ports[1])]).await, [expected]);
        assert_eq!(server_notes(&[]).await, [""; 0]);
    }
}
