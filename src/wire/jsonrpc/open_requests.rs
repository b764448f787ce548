//! Open requests of both sides: every one is answered exactly once.

use std::collections::BTreeMap;

use crate::jsonrpc::message::RequestId;

/// One request that came in. Ids are the client's and may repeat; tickets never do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Requests that wait for our answer, each with what we remember about it.
#[derive(Debug)]
pub struct IncomingRequests<T> {
    next: u64,
    open: BTreeMap<Ticket, (RequestId, T)>,
}

impl<T> Default for IncomingRequests<T> {
    fn default() -> Self {
        Self { next: 0, open: BTreeMap::new() }
    }
}

impl<T> IncomingRequests<T> {
    pub fn register(&mut self, id: RequestId, about: T) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.open.insert(ticket, (id, about));
        ticket
    }

    /// The caller that gets `Some` answers; `None`: answered before.
    pub fn complete(&mut self, ticket: Ticket) -> Option<(RequestId, T)> {
        self.open.remove(&ticket)
    }

    pub fn get(&self, ticket: Ticket) -> Option<&T> {
        self.open.get(&ticket).map(|(_, about)| about)
    }

    /// As the client named it.
    pub fn id(&self, ticket: Ticket) -> Option<&RequestId> {
        self.open.get(&ticket).map(|(id, _)| id)
    }

    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        self.open.get_mut(&ticket).map(|(_, about)| about)
    }

    /// The open requests that carry this id, oldest first.
    pub fn with_id(&self, id: &RequestId) -> impl Iterator<Item = Ticket> {
        self.open.iter().filter(move |(_, (it, _))| it == id).map(|(ticket, _)| *ticket)
    }

    /// Everything that is still open, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (Ticket, &T)> {
        self.open.iter().map(|(ticket, (_, about))| (*ticket, about))
    }

    /// Takes everything that is still open, oldest first: each must be answered.
    pub fn drain(&mut self) -> impl Iterator<Item = (RequestId, T)> + use<T> {
        std::mem::take(&mut self.open).into_values()
    }

    pub fn len(&self) -> usize {
        self.open.len()
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

/// Requests of ours that wait for the other side, each with what to do then.
#[derive(Debug)]
pub struct OutgoingRequests<T> {
    next: i64,
    open: BTreeMap<i64, T>,
}

impl<T> Default for OutgoingRequests<T> {
    fn default() -> Self {
        Self { next: 1, open: BTreeMap::new() }
    }
}

impl<T> OutgoingRequests<T> {
    /// The id to send. Never used twice.
    pub fn register(&mut self, then: T) -> i64 {
        let id = self.next;
        self.next += 1;
        self.open.insert(id, then);
        id
    }

    /// For an answer that came. `None`: not ours, answered before, or cancelled since; the answer is ignored.
    pub fn settle(&mut self, id: &RequestId) -> Option<T> {
        match id {
            RequestId::Number(id) => self.open.remove(id),
            RequestId::Null | RequestId::Text(_) => None,
        }
    }

    /// Settles without an answer. The caller that gets `Some` tells the other side with `$/cancel_request`.
    pub fn cancel(&mut self, id: i64) -> Option<T> {
        self.open.remove(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (i64, &T)> {
        self.open.iter().map(|(id, then)| (*id, then))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (i64, &mut T)> {
        self.open.iter_mut().map(|(id, then)| (*id, then))
    }

    /// Takes everything that is still open, oldest first: the other side is gone.
    pub fn drain(&mut self) -> impl Iterator<Item = (i64, T)> + use<T> {
        std::mem::take(&mut self.open).into_iter()
    }

    pub fn len(&self) -> usize {
        self.open.len()
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{IncomingRequests, OutgoingRequests};
    use crate::jsonrpc::message::RequestId;

    #[test]
    fn answers_each_request_once_also_with_equal_ids() {
        let mut queue = IncomingRequests::default();
        let id = RequestId::Text("7".to_owned());
        let first = queue.register(id.clone(), 'a');
        let second = queue.register(id.clone(), 'b');
        let other = queue.register(RequestId::Number(7), 'c');
        assert_eq!(queue.with_id(&id).collect::<Vec<_>>(), [first, second]);
        assert_eq!(queue.complete(second), Some((id.clone(), 'b')));
        assert_eq!(queue.complete(second), None);
        assert_eq!(queue.get(first), Some(&'a'));
        *queue.get_mut(other).unwrap() = 'd';
        assert_eq!(queue.len(), 2);
        assert_eq!(queue.drain().collect::<Vec<_>>(), [(id, 'a'), (RequestId::Number(7), 'd')]);
        assert!(queue.is_empty());
        assert_eq!(queue.complete(first), None);
    }

    #[test]
    fn settles_each_of_our_requests_once() {
        let mut queue = OutgoingRequests::default();
        let (first, second, third) = (queue.register('a'), queue.register('b'), queue.register('c'));
        assert_eq!(queue.settle(&RequestId::Text(first.to_string())), None);
        assert_eq!(queue.settle(&RequestId::Null), None);
        assert_eq!(queue.settle(&RequestId::Number(99)), None);
        assert_eq!(queue.settle(&RequestId::Number(first)), Some('a'));
        assert_eq!(queue.settle(&RequestId::Number(first)), None);
        assert_eq!(queue.cancel(second), Some('b'));
        assert_eq!(queue.settle(&RequestId::Number(second)), None);
        assert_eq!(queue.drain().collect::<Vec<_>>(), [(third, 'c')]);
        assert!(queue.register('d') > third);
    }
}
