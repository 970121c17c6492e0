//! `configureFailPoint`: lets commands fail, wait or lose their connection. See
//! [`crate::fail_points`].

use windrow_document::doc;
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;
use crate::fail_points::FailPointSettings;

pub const CONFIGURE_FAIL_POINT: Command = Command {
    name: "configureFailPoint",
    help: "makes selected commands fail, wait or lose their connection, for tests of applications",
    routing: Routing::Here,
    needs: Needs::Login,
    admin_only: true,
    for_tests: true,
    arguments: AcceptedArguments::Only(&["data", "mode"]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let settings = FailPointSettings::parse(&Arguments::new(request))?;
    let name = settings.name();
    let count = context.state.fail_points.configure(settings);
    let attr = doc! { "failPointName": name, "failPoint": (request.body()) };
    let log = &context.state.services.log;
    log.info(
        "CONTROL",
        23_829,
        &context.client.name(),
        "Set failpoint",
        attr,
    );
    Ok(Reply::ok(doc! { "count": count }))
}
