//! The servers of cursors that other servers have opened.

use windrow_document::{Document, ValueRef};
use windrow_wire::Request;

use super::recent_table::RecentTable;
use crate::sessions::TIMEOUT;

/// The address of the server of each open cursor of another server.
#[derive(Debug)]
pub struct RemoteCursors {
    open: RecentTable<i64, String>,
}

/// A cursor lives as long as its session, so it is used or refreshed within this time. The primary
/// is asked for one that is unknown here.
impl Default for RemoteCursors {
    fn default() -> RemoteCursors {
        RemoteCursors {
            open: RecentTable::new(TIMEOUT * 2),
        }
    }
}

impl RemoteCursors {
    /// Returns the address of the server of a cursor.
    pub fn find(&self, id: i64) -> Option<String> {
        self.open.get(&id)
    }

    /// Records which cursor a reply of a server opens or ends.
    pub fn record(&self, request: &Request, reply: Document<'_>, address: &str) {
        if let Some(ended) = ended(request, reply) {
            self.open.remove(&ended);
        }
        let Some(cursor) = reply.get("cursor").and_then(ValueRef::as_document) else {
            return;
        };
        let id = cursor.get("id").and_then(ValueRef::as_whole);
        if let Some(id) = id.filter(|id| *id != 0) {
            self.open.insert(id, address.to_owned());
        }
    }
}

/// Returns the cursor that a request ends: its last batch is read, it is closed, or it has failed.
fn ended(request: &Request, reply: Document<'_>) -> Option<i64> {
    match request.command() {
        "getMore" => {
            let id = request.get("getMore")?.as_whole()?;
            let cursor = reply.get("cursor").and_then(ValueRef::as_document);
            let next = cursor.and_then(|cursor| cursor.get("id")?.as_whole());
            (next != Some(id)).then_some(id)
        }
        "killCursors" => super::route::cursor(request),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use windrow_document::{DocumentBuf, doc};

    use super::*;
    use crate::connection::request_for_tests;

    #[test]
    fn cursors_are_known_until_they_end() {
        let cursors = RemoteCursors::default();
        let record = |request: DocumentBuf, reply: DocumentBuf| {
            cursors.record(&request_for_tests(&request), reply.as_document(), "b:1");
        };
        let batch = |id: i64| doc! { "cursor": { "id": id, "ns": "d.c" }, "ok": 1 };
        let more = || doc! { "getMore": 7i64, "collection": "c", "$db": "d" };
        record(doc! { "find": "c", "$db": "d" }, batch(0));
        assert_eq!(cursors.find(0), None);
        record(doc! { "find": "c", "$db": "d" }, batch(7));
        assert_eq!(cursors.find(7).as_deref(), Some("b:1"));
        record(more(), batch(7));
        assert_eq!(cursors.find(7).as_deref(), Some("b:1"));
        record(more(), batch(0));
        assert_eq!(cursors.find(7), None);
        record(doc! { "find": "c", "$db": "d" }, batch(7));
        record(more(), doc! { "ok": 0, "code": 43 });
        assert_eq!(cursors.find(7), None);
    }
}
