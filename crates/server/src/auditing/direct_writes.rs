//! Writes of clients to the collections of users and roles. Such a write changes what users may do,
//! as the commands on users and roles do.

use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_wire::Request;

use crate::access::store::AuthCollection;
use crate::audit::AuditTrail;
use crate::client::Client;
use crate::shown_command::without_credentials;
use crate::state::State;

/// Records the statements of a command that write to the collections of users and roles. They are
/// recorded whether or not they change documents.
pub fn record_direct_writes(state: &State, client: &Client, request: &Request) {
    if state.audit.is_none() || request.database() != "admin" {
        return;
    }
    let record = |namespace: &str, operation: &str, document: Document<'_>| {
        let is_stored = |stored: AuthCollection| stored.namespace().to_string() == namespace;
        if !is_stored(AuthCollection::Users) && !is_stored(AuthCollection::Roles) {
            return;
        }
        let Some(trail) = super::trail(state, client) else {
            return;
        };
        record_one(&trail, namespace, operation, document);
    };
    let name = request.get(request.command()).and_then(ValueRef::as_str);
    let namespace = format!("admin.{}", name.unwrap_or_default());
    let each = |argument: &str, operation: &str| {
        let Ok(Some(documents)) = request.documents(argument) else {
            return;
        };
        documents
            .iter()
            .for_each(|one| record(&namespace, operation, one));
    };
    match request.command() {
        "insert" => each("documents", "insert"),
        "update" => each("updates", "update"),
        "delete" => each("deletes", "delete"),
        "findAndModify" | "findandmodify" => {
            let is_removal = request.get("remove").is_some_and(ValueRef::is_truthy);
            let operation = if is_removal { "delete" } else { "update" };
            let statement = ["query", "update", "remove"].iter();
            let statement = statement.filter_map(|name| Some((*name, request.get(name)?)));
            let statement: DocumentBuf = statement.collect();
            record(&namespace, operation, statement.as_document());
        }
        "bulkWrite" => each_of_bulk_write(request, record),
        _ => {}
    }
}

/// The operations of a bulk write. Those that it refuses are left out.
fn each_of_bulk_write(request: &Request, record: impl Fn(&str, &str, Document<'_>)) {
    let (Ok(Some(operations)), Ok(Some(namespaces))) =
        (request.documents("ops"), request.documents("nsInfo"))
    else {
        return;
    };
    let names: Vec<&str> = namespaces
        .iter()
        .map(|one| one.get("ns").and_then(ValueRef::as_str).unwrap_or_default())
        .collect();
    for operation in operations.iter() {
        let Some((kind @ ("insert" | "update" | "delete"), number)) = operation.first() else {
            continue;
        };
        let place = number
            .as_whole()
            .and_then(|place| usize::try_from(place).ok());
        let Some(name) = place.and_then(|place| names.get(place)) else {
            continue;
        };
        match operation.get("document").and_then(ValueRef::as_document) {
            Some(document) => record(name, kind, document),
            None => record(name, kind, operation),
        }
    }
}

fn record_one(trail: &AuditTrail, namespace: &str, operation: &str, document: Document<'_>) {
    let param = doc! {
        "document": (without_credentials(document)), "ns": namespace, "operation": operation,
    };
    trail.record("directAuthMutation", param);
}
