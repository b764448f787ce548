//! The list of resources as a model reads it: what servers say, marked as theirs.

use serde_json::Value;

use castor_base::{
    content::Part,
    server_offer::{ServerOffer, ServerResource},
    text::{self, wrap_untrusted},
    tool::{ToolError, ToolOutput},
};

/// The most of a list that a model reads, in bytes.
const MAX_LIST: usize = 24 * 1024;

/// Of all `servers` that have some, or of the one that `args` names.
pub fn describe_resources<'a>(args: &Value, servers: impl Iterator<Item = (&'a str, &'a ServerOffer)>) -> ToolOutput {
    let wanted = args.get("server").and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty());
    let having = servers.filter(|it| it.1.has_resources && wanted.is_none_or(|name| name == it.0));
    let (mut lines, mut n_listed, mut n_left_out) = (String::new(), 0, 0);
    let mut is_found = false;
    for (name, offer) in having {
        is_found = true;
        let of_server = format!("Server {:?}:\n", text::first_line(name, 100));
        let templates = offer.templates.iter().map(|it| (it, " (template)"));
        let listed = offer.resources.iter().map(|it| (it, "")).chain(templates).map(|(it, what)| line(it, what));
        let mut next = of_server;
        for it in listed {
            if lines.len() + next.len() + it.len() > MAX_LIST {
                n_left_out += 1;
                continue;
            }
            next += &it;
            n_listed += 1;
        }
        lines += &next;
    }
    if !is_found {
        let why = match wanted {
            Some(name) => format!("No connected server {name:?} has resources."),
            None => "No connected server has resources.".to_owned(),
        };
        return ToolOutput::failed(ToolError::new("mcp_resource_error", why));
    }
    let mut content: Vec<Part> = wrap_untrusted(&lines).map(Part::text).into_iter().collect();
    if n_left_out > 0 {
        content.push(Part::text(format!("{n_left_out} more are left out: name one `server`.")));
    }
    ToolOutput { content, summary: Some(format!("Listed {n_listed} resource(s)")), ..ToolOutput::default() }
}

fn line(it: &ServerResource, what: &str) -> String {
    let said = [&it.name, &it.description].map(|it| text::first_line(it, 200));
    let mime = it.mime.as_ref().map(|it| format!(" [{}]", text::first_line(it, 100))).unwrap_or_default();
    let said: Vec<String> = said.into_iter().filter(|it| !it.is_empty()).collect();
    match said.is_empty() {
        true => format!("- {}{what}{mime}\n", it.uri),
        false => format!("- {}{what}{mime}: {}\n", it.uri, said.join(": ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::describe_resources;
    use castor_base::{
        content::joined_text,
        server_offer::{ServerOffer, ServerResource},
    };

    fn offer(n: usize) -> ServerOffer {
        let resource = |n: usize| ServerResource {
            uri: format!("x:{n}"),
            name: "N".to_owned(),
            description: "d".repeat(n),
            mime: (n == 1).then(|| "text/plain".to_owned()),
        };
        ServerOffer {
            has_resources: true,
            resources: (0..n).map(resource).collect(),
            templates: vec![ServerResource { uri: "x:{n}".into(), ..resource(0) }],
            ..ServerOffer::default()
        }
    }

    fn check(args: Value, servers: &[(&str, &ServerOffer)], expected: &str) {
        let it = describe_resources(&args, servers.iter().copied());
        let said = it.error.map_or_else(|| joined_text(&it.content), |it| it.message);
        assert_eq!(said, expected, "{args}");
    }

    #[test]
    fn a_list_names_servers_and_has_an_end() {
        let (two, none) = (offer(2), ServerOffer::default());
        let servers = [("a", &two), ("none", &none)];
        let list = "<untrusted_context>\nServer \"a\":\n- x:0: N\n- x:1 [text/plain]: N: d\n- x:{n} (template): N\n\
                    </untrusted_context>";
        check(json!({}), &servers, list);
        check(json!({"server": "a"}), &servers, list);
        check(json!({"server": "none"}), &servers, "No connected server \"none\" has resources.");
        check(json!({}), &servers[1..], "No connected server has resources.");
        let many = offer(1_000);
        let said = joined_text(&describe_resources(&json!({}), [("a", &many)].into_iter()).content);
        assert!(said.len() < 26_000 && said.contains(" more are left out: name one `server`."), "{}", said.len());
    }
}
