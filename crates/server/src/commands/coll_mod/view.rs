//! `collMod` of a view: changes its source or its pipeline.

use windrow_collection::{Namespace, View};
use windrow_document::DocumentBuf;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
use crate::commands::create;
use crate::common_arguments::is_generic;
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::{namespace, views};

/// Changes the view. Absent arguments leave their option unchanged.
pub fn change(
    request: &Request,
    context: &Context<'_>,
    namespace: &Namespace,
    view: View,
) -> Result<Reply, CommandError> {
    let given = request.body().iter().skip(1);
    let mut names = given.filter_map(|(name, value)| (!value.is_nullish()).then_some(name));
    let is_known = |name: &str| matches!(name, "viewOn" | "pipeline") || is_generic(name);
    if let Some(name) = names.find(|name| !is_known(name)) {
        let message = format!("option not supported on a view: {name}");
        return Err(CommandError::new(ErrorCode::InvalidOptions, message));
    }
    let arguments = Arguments::new(request);
    let on = match arguments.string("viewOn")? {
        Some("") => {
            let message = "'viewOn' cannot be empty";
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
        Some(on) => on.to_owned(),
        None => view.on,
    };
    namespace::check_collection(&namespace.database, &on)?;
    let pipeline = match create::view::pipeline(&arguments)? {
        Some(pipeline) => pipeline.to_buf(),
        None => view.pipeline,
    };
    let changed = View {
        on,
        pipeline,
        collation: view.collation,
    };
    let engine = &context.state.services.engine;
    let is_changed = request
        .body()
        .iter()
        .any(|(name, _)| name == "viewOn" || name == "pipeline");
    if is_changed {
        views::check(engine, namespace, &changed)?;
        engine.change_view(namespace, &changed).or_command_error()?;
    }
    Ok(Reply::ok(DocumentBuf::new()))
}
