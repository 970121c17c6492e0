//! Shows and kills running operations.

use std::time::Duration;

use maud::{Markup, html};
use windrow_client::server_status::number;
use windrow_document::json::display_prefix;
use windrow_document::{Document, DocumentBuf, ValueRef, doc};

use crate::data_table::{Column, data_table};
use crate::database::Database;
use crate::error::PageError;
use crate::request::Request;
use crate::response::Response;
use crate::route::{EventStream, PollFunction};
use crate::shell::form_token;
use crate::show::grouped;
use crate::texts::state as texts;

use super::{OPERATIONS, part_page};

/// The event stream with the table of operations.
pub const LIVE: EventStream = EventStream {
    interval: Duration::from_secs(2),
    start: start_polling,
};

/// Commands that monitor the server and may wait for changes.
const WATCHING: [&str; 4] = ["hello", "isMaster", "ismaster", "currentOp"];
/// The maximum number of operations shown.
const OPERATIONS_MAX: usize = 200;
/// The maximum number of bytes shown of a command.
const COMMAND_BYTES_MAX: usize = 2_000;

/// The running operations that the user may see.
struct RunningOperations {
    operations: Vec<DocumentBuf>,
    /// The list contains only operations of the user.
    is_own: bool,
}

/// Shows the page.
pub fn show(request: &Request) -> Result<Response, PageError> {
    let running = read(&mut request.database()?)?;
    let content = html! {
        @if request.query().get("done").is_some() {
            p .notice .good role="status" { (texts::KILLED) }
        }
        div #operations data-live="/state/operations/live" data-live-event="table" {
            (table(request, &running))
        }
    };
    Ok(part_page(
        request,
        OPERATIONS,
        &["live_table.js", "confirm.js"],
        &content,
    ))
}

fn start_polling(_: &Request) -> Result<PollFunction, PageError> {
    Ok(Box::new(|request| {
        let running = read(&mut request.database()?)?;
        Ok(table(request, &running).into_string())
    }))
}

/// Kills an operation.
pub fn kill(request: &Request) -> Result<Response, PageError> {
    let id = request.form().text("op").parse::<i64>();
    let id = id.map_err(|_| PageError::bad_request("the operation has no number"))?;
    let command = doc! { "killOp": 1, "op": id, "$db": "admin" };
    request.database()?.run(command)?;
    Ok(Response::redirect("/state/operations?done=killed"))
}

fn read(database: &mut Database) -> Result<RunningOperations, PageError> {
    let all = database.run(doc! { "currentOp": 1, "$db": "admin" });
    let (reply, is_own) = match all {
        Ok(reply) => (reply, false),
        Err(error) if error.status == hyper::StatusCode::FORBIDDEN => {
            let own = doc! { "currentOp": 1, "$ownOps": true, "$db": "admin" };
            (database.run(own)?, true)
        }
        Err(error) => return Err(error),
    };
    let list = reply.get("inprog").and_then(ValueRef::as_array);
    let list = list.into_iter().flatten().filter_map(ValueRef::as_document);
    let mut operations: Vec<DocumentBuf> = list
        .filter(|it| is_work(*it))
        .map(Document::to_buf)
        .collect();
    let age = |it: &DocumentBuf| number(it.as_document(), &["microsecs_running"]);
    operations.sort_by(|one, other| age(other).total_cmp(&age(one)));
    Ok(RunningOperations { operations, is_own })
}

/// Returns `true` unless an operation only monitors the server.
fn is_work(operation: Document<'_>) -> bool {
    let is_active = operation.get("active").is_some_and(ValueRef::is_truthy);
    is_active && !WATCHING.contains(&command_name(operation))
}

fn command_name(operation: Document<'_>) -> &str {
    let command = operation.get("command").and_then(ValueRef::as_document);
    command
        .and_then(Document::first)
        .map_or("", |(name, _)| name)
}

fn table(request: &Request, running: &RunningOperations) -> Markup {
    let shown = running.operations.iter().take(OPERATIONS_MAX);
    let mut columns = vec![
        Column::text(texts::OPERATION),
        Column::text(texts::NAMESPACE),
        Column::number(texts::RUNNING_FOR),
        Column::text(texts::COMMAND),
        Column::text(texts::CLIENT),
    ];
    if request.can_write() {
        columns.push(Column::text(texts::ACTION));
    }
    html! {
        @if running.is_own { p .muted { (texts::OWN_OPERATIONS) } }
        @if running.operations.is_empty() {
            p .empty { (texts::NO_OPERATIONS) }
        } @else {
            (data_table(
                texts::OPERATIONS,
                "",
                &columns,
                &html! { @for one in shown { (row(request, one.as_document())) } },
            ))
        }
    }
}

fn row(request: &Request, operation: Document<'_>) -> Markup {
    let text = |name: &str| {
        let value = operation.get(name).and_then(ValueRef::as_str);
        value.unwrap_or_default()
    };
    let id = operation.get("opid").and_then(ValueRef::as_whole);
    let command = operation.get("command").and_then(ValueRef::as_document);
    let millis = number(operation, &["microsecs_running"]) / 1e3;
    let name = command_name(operation);
    html! {
        tr {
            td { (id.unwrap_or(0)) " " span .badge { (text("op")) } }
            td { bdi { (text("ns")) } }
            td .number { (grouped(millis as i64)) " ms" }
            td {
                @if let Some(command) = command {
                    details #(format!("command-{}", id.unwrap_or(0))) {
                        summary { bdi { (name) } @if !text("planSummary").is_empty() { " · " (text("planSummary")) } }
                        pre .code .wrap { (display_prefix(&command, COMMAND_BYTES_MAX)) }
                    }
                }
                (progress(operation))
            }
            td .small { (text("client")) br; span .muted { bdi { (user(operation)) } } }
            @if request.can_write() {
                td { @if let Some(id) = id { (kill_form(request, id, name)) } }
            }
        }
    }
}

/// Shows the progress of an index build.
fn progress(operation: Document<'_>) -> Markup {
    let (done, total) = (
        number(operation, &["progress", "done"]),
        number(operation, &["progress", "total"]),
    );
    let message = operation.get("msg").and_then(ValueRef::as_str);
    html! {
        @if total > 0.0 {
            progress max="100" value=((done * 100.0 / total) as i64) aria-label=(texts::PROGRESS) {}
        }
        @if let Some(message) = message { p .small .muted { bdi { (message) } } }
    }
}

fn user(operation: Document<'_>) -> String {
    let users = operation.get("effectiveUsers").and_then(ValueRef::as_array);
    let users = users
        .into_iter()
        .flatten()
        .filter_map(ValueRef::as_document);
    let mut names = users.filter_map(|user| {
        let (name, database) = (user.get("user")?.as_str()?, user.get("db")?.as_str()?);
        Some(format!("{name}@{database}"))
    });
    names.next().unwrap_or_default()
}

fn kill_form(request: &Request, id: i64, command: &str) -> Markup {
    html! {
        form method="post" action="/state/operations/kill"
            data-confirm=(texts::confirm_kill(id, command)) {
            (form_token(request))
            input type="hidden" name="op" value=(id);
            button #(format!("kill-{id}")) .danger type="submit" aria-label=(texts::kill(id)) {
                (texts::KILL)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_watch_are_not_shown() {
        let cases = [
            (doc! { "active": true, "command": { "find": "c" } }, true),
            (doc! { "active": true }, true),
            (doc! { "active": false, "command": { "find": "c" } }, false),
            (doc! { "active": true, "command": { "hello": 1 } }, false),
        ];
        for (operation, expected) in cases {
            assert_eq!(is_work(operation.as_document()), expected, "{operation}");
        }
    }
}
