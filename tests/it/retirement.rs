//! Models that are switched off, by a table of models in castor's home: who is asked, and what the user is told.

use std::{fs, process::Output};

use jiff::{Timestamp, ToSpan, civil::Date, tz::TimeZone};
use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, answers, says},
};

fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date()
}

fn in_days(n: i64) -> Date {
    today().checked_add(n.days()).unwrap()
}

/// A table of today, whose default was switched off behind its back, and models that go at other times.
fn table() -> String {
    let row = |id: &str, more: &str| format!("[[model]]\nid = \"{id}\"\nfamily = \"f\"\nsource = \"x\"\n{more}\n");
    let ends = |on: Date| format!("retires = \"{on}\"\nsuccessor = \"new\"");
    let alias = "[[alias]]\nname = \"small\"\nmodel = \"soon\"\n[[alias]]\nname = \"auto-old\"\nmodel = \"new\"\nwas = [\"gone\"]\n";
    let rows =
        [row("new", "confirmed = false"), row("soon", &ends(in_days(9))), row("gone", &ends(in_days(-9)))].concat();
    format!("date = \"{}\"\ndefault = \"new\"\noffered = [\"new\"]\n{alias}[family.f]\n{rows}", today())
}

struct Bed {
    sandbox: Sandbox,
    server: ModelServer,
}

impl Bed {
    fn new(table: &str) -> Self {
        let server = ModelServer::answering(|_| Some(says("Hello.")));
        let mut sandbox = Sandbox::new();
        sandbox.write("home/.castor/models.toml", table);
        sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
        sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
        Self { sandbox, server }
    }

    /// What is said in the first turn of a session with this model, and which one was asked.
    fn prompt(&mut self, model: Option<&str>) -> (String, String) {
        self.sandbox.args =
            ["acp"].into_iter().chain(model.into_iter().flat_map(|it| ["--model", it])).map(Into::into).collect();
        let mut client = Client::start(&self.sandbox);
        client.initialize(&json!({})).unwrap();
        let session = client.new_session(&self.sandbox.workspace()).unwrap();
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
        let (answer, said) = client.call("session/prompt", params).unwrap();
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        let head = self.server.asked().last().unwrap().head.clone();
        let asked = head.split("/models/").nth(1).and_then(|it| it.split(':').next()).unwrap().to_owned();
        (asked, json!(said).to_string())
    }

    fn castor(&mut self, args: &[&str]) -> Output {
        self.sandbox.args = args.iter().copied().map(Into::into).collect();
        self.sandbox.command().output().unwrap()
    }
}

#[test]
fn the_user_hears_of_models_that_are_switched_off() {
    let mut bed = Bed::new(&table());
    let (asked, said) = bed.prompt(None);
    assert!(asked == "new" && !said.contains("switched off"), "{asked} {said}");
    // What is named in full goes out as it is named, in each session with a word.
    for _ in 0..2 {
        let (asked, said) = bed.prompt(Some("gone"));
        let words = format!("gone was switched off on {}. castor asks for it all the same", in_days(-9));
        assert!(asked == "gone" && said.contains(&words) && said.contains("`/model new`"), "{asked} {said}");
    }
    // Soon: once a day, whatever the session.
    let (asked, said) = bed.prompt(Some("soon"));
    let words = format!("soon will be switched off on {}, in 9 days. Its successor is new", in_days(9));
    assert!(asked == "soon" && said.contains(&words), "{asked} {said}");
    let (asked, said) = bed.prompt(Some("soon"));
    assert!(asked == "soon" && !said.contains("switched off"), "{asked} {said}");
    let (asked, said) = bed.prompt(Some("auto-old"));
    assert!(asked == "new" && said.contains("auto-old is an old name: it stood for gone (switched off on"), "{said}");
}

/// The default and names of castor's own move on by themselves.
#[test]
fn the_default_and_names_lead_to_what_is_served() {
    let moved = table().replace(&in_days(9).to_string(), &today().to_string());
    // A table made when all of it was served.
    let made = in_days(-1).max("2026-11-28".parse().unwrap());
    let moved = moved.replacen(&format!("date = \"{}\"", today()), &format!("date = \"{made}\""), 1);
    let moved = moved.replace("default = \"new\"", "default = \"soon\"").replace("offered = [\"new\"]", "");
    if made >= today() {
        // On the day of castor's own table no older one counts.
        return;
    }
    let mut bed = Bed::new(&moved);
    let (asked, said) = bed.prompt(None);
    let words = format!("castor's default model is new now: soon was switched off on {}.", today());
    assert!(asked == "new" && said.contains(&words), "{asked} {said}");
    let (asked, said) = bed.prompt(Some("small"));
    assert!(asked == "new" && said.contains("small leads to new now: soon was switched off on"), "{asked} {said}");
}

#[test]
fn a_newer_table_is_read_from_a_file_or_an_address() {
    let mut bed = Bed::new("no table");
    let kept = bed.sandbox.home().join(".castor/models.toml");
    let text = |it: &Output| String::from_utf8_lossy(&it.stdout).into_owned() + &String::from_utf8_lossy(&it.stderr);
    let file = |bed: &Bed, name: &str, text: &str| bed.sandbox.write(name, text).display().to_string();
    let page = ModelServer::start(vec![answers("200 OK", &table()), answers("404 Not Found", "")]);
    let good = file(&bed, "good.toml", &table());
    for (source, code, words) in [
        (file(&bed, "bad.toml", "date = 1"), 42, "no table of models"),
        (file(&bed, "old.toml", &table().replacen(&today().to_string(), "2020-01-01", 1)), 42, "is newer"),
        ("missing.toml".to_owned(), 42, "Nothing was changed"),
        ("http://127.0.0.1:9/x".to_owned(), 1, "Nothing was changed"),
    ] {
        let it = bed.castor(&["models", "update", &source]);
        assert!(it.status.code() == Some(code) && text(&it).contains(words), "{source}: {}", text(&it));
        assert_eq!(fs::read_to_string(&kept).unwrap(), "no table", "{source}");
    }
    for source in [good, format!("{}/models.toml", page.url)] {
        let it = bed.castor(&["models", "update", &source]);
        assert!(it.status.success() && text(&it).contains("3 rows of"), "{source}: {}", text(&it));
        assert_eq!(fs::read_to_string(&kept).unwrap(), table());
        fs::write(&kept, "no table").unwrap();
    }
    let it = bed.castor(&["models", "update", &format!("{}/gone.toml", page.url)]);
    assert!(it.status.code() == Some(1) && text(&it).contains("status 404"), "{}", text(&it));
}

#[test]
fn castor_models_says_the_age_of_what_it_knows() {
    let list = json!({"models": [
        {"name": "models/gone", "supportedGenerationMethods": ["generateContent"]}, {"name": "models/new"}]});
    let server = ModelServer::answering(move |_| Some(answers("200 OK", &list.to_string())));
    let mut bed = Bed::new(&table());
    bed.sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    let it = bed.castor(&["models", "gemini"]);
    let (out, err) = (String::from_utf8_lossy(&it.stdout), String::from_utf8_lossy(&it.stderr));
    assert!(out.contains(&format!("until {}, then new", in_days(-9))), "{out}");
    assert!(out.lines().any(|it| it.starts_with("new ") && it.ends_with("  unconfirmed")), "{out}");
    assert!(err.contains("no page of a maker confirms new."), "{err}");
    assert!(err.contains(&format!("3 rows of models, of {}", today())) && err.contains("models.toml"), "{err}");
    let it = bed.castor(&["models", "gemini", "--json"]);
    let json: Value = serde_json::from_slice(&it.stdout).unwrap();
    assert_eq!((&json["known"]["date"], &json["known"]["rows"]), (&json!(today().to_string()), &json!(3)));
    assert_eq!(json["providers"][0]["models"][0]["successor"], "new");
}
