//! How nodes, deltas and manifests are written: plain little-endian bytes in frames with a checksum.

use ring::digest::{SHA256, digest};

use super::node::{Hash, Kind, Mark, Node, RelPath, Why};
use crate::base::ids::{CheckpointId, SessionId};

/// A call, or a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub session: SessionId,
    pub id: CheckpointId,
}

/// Who changed something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nobody that castor knows.
    User,
    /// The calls that were running; more than one: nobody knows which.
    Calls(Vec<Call>),
    /// As `Calls`, but castor was stopped meanwhile: or the user, after that.
    Stopped(Vec<Call>),
    /// Nobody: what is held and what is not was decided anew.
    Rules,
}

/// What became of one path.
#[derive(Clone, Debug)]
pub struct Change {
    pub path: RelPath,
    pub old: Option<Node>,
    pub new: Option<Node>,
}

/// What changed between two looks at a root.
#[derive(Clone, Debug)]
pub struct Delta {
    pub seq: u64,
    /// Seconds since 1970.
    pub at: i64,
    pub cause: Cause,
    pub changes: Vec<Change>,
}

impl Delta {
    pub fn calls(&self) -> &[Call] {
        match &self.cause {
            Cause::Calls(it) | Cause::Stopped(it) => it,
            Cause::User | Cause::Rules => &[],
        }
    }
}

const CHECK: usize = 8;

/// A frame: how long, the beginning of its hash, the bytes.
pub fn frame(payload: &[u8]) -> Vec<u8> {
    let mut res = Vec::with_capacity(payload.len() + 16);
    res.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    res.extend(digest(&SHA256, payload).as_ref().iter().take(CHECK));
    res.extend_from_slice(payload);
    res
}

/// The payload at the start of `bytes`, and what follows it; `None`: it is torn.
pub fn unframe(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<8>()?;
    let (check, rest) = rest.split_first_chunk::<CHECK>()?;
    let (payload, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    digest(&SHA256, payload).as_ref().starts_with(check).then_some((payload, rest))
}

#[derive(Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn u8(&mut self, it: u8) {
        self.0.push(it);
    }

    pub fn u64(&mut self, it: u64) {
        self.0.extend_from_slice(&it.to_le_bytes());
    }

    pub fn bytes(&mut self, it: &[u8]) {
        self.0.extend_from_slice(&(it.len() as u32).to_le_bytes());
        self.0.extend_from_slice(it);
    }

    fn time(&mut self, it: (i64, u32)) {
        self.u64(it.0.cast_unsigned());
        self.0.extend_from_slice(&it.1.to_le_bytes());
    }

    pub fn node(&mut self, node: &Node) {
        let why = |it: Why| match it {
            Why::Big => 3,
            Why::Full => 4,
            Why::Unreadable => 5,
            Why::Special => 6,
            Why::Exempt => 7,
        };
        match &node.kind {
            Kind::File(hash) => {
                self.u8(0);
                self.0.extend_from_slice(hash);
            }
            Kind::Dir => self.u8(1),
            Kind::Link(to) => {
                self.u8(2);
                self.bytes(to);
            }
            Kind::Skipped(it) => self.u8(why(*it)),
        }
        self.0.extend_from_slice(&node.mode.to_le_bytes());
        self.u8(u8::from(node.young));
        self.u64(node.mark.size);
        self.time(node.mark.mtime);
        self.time(node.mark.ctime);
        self.u64(node.mark.ino);
    }

    pub fn maybe_node(&mut self, node: Option<&Node>) {
        self.u8(u8::from(node.is_some()));
        if let Some(it) = node {
            self.node(it);
        }
    }

    pub fn change(&mut self, change: &Change) {
        self.bytes(&change.path);
        self.maybe_node(change.old.as_ref());
        self.maybe_node(change.new.as_ref());
    }

    pub fn changes(&mut self, changes: &[Change]) {
        self.u64(changes.len() as u64);
        changes.iter().for_each(|it| self.change(it));
    }

    pub fn delta(&mut self, delta: &Delta) {
        self.u64(delta.seq);
        self.u64(delta.at.cast_unsigned());
        self.u8(match delta.cause {
            Cause::User => 0,
            Cause::Calls(_) => 1,
            Cause::Stopped(_) => 2,
            Cause::Rules => 3,
        });
        self.u64(delta.calls().len() as u64);
        for call in delta.calls() {
            self.bytes(call.session.as_str().as_bytes());
            self.bytes(call.id.as_str().as_bytes());
        }
        self.changes(&delta.changes);
    }
}

pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[it]| it)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.array().map(u32::from_le_bytes)?;
        let (head, rest) = self.0.split_at_checked(len as usize)?;
        self.0 = rest;
        Some(head)
    }

    pub fn text(&mut self) -> Option<&'a str> {
        str::from_utf8(self.bytes()?).ok()
    }

    fn time(&mut self) -> Option<(i64, u32)> {
        Some((self.u64()?.cast_signed(), self.array().map(u32::from_le_bytes)?))
    }

    pub fn node(&mut self) -> Option<Node> {
        let kind = match self.u8()? {
            0 => Kind::File(self.array::<32>()? as Hash),
            1 => Kind::Dir,
            2 => Kind::Link(self.bytes()?.into()),
            3 => Kind::Skipped(Why::Big),
            4 => Kind::Skipped(Why::Full),
            5 => Kind::Skipped(Why::Unreadable),
            6 => Kind::Skipped(Why::Special),
            7 => Kind::Skipped(Why::Exempt),
            _ => return None,
        };
        let mode = self.array().map(u16::from_le_bytes)?;
        let young = self.u8()? != 0;
        let mark = Mark { size: self.u64()?, mtime: self.time()?, ctime: self.time()?, ino: self.u64()? };
        Some(Node { kind, mode, mark, young })
    }

    pub fn maybe_node(&mut self) -> Option<Option<Node>> {
        match self.u8()? {
            0 => Some(None),
            _ => self.node().map(Some),
        }
    }

    pub fn changes(&mut self) -> Option<Vec<Change>> {
        let n = self.u64()?;
        let mut res = Vec::new();
        for _ in 0..n {
            res.push(Change { path: self.bytes()?.into(), old: self.maybe_node()?, new: self.maybe_node()? });
        }
        Some(res)
    }

    pub fn delta(&mut self) -> Option<Delta> {
        let (seq, at, cause, n) = (self.u64()?, self.u64()?.cast_signed(), self.u8()?, self.u64()?);
        let mut calls = Vec::new();
        for _ in 0..n {
            calls.push(Call { session: self.text()?.into(), id: self.text()?.into() });
        }
        let cause = match cause {
            0 => Cause::User,
            1 => Cause::Calls(calls),
            2 => Cause::Stopped(calls),
            3 => Cause::Rules,
            _ => return None,
        };
        Some(Delta { seq, at, cause, changes: self.changes()? })
    }
}
