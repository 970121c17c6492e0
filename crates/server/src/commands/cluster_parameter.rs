//! `setClusterParameter` and `getClusterParameter`: persistent parameters.

use windrow_access::Action;
use windrow_document::{Document, DocumentBuf, Type, Value, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::cluster_parameters::DEFAULT_TIME_LIMIT;
use crate::command::{Command, Routing};
use crate::context::Context;

pub const GET_CLUSTER_PARAMETER: Command = Command {
    name: "getClusterParameter",
    help: "returns cluster parameters: by name, by names, or all with \"*\"",
    routing: Routing::Users,
    needs: Needs::OnServer(&[Action::getClusterParameter]),
    admin_only: true,
    run: get,
    ..Command::EMPTY
};

pub const SET_CLUSTER_PARAMETER: Command = Command {
    name: "setClusterParameter",
    help: "changes a cluster parameter, which is stored over restarts",
    routing: Routing::Users,
    needs: Needs::OnServer(&[Action::setClusterParameter]),
    admin_only: true,
    run: set,
    ..Command::EMPTY
};

fn unknown(name: &str) -> CommandError {
    let message = format!("Unknown Cluster Parameter {name}");
    CommandError::new(ErrorCode::NoSuchKey, message)
}

fn get(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let names = names(request)?;
    context.audit("getClusterParameter", || {
        doc! { "requestedClusterServerParameters": (names.clone()) }
    });
    let found: Result<Vec<Value>, CommandError> = names
        .into_iter()
        .map(|name| {
            let described = context.state.cluster_parameters.describe(name);
            described.map(Value::from).ok_or_else(|| unknown(name))
        })
        .collect();
    Ok(Reply::ok(doc! { "clusterParameters": (found?) }))
}

fn names(request: &Request) -> Result<Vec<&str>, CommandError> {
    let arguments = Arguments::new(request);
    let name = request.command();
    match arguments.get(name) {
        Some(ValueRef::String("*")) => Ok(vec![DEFAULT_TIME_LIMIT]),
        Some(ValueRef::String(name)) => Ok(vec![name]),
        Some(ValueRef::Array(array)) if array.is_empty() => {
            let message = "Must supply at least one cluster server parameter name";
            Err(CommandError::new(ErrorCode::BadValue, message))
        }
        Some(ValueRef::Array(array)) => array
            .iter()
            .enumerate()
            .map(|(place, value)| {
                let wrong = || {
                    let place = format!("{name}.{place}");
                    arguments.wrong_type(&place, value.type_of(), &[Type::String])
                };
                value.as_str().ok_or_else(wrong)
            })
            .collect(),
        other => {
            let found = other.map_or(Type::Null, ValueRef::type_of);
            Err(arguments.wrong_type(name, found, &[Type::String, Type::Array]))
        }
    }
}

fn set(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let SetClusterParameterRequest { name, value } = SetClusterParameterRequest::parse(request)?;
    if name != DEFAULT_TIME_LIMIT {
        return Err(unknown(name));
    }
    if let Some((field, _)) = value.iter().find(|(field, _)| field.starts_with('$')) {
        let message = format!("Cluster parameter fields may not begin with '$': {field}");
        let code = ErrorCode::DollarPrefixedFieldName;
        return Err(CommandError::new(code, message));
    }
    let state = context.state;
    let engine = &state.services.engine;
    let original = state.cluster_parameters.describe(name);
    state
        .cluster_parameters
        .set_default_time_limit(engine, value)?;
    context.audit("setClusterParameter", || {
        let updated = state.cluster_parameters.describe(name);
        doc! {
            "originalClusterServerParameter": (original.unwrap_or_default()),
            "updatedClusterServerParameter": (updated.unwrap_or_default()),
        }
    });
    Ok(Reply::ok(DocumentBuf::new()))
}

/// A parsed `setClusterParameter`.
struct SetClusterParameterRequest<'a> {
    name: &'a str,
    value: Document<'a>,
}

impl<'a> SetClusterParameterRequest<'a> {
    /// Parses the parameter and its value. Fails if there is not exactly one parameter.
    fn parse(request: &'a Request) -> Result<SetClusterParameterRequest<'a>, CommandError> {
        let arguments = Arguments::new(request);
        let command = request.command();
        let parameters = arguments.document(command)?;
        let parameters = parameters.ok_or_else(|| arguments.missing(command))?;
        let mut fields = parameters.iter();
        let (name, value) = fields.next().ok_or_else(|| unknown(""))?;
        if fields.next().is_some() {
            let message = "setClusterParameter only supports setting exactly one parameter";
            return Err(CommandError::new(ErrorCode::InvalidOptions, message));
        }
        match value.as_document() {
            Some(value) => Ok(SetClusterParameterRequest { name, value }),
            None if name != DEFAULT_TIME_LIMIT => Err(unknown(name)),
            None => {
                let message = "Cluster parameter value must be an object";
                Err(CommandError::new(ErrorCode::BadValue, message))
            }
        }
    }
}
