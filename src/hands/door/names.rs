//! The resolver within a sandbox: it looks up nothing, and gives each name an address by which the door knows it again. Pure.

use std::net::{IpAddr, Ipv4Addr};

use castor_base::network::Host;

/// Of [`super::inside::NAMES_NETWORK`].
const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 0);
/// The names of one command.
const MAX_NAMES: usize = 4096;
const HEAD: usize = 12;
/// "The name that stands behind the head."
const SAME_NAME: [u8; 2] = [0xc0, 12];
const OF_VERSION_4: u16 = 1;
const IN_SECONDS: u32 = 60;
const NO_SUCH_NAME: u8 = 3;
const NOT_DONE: u8 = 4;

/// Names, each at the next address.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<String>);

/// The answer to a query.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub bytes: Vec<u8>,
    /// The name of another machine that was looked up.
    pub name: Option<String>,
}

impl Names {
    /// The address of a name; `None`: there are too many.
    pub fn address(&mut self, name: &str) -> Option<Ipv4Addr> {
        let known = self.0.iter().position(|it| it == name);
        let n = known.or_else(|| (self.0.len() < MAX_NAMES).then_some(self.0.len()))?;
        if n == self.0.len() {
            self.0.push(name.to_owned());
        }
        Some(Ipv4Addr::from(u32::from(FIRST) + u32::try_from(n).ok()?))
    }

    pub fn find(&self, address: IpAddr) -> Option<Host> {
        let IpAddr::V4(it) = address else { return None };
        let n = u32::from(it).checked_sub(FIRST.into())?;
        self.0.get(usize::try_from(n).ok()?).cloned().map(Host::Name)
    }

    /// What a query gets; `None`: it is none.
    pub fn reply(&mut self, query: &[u8]) -> Option<Reply> {
        let (head, rest) = query.split_first_chunk::<HEAD>()?;
        // Not an answer, a plain query, one question.
        if head[2] & 0xf8 != 0 || [head[4], head[5]] != [0, 1] {
            return None;
        }
        let (name, length) = read_name(rest)?;
        let (kind, _) = rest.get(length..length + 4)?.split_first_chunk::<2>()?;
        let question = rest.get(..length + 4)?;
        let (address, code, wanted) = match (Host::parse(&name), u16::from_be_bytes(*kind)) {
            (Some(it), kind) if it.is_localhost() => ((kind == OF_VERSION_4).then_some(Ipv4Addr::LOCALHOST), 0, None),
            (Some(Host::Name(name)), OF_VERSION_4) if name.contains('.') => match self.address(&name) {
                Some(it) => (Some(it), 0, Some(name)),
                None => (None, NOT_DONE, None),
            },
            (Some(Host::Name(name)), _) if name.contains('.') && !name.ends_with(".arpa") => (None, 0, Some(name)),
            _ => (None, NO_SUCH_NAME, None),
        };
        let answers = u8::from(address.is_some());
        // An answer, recursion as it was wished and on offer.
        let mut bytes = vec![head[0], head[1], 0x80 | head[2] & 1, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0];
        bytes.extend(question);
        if let Some(it) = address {
            // An address, of the internet.
            bytes.extend(SAME_NAME);
            bytes.extend([0, 1, 0, 1]);
            bytes.extend(IN_SECONDS.to_be_bytes());
            bytes.extend([0, 4]);
            bytes.extend(it.octets());
        }
        Some(Reply { bytes, name: wanted })
    }
}

/// A name in dots, and how many bytes it has.
fn read_name(bytes: &[u8]) -> Option<(String, usize)> {
    let (mut labels, mut at) = (Vec::new(), 0);
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        match length {
            0 => return Some((labels.join("."), at)),
            1..=63 => labels.push(std::str::from_utf8(bytes.get(at..at + length)?).ok()?.to_owned()),
            // A pointer: no question has one.
            _ => return None,
        }
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::Names;
    use castor_base::network::Host;

    fn query(name: &str, kind: u8) -> Vec<u8> {
        let labels = name.split('.').filter(|it| !it.is_empty());
        let name: Vec<u8> = labels.flat_map(|it| [&[it.len() as u8], it.as_bytes()].concat()).collect();
        [&[7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0], name.as_slice(), &[0, 0, kind, 0, 1]].concat()
    }

    #[test]
    fn each_name_has_an_address_that_leads_back() {
        let mut names = Names::default();
        let mut ask = |name: &str, kind: u8| {
            let reply = names.reply(&query(name, kind)).unwrap();
            let end = reply.bytes[reply.bytes.len() - 4..].to_vec();
            assert_eq!(reply.bytes[..2], [7, 9]);
            (reply.bytes[3] & 15, (reply.bytes[7] == 1).then_some(end), reply.name)
        };
        let name = |it: &str| Some(it.to_owned());
        assert_eq!(ask("Example.com", 1), (0, Some(vec![198, 18, 1, 0]), name("example.com")));
        assert_eq!(ask("b.example.com", 1), (0, Some(vec![198, 18, 1, 1]), name("b.example.com")));
        assert_eq!(ask("example.COM", 1), (0, Some(vec![198, 18, 1, 0]), name("example.com")));
        assert_eq!(ask("example.com", 28), (0, None, name("example.com")));
        assert_eq!(ask("secret.evil.org", 16), (0, None, name("secret.evil.org")));
        assert_eq!(ask("localhost", 1), (0, Some(vec![127, 0, 0, 1]), None));
        assert_eq!(ask("a.localhost", 1), (0, Some(vec![127, 0, 0, 1]), None));
        assert_eq!(ask("1.0.0.127.in-addr.arpa", 12), (3, None, None));
        assert_eq!(ask("myhost", 1), (3, None, None));
        assert_eq!(names.find("198.18.1.1".parse().unwrap()), Some(Host::Name("b.example.com".to_owned())));
        assert_eq!(names.find("198.18.1.2".parse().unwrap()), None);
    }

    #[test]
    fn what_is_no_query_gets_no_reply() {
        let mut names = Names::default();
        let whole = query("a.com", 1);
        for n in 0..whole.len() {
            assert_eq!(names.reply(&whole[..n]), None, "{n}");
        }
        let with = |at: usize, byte: u8| {
            let mut it = whole.clone();
            it[at] = byte;
            it
        };
        for no in [with(2, 0x81), with(5, 2), with(12, 0xc0), with(12, 64)] {
            assert_eq!(names.reply(&no), None, "{no:?}");
        }
        for n in 0..5000 {
            let reply = names.reply(&query(&format!("{n}.evil.org"), 1)).unwrap();
            assert_eq!(reply.bytes[7] == 1, n < super::MAX_NAMES, "{n}");
        }
    }
}
