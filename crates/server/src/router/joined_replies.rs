//! Commands that run in each data set, and their joined replies.

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef};
use windrow_wire::Reply;

use super::route::Servers;
use super::{Call, Router};
use crate::command::Join;
use crate::dispatch;
use crate::placement::DataSetId;

impl Router {
    /// Runs a request in each data set. Returns the joined reply, or the first error.
    pub(super) fn run_in_each(&self, call: &Call<'_>, join: Join) -> Reply {
        if join == Join::One {
            // Sessions have cursors on servers that follow, and on the one that clients connect to.
            let members = self.members.open().into_iter();
            for member in members.filter(|member| !member.is_writable()) {
                dispatch::run(&member, call.client, call.request);
            }
            dispatch::run(call.front, call.client, call.request);
        }
        let mut joined: Option<DocumentBuf> = None;
        for set in self.placement.ids() {
            let reply = self.forward(call, set, Servers::Primary);
            if reply.error_code().is_some() {
                return reply;
            }
            let next = reply.to_document();
            joined = Some(match joined {
                None => self.reply_of_set(join, set, &next),
                Some(before) => self.join(join, &before, set, &next),
            });
        }
        Reply::from_document(joined.unwrap_or_default())
    }

    /// Returns the reply of a data set, without the databases of other data sets.
    fn reply_of_set(&self, join: Join, set: DataSetId, reply: &DocumentBuf) -> DocumentBuf {
        match join {
            Join::Databases => {
                let own = self.databases(set, reply.as_document());
                replace(reply, "databases", sorted(own))
            }
            Join::One | Join::Fields(_) | Join::Elements(_) => reply.clone(),
        }
    }

    /// Returns a joined reply with that of one more data set.
    fn join(
        &self,
        join: Join,
        before: &DocumentBuf,
        set: DataSetId,
        next: &DocumentBuf,
    ) -> DocumentBuf {
        match join {
            Join::One => before.clone(),
            Join::Databases => {
                let mut all = elements(before.as_document(), "databases");
                all.extend(self.databases(set, next.as_document()));
                let joined = replace(before, "databases", sorted(all));
                let joined = add(&joined, next, "totalSize");
                add(&joined, next, "totalSizeMb")
            }
            Join::Fields(name) => {
                let mut all = DocumentBuf::new();
                for (name, value) in fields(before, name).chain(fields(next, name)) {
                    if !all.as_document().contains(name) {
                        all.push(name, value);
                    }
                }
                replace(before, name, all.into())
            }
            Join::Elements(name) => {
                let mut all = elements(before.as_document(), name);
                all.extend(elements(next.as_document(), name));
                replace(before, name, ArrayBuf::from_iter(all).into())
            }
        }
    }

    /// Returns the databases of a reply that are in a data set.
    fn databases(&self, set: DataSetId, reply: Document<'_>) -> Vec<Value> {
        let mut databases = elements(reply, "databases");
        databases.retain(|database| self.placement.set_of(name_of(database)) == set);
        databases
    }
}

fn fields<'a>(reply: &'a DocumentBuf, name: &str) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> {
    let fields = reply.get(name).and_then(ValueRef::as_document);
    fields.into_iter().flat_map(|fields| fields.iter())
}

fn elements(reply: Document<'_>, name: &str) -> Vec<Value> {
    let array = reply.get(name).and_then(ValueRef::as_array);
    let values = array.into_iter().flat_map(|array: Array<'_>| array.iter());
    values.map(ValueRef::to_value).collect()
}

fn name_of(database: &Value) -> &str {
    match database {
        Value::Document(database) => {
            let name = database.get("name").and_then(ValueRef::as_str);
            name.unwrap_or_default()
        }
        _ => "",
    }
}

fn sorted(mut databases: Vec<Value>) -> Value {
    databases.sort_by(|one, other| name_of(one).cmp(name_of(other)));
    ArrayBuf::from_iter(databases).into()
}

/// Returns the document with another value of a field.
fn replace(document: &DocumentBuf, name: &str, value: Value) -> DocumentBuf {
    let mut replaced = DocumentBuf::new();
    for (known, old) in document.iter() {
        if known == name {
            replaced.push(known, value.clone());
        } else {
            replaced.push(known, old);
        }
    }
    replaced
}

/// Returns the document with the sum of a field of both, if it has the field.
fn add(document: &DocumentBuf, other: &DocumentBuf, name: &str) -> DocumentBuf {
    let number = |document: &DocumentBuf| document.get(name).and_then(ValueRef::as_whole);
    match (number(document), number(other)) {
        (Some(one), Some(other)) => replace(document, name, (one + other).into()),
        _ => document.clone(),
    }
}

#[cfg(test)]
mod tests {
    use windrow_document::doc;

    use super::*;

    #[test]
    fn fields_are_replaced_in_place() {
        let document = doc! { "a": 1, "b": 2i64, "ok": 1.0 };
        assert_eq!(
            replace(&document, "a", "x".into()),
            doc! { "a": "x", "b": 2i64, "ok": 1.0 }
        );
        assert_eq!(
            add(&document, &doc! { "b": 3i64 }, "b"),
            doc! { "a": 1, "b": 5i64, "ok": 1.0 }
        );
        assert_eq!(add(&document, &doc! { "b": 3i64 }, "c"), document);
    }
}
