//! Items of an answer in OpenAI's Responses API, as far as they came: in pieces, whole at their end, or only with the answer.

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use crate::providers::{
    chunks,
    legal_names::LegalNames,
    lenient::{Items, Str, owned, raw_text},
    provider_limits::whole_arguments,
    responses::SIGNER,
};
use castor_base::{
    model::Chunk,
    patch::{APPLY_PATCH, PATCH_OPERATION},
};

/// Items of one answer, at most: a server that counts wildly must not fill the memory.
const MAX_ITEMS: usize = 512;

#[derive(Deserialize)]
pub struct Item<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Str<'a>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    call_id: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<Str<'a>>,
    #[serde(borrow)]
    operation: Option<&'a RawValue>,
    #[serde(borrow)]
    encrypted_content: Option<Str<'a>>,
    #[serde(borrow, default)]
    content: Items<Part<'a>>,
    #[serde(borrow, default)]
    summary: Items<Part<'a>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    refusal: Option<Str<'a>>,
}

impl Part<'_> {
    fn said(self) -> Option<String> {
        self.text.and_then(Str::said).or_else(|| self.refusal.and_then(Str::said))
    }
}

impl Item<'_> {
    pub fn id(&self) -> &str {
        self.id.as_ref().map_or("", |it| &it.0)
    }
}

/// Kinds of items that count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    Call,
    /// Of a tool whose input is text of any form.
    CustomCall,
    /// The provider's own tool for what `apply_patch` does to one file.
    PatchOperation,
    Message,
    Reasoning,
}

impl ItemKind {
    pub fn of(item: &Item<'_>) -> Option<Self> {
        match &*item.kind.0 {
            "function_call" => Some(Self::Call),
            "custom_tool_call" => Some(Self::CustomCall),
            "apply_patch_call" => Some(Self::PatchOperation),
            "message" => Some(Self::Message),
            "reasoning" => Some(Self::Reasoning),
            _ => None,
        }
    }

    /// Tells whether it is a call whose pieces make a whole one. Half an operation looks like a whole one.
    pub fn comes_in_pieces(&self) -> bool {
        matches!(self, Self::Call | Self::CustomCall)
    }

    fn is_call(self) -> bool {
        matches!(self, Self::Call | Self::CustomCall | Self::PatchOperation)
    }
}

/// An item as far as it came.
pub struct OpenItem {
    index: Option<u64>,
    id: String,
    kind: ItemKind,
    call_id: String,
    name: String,
    pub arguments: String,
    /// Pieces of it were passed on.
    pub is_told: bool,
    has_ended: bool,
}

impl OpenItem {
    fn new(index: Option<u64>, id: &str, kind: ItemKind) -> Self {
        let none = String::new();
        let (call_id, name, arguments) = (none.clone(), none.clone(), none);
        Self { index, id: id.to_owned(), kind, call_id, name, arguments, is_told: false, has_ended: false }
    }

    /// Takes what is known of a call. What its pieces said stays where nothing is.
    pub fn take_call(&mut self, item: Item<'_>) {
        let more = [(&mut self.call_id, owned(item.call_id)), (&mut self.name, owned(item.name))];
        let arguments = item.arguments.map(raw_text).or(item.input.map(|it| it.0.into_owned()));
        let arguments = arguments.or(item.operation.map(|it| it.get().to_owned())).unwrap_or_default();
        let more = more.into_iter().chain([(&mut self.arguments, arguments)]);
        for (field, it) in more.filter(|(_, it)| !it.is_empty()) {
            *field = it;
        }
    }

    /// The chunks of a whole item that were not passed on yet.
    pub fn end(&mut self, item: Item<'_>, names: &LegalNames) -> Vec<Chunk> {
        if std::mem::replace(&mut self.has_ended, true) {
            return Vec::new();
        }
        match self.kind {
            ItemKind::Call | ItemKind::CustomCall | ItemKind::PatchOperation => {
                self.take_call(item);
                if self.is_foreign() { Vec::new() } else { vec![self.call(names)] }
            }
            ItemKind::Message if self.is_told => Vec::new(),
            ItemKind::Message => item.content.0.into_iter().filter_map(Part::said).filter_map(chunks::text).collect(),
            ItemKind::Reasoning => {
                let parts = item.summary.0.into_iter().chain(item.content.0).filter_map(Part::said);
                let parts: Vec<String> = parts.filter(|_| !self.is_told).collect();
                let signature = item.encrypted_content.and_then(Str::said).map(|it| chunks::signature(SIGNER, &it));
                chunks::thought(parts.join("\n\n")).into_iter().chain(signature).collect()
            }
        }
    }

    fn call(&mut self, names: &LegalNames) -> Chunk {
        self.has_ended = true;
        let (id, name, text) = (self.call_id.clone(), self.name.clone(), std::mem::take(&mut self.arguments));
        match self.kind {
            ItemKind::CustomCall => chunks::call_with(names, id, name, json!({ "input": text })),
            ItemKind::PatchOperation => chunks::call(names, id, PATCH_OPERATION.to_owned(), &text),
            _ => chunks::call(names, id, name, &text),
        }
    }

    /// Tells whether the provider carries it out itself: castor declares one custom tool.
    fn is_foreign(&self) -> bool {
        self.kind == ItemKind::CustomCall && !self.name.is_empty() && self.name != APPLY_PATCH
    }

    /// Tells whether its pieces are all that there is to say. A patch that was cut off is refused by its tool.
    fn is_whole(&self) -> bool {
        match self.kind {
            ItemKind::Call => !self.name.is_empty() && whole_arguments(&self.arguments).is_some(),
            ItemKind::CustomCall => !self.name.is_empty() && !self.arguments.is_empty(),
            _ => false,
        }
    }
}

#[derive(Default)]
pub struct OpenItems(Vec<OpenItem>);

impl OpenItems {
    /// The item that an event is about; one that did not begin begins with it. `None`: there are too many.
    pub fn open(&mut self, index: Option<u64>, id: &str, kind: ItemKind) -> Option<&mut OpenItem> {
        let found = self.0.iter().rposition(|it| {
            let is_same = match (index, it.index) {
                // Some gateways give an item another id with each event.
                (Some(index), Some(own)) => index == own,
                _ if !id.is_empty() && !it.id.is_empty() => id == it.id,
                // Some servers number nothing.
                _ => !it.has_ended,
            };
            it.kind == kind && is_same
        });
        match found {
            None if self.0.len() >= MAX_ITEMS => None,
            None => {
                self.0.push(OpenItem::new(index, id, kind));
                self.0.last_mut()
            }
            Some(at) => self.0.get_mut(at),
        }
    }

    /// To compare with the items of the answer's end.
    pub fn late(&mut self) -> LateItems<'_> {
        let n_known = self.0.len();
        LateItems { items: self, n_known, seen: Vec::new() }
    }

    /// Passes on calls that did not end, if all of them are whole.
    pub fn end_calls(&mut self, names: &LegalNames, out: &mut Vec<Chunk>) -> bool {
        let mut open: Vec<_> =
            self.0.iter_mut().filter(|it| it.kind.is_call() && !it.has_ended && !it.is_foreign()).collect();
        let are_whole = open.iter().all(|it| it.is_whole());
        if are_whole {
            out.extend(open.iter_mut().map(|it| it.call(names)));
        }
        are_whole
    }
}

/// The items of an answer's end: each again, or for the first time.
pub struct LateItems<'a> {
    items: &'a mut OpenItems,
    /// Items that events brought.
    n_known: usize,
    /// Kinds of the items so far.
    seen: Vec<ItemKind>,
}

impl LateItems<'_> {
    /// The chunks of what no event brought. Numbers and ids may be others here: the order within a kind is the same.
    pub fn end(&mut self, item: Item<'_>, names: &LegalNames) -> Vec<Chunk> {
        let Some(kind) = ItemKind::of(&item) else { return Vec::new() };
        let nth = self.seen.iter().filter(|it| **it == kind).count();
        self.seen.push(kind);
        let call_id = item.call_id.as_ref().map_or("", |it| &it.0);
        let known = self.items.0.get_mut(..self.n_known).unwrap_or_default();
        let same_call = |it: &OpenItem| kind.is_call() && !call_id.is_empty() && it.call_id == call_id;
        let by_id = known.iter().position(same_call);
        let by_order = || known.iter().enumerate().filter(|(_, it)| it.kind == kind).nth(nth).map(|it| it.0);
        match by_id.or_else(by_order).and_then(|at| known.get_mut(at)) {
            Some(it) => it.end(item, names),
            None => OpenItem::new(None, "", kind).end(item, names),
        }
    }
}
