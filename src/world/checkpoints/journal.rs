//! What a restore is about to do in one root, on the disk before it does it: after a crash it is done, or taken back.

use std::io;

use super::{
    codec::{Reader, Writer, frame, unframe},
    node::Hash,
    plan::Step,
    refs::RefStep,
    store::Store,
};
use crate::base::ids::{CheckpointId, SessionId};

#[derive(Clone, Debug)]
pub struct Journal {
    pub session: SessionId,
    pub id: CheckpointId,
    pub steps: Vec<Step>,
    pub refs: Vec<RefStep>,
}

const NAME: &[u8] = b"journal";

impl Journal {
    pub fn write(&self, store: &Store) -> io::Result<()> {
        let mut out = Writer::default();
        out.bytes(self.session.as_str().as_bytes());
        out.bytes(self.id.as_str().as_bytes());
        out.u64(self.steps.len() as u64);
        for step in &self.steps {
            out.bytes(&step.path);
            out.maybe_node(step.now.as_ref());
            out.maybe_node(step.to.as_ref());
        }
        out.u64(self.refs.len() as u64);
        for step in &self.refs {
            out.bytes(&step.dir);
            out.bytes(&step.name);
            for value in [&step.now, &step.to] {
                out.u8(u8::from(value.is_some()));
                out.bytes(value.as_deref().unwrap_or_default());
            }
        }
        store.dir.replace(NAME, &frame(&out.0), true)
    }

    /// `None`: no restore was under way.
    pub fn read(store: &Store) -> io::Result<Option<Self>> {
        let bytes = store.dir.read(NAME)?;
        Ok(bytes.as_deref().and_then(unframe).and_then(|it| Self::decode(it.0)))
    }

    pub fn remove(store: &Store) -> io::Result<()> {
        super::fault::step("journal: remove")?;
        super::beneath::remove(store.dir.fd(), NAME).map(drop)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Reader(bytes);
        let (session, id, n) = (input.text()?.into(), input.text()?.into(), input.u64()?);
        let (mut steps, mut refs) = (Vec::new(), Vec::new());
        for _ in 0..n {
            steps.push(Step { path: input.bytes()?.into(), now: input.maybe_node()?, to: input.maybe_node()? });
        }
        for _ in 0..input.u64()? {
            let (dir, name) = (input.bytes()?.into(), input.bytes()?.to_vec());
            let (now, to) = (value(&mut input)?, value(&mut input)?);
            refs.push(RefStep { dir, name, now, to });
        }
        Some(Self { session, id, steps, refs })
    }

    /// The other way round.
    pub fn reversed(&self) -> Self {
        let back = |it: &Step| Step { path: it.path.clone(), now: it.to.clone(), to: it.now.clone() };
        let back_ref = |it: &RefStep| RefStep { now: it.to.clone(), to: it.now.clone(), ..it.clone() };
        let (steps, refs) = (self.steps.iter().map(back).collect(), self.refs.iter().rev().map(back_ref).collect());
        Self { session: self.session.clone(), id: self.id.clone(), steps, refs }
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.refs.is_empty()
    }

    /// The contents that it needs.
    pub fn hashes(&self) -> Vec<Hash> {
        let to = self.steps.iter().filter_map(|it| it.to.as_ref()?.hash());
        let mut res: Vec<Hash> = to.copied().collect();
        res.sort_unstable();
        res.dedup();
        res
    }
}

fn value(input: &mut Reader) -> Option<Option<Vec<u8>>> {
    let (is_some, bytes) = (input.u8()?, input.bytes()?);
    Some((is_some != 0).then(|| bytes.to_vec()))
}
