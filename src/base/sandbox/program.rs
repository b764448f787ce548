//! Sandbox settings of one program that castor starts by itself: a hook, a server, a checker or an agent.

use serde_json::Value;

/// What the user's settings say of the sandbox of one program. Without a word it has the rights of its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramSandbox {
    /// The user wants it outside, while nothing that it names was written by an agent and not looked at.
    pub is_off: bool,
    /// `None`: as its kind has it.
    pub network: Option<bool>,
    /// More folders that it may write: absolute, or below `~/`.
    pub writable: Vec<String>,
    /// Credentials that it may read, written so as well.
    pub readable: Vec<String>,
    /// Sockets of other programs that it may use.
    pub sockets: Vec<String>,
}

impl ProgramSandbox {
    /// The keys of the object that settings have.
    pub const KEYS: &[&str] = &["network", "writable", "readable", "sockets"];

    /// Reads the value of a key `sandbox`; absent is as `true`.
    ///
    /// # Errors
    /// What is wrong with it, in words behind the key: then the program has the rights of its kind.
    pub fn read(value: Option<&Value>) -> Result<Self, String> {
        let all = match value {
            None | Some(Value::Null | Value::Bool(true)) => return Ok(Self::default()),
            Some(Value::Bool(false)) => return Ok(Self { is_off: true, ..Self::default() }),
            Some(Value::Object(all)) => all,
            Some(_) => return Err("should be true, false or an object {…}; ignored".to_owned()),
        };
        if let Some(odd) = all.keys().find(|it| !Self::KEYS.contains(&it.as_str())) {
            return Err(format!("{odd:?} is none of {}; ignored", Self::KEYS.join(", ")));
        }
        let network = match all.get("network") {
            None => None,
            Some(it) => Some(it.as_bool().ok_or("network should be true or false; ignored")?),
        };
        let paths = |key: &str| match all.get(key) {
            None => Ok(Vec::new()),
            Some(it) => {
                let texts = it.as_array().map(|all| all.iter().map(|it| it.as_str().map(str::to_owned)).collect());
                texts.flatten().ok_or_else(|| format!("{key} should be a list of paths; ignored"))
            }
        };
        let (writable, readable, sockets) = (paths("writable")?, paths("readable")?, paths("sockets")?);
        Ok(Self { is_off: false, network, writable, readable, sockets })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::ProgramSandbox;

    #[test]
    fn settings_widen_by_known_keys_alone() {
        let check = |value: Value, want: &str| {
            let said = match ProgramSandbox::read(Some(&value)) {
                Ok(it) => {
                    format!("{} {:?} {:?} {:?} {:?}", it.is_off, it.network, it.writable, it.readable, it.sockets)
                }
                Err(why) => why,
            };
            assert_eq!(said, want, "{value}");
        };
        check(json!(true), "false None [] [] []");
        check(json!(false), "true None [] [] []");
        check(
            json!({"network": true, "writable": ["~/a"], "readable": ["/b"], "sockets": ["/c"]}),
            r#"false Some(true) ["~/a"] ["/b"] ["/c"]"#,
        );
        check(json!({"network": false}), "false Some(false) [] [] []");
        check(json!({"netwrok": true}), "\"netwrok\" is none of network, writable, readable, sockets; ignored");
        check(json!({"network": "yes"}), "network should be true or false; ignored");
        check(json!({"sockets": "/c"}), "sockets should be a list of paths; ignored");
        check(json!({"writable": [1]}), "writable should be a list of paths; ignored");
        check(json!("off"), "should be true, false or an object {…}; ignored");
        assert_eq!(ProgramSandbox::read(None), Ok(ProgramSandbox::default()));
    }
}
