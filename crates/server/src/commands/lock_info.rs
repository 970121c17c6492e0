//! `lockInfo`: the locks that are held or waited for. MongoDB's lock manager has one for everything that
//! an operation touches; nothing here is locked for as long as an operation runs, so there are none.

use windrow_document::doc;
use windrow_wire::Reply;

use crate::command::{Accepted, Command};

pub const LOCK_INFO: Command = Command {
    name: "lockInfo",
    help: "lists the locks that operations hold, which are none",
    admin_only: true,
    arguments: Accepted::Only(&[]),
    run: |_, _| Ok(Reply::ok(doc! { "lockInfo": [] })),
    ..Command::EMPTY
};
