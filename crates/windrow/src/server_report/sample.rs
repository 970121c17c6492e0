//! A sample of the state of a server.

use std::time::Instant;

use windrow_client::server_status::number;
use windrow_document::{Document, DocumentBuf, ValueRef, doc};

use crate::client::{Client, ClientError};

/// MongoDB's error code of a command that the user may not run.
const UNAUTHORIZED: i32 = 13;

/// The state of a server at one time.
#[derive(Debug)]
pub struct Sample {
    pub at: Instant,
    /// `serverStatus`, with histograms of latencies.
    pub status: DocumentBuf,
    /// The totals of `top` by collection. `None` if the user may not run it.
    pub collections: Option<DocumentBuf>,
    /// The running operations that the user may see.
    pub operations: Vec<DocumentBuf>,
    /// The parts that the user may not see.
    pub missing: Vec<String>,
}

impl Sample {
    /// Queries a server. The user needs only the privilege for `serverStatus`.
    pub fn take(client: &mut Client) -> Result<Sample, ClientError> {
        let mut missing = Vec::new();
        let status = doc! {
            "serverStatus": 1, "opLatencies": { "histograms": true }, "$db": "admin",
        };
        let status = client.run(status.as_document(), None)?.to_buf();
        let top = doc! { "top": 1, "$db": "admin" };
        let collections = match client.run(top.as_document(), None) {
            Ok(reply) => reply
                .get("totals")
                .and_then(ValueRef::as_document)
                .map(Document::to_buf),
            Err(ClientError::Command {
                code: UNAUTHORIZED, ..
            }) => {
                missing.push("the use of collections needs the action top".to_owned());
                None
            }
            Err(error) => return Err(error),
        };
        let all = doc! { "currentOp": 1, "$db": "admin" };
        let own = doc! { "currentOp": 1, "$ownOps": true, "$db": "admin" };
        let operations = match client.run(all.as_document(), None) {
            Ok(reply) => operations(reply),
            Err(ClientError::Command {
                code: UNAUTHORIZED, ..
            }) => {
                missing.push("operations of other users need the action inprog".to_owned());
                operations(client.run(own.as_document(), None)?)
            }
            Err(error) => return Err(error),
        };
        Ok(Sample {
            at: Instant::now(),
            status,
            collections,
            operations,
            missing,
        })
    }
}

fn operations(reply: Document<'_>) -> Vec<DocumentBuf> {
    let list = reply.get("inprog").and_then(ValueRef::as_array);
    let documents = list.into_iter().flatten().filter_map(ValueRef::as_document);
    documents.map(Document::to_buf).collect()
}

/// Returns the number of operations of a collection.
pub fn total_of_collection(totals: Document<'_>) -> f64 {
    number(totals, &["total", "count"])
}
