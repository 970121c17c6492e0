//! A parsed `aggregate`.

use windrow_collection::DocumentValidation;
use windrow_document::{Array, Document, Type, ValueRef};
use windrow_query::{Aggregate, ParsePipeline, Pipeline};
use windrow_wire::{CommandError, ErrorCode};

use crate::arguments::Arguments;
use crate::change_stream::{self, StreamRequest};
use crate::collection_uuid::COLLECTION_UUID;
use crate::command::ENCRYPTION_INFORMATION;
use crate::common_arguments::is_generic;
use crate::errors::OrCommandError;
use crate::first_batch::{FIRST_BATCH_COUNT, FirstBatch};
use crate::queries::{self, Defaults};
use crate::writes;

/// The accepted arguments.
const FIELDS: &[&str] = &[
    "pipeline",
    "cursor",
    "explain",
    "allowDiskUse",
    "bypassDocumentValidation",
    "collation",
    COLLECTION_UUID,
    ENCRYPTION_INFORMATION,
    "hint",
    "let",
];

/// A parsed `aggregate`. Its stages are parsed by [`aggregate`](Self::aggregate), because that
/// needs the collation of the collection.
pub struct AggregateRequest<'a> {
    pub command: Document<'a>,
    pub stages: Array<'a>,
    pub explain: bool,
    /// `None` if there is no `cursor`.
    first: Option<FirstBatch>,
    pub allow_disk_use: Option<bool>,
    pub collation: Option<Document<'a>>,
    hint: Option<ValueRef<'a>>,
    /// The variables of `let`.
    variables: Option<Document<'a>>,
}

impl<'a> AggregateRequest<'a> {
    pub fn parse(command: Document<'a>) -> Result<AggregateRequest<'a>, CommandError> {
        let arguments = Arguments::within("aggregate", command);
        let explain = arguments.non_null_bool("explain")?.unwrap_or(false);
        let stages = parse_stages(&arguments)?;
        check_names(command)?;
        Ok(AggregateRequest {
            command,
            stages,
            explain,
            first: parse_cursor(&arguments)?,
            allow_disk_use: arguments.bool("allowDiskUse")?,
            collation: arguments.document("collation")?,
            hint: arguments.get("hint"),
            variables: arguments.document("let")?,
        })
    }

    /// Returns the options of the first batch. Fails if there is no `cursor`, unless there is an
    /// `explain`, even if it is `false`.
    pub fn first_batch(&self) -> Result<FirstBatch, CommandError> {
        match self.first {
            Some(first) => Ok(first),
            None if self.command.contains("explain") => Ok(FirstBatch::default()),
            None => Err(CommandError::new(
                ErrorCode::FailedToParse,
                "The 'cursor' option is required, except for aggregate with the explain argument",
            )),
        }
    }

    /// Returns the validation of documents in the output collection. MongoDB ignores the type of
    /// the argument in pipelines that do not write, so it is only read for pipelines that do.
    pub fn validation(&self) -> Result<DocumentValidation, CommandError> {
        writes::validation(&Arguments::within("aggregate", self.command))
    }

    /// Returns the pipeline. `default` has the collation of the collection.
    pub fn aggregate(&self, default: Defaults) -> Result<Aggregate, CommandError> {
        self.aggregate_of(self.stages, default, Pipeline::parse)
    }

    /// Returns the pipeline without its first stage, which creates its own documents. `rest` are
    /// the other stages.
    pub fn aggregate_behind(
        &self,
        rest: Array<'_>,
        default: Defaults,
    ) -> Result<Aggregate, CommandError> {
        self.aggregate_of(rest, default, Pipeline::parse_after_first)
    }

    fn aggregate_of(
        &self,
        stages: Array<'_>,
        default: Defaults,
        parse: ParsePipeline,
    ) -> Result<Aggregate, CommandError> {
        let environment = default.environment(self.variables, self.collation)?;
        Ok(Aggregate {
            pipeline: parse(stages, &environment).or_command_error()?,
            hint: queries::hint(self.hint)?,
            allow_disk_use: self.allow_disk_use.unwrap_or(true),
        })
    }

    /// Returns `true` if the command opens a change stream.
    pub fn opens_stream(&self) -> bool {
        change_stream::starts_with_stream(self.stages)
    }

    /// Returns the arguments of a change stream.
    pub fn stream(&self) -> StreamRequest<'a> {
        let concern = self.command.get("readConcern");
        let concern = concern.and_then(ValueRef::as_document);
        let level = concern.and_then(|concern| concern.get("level"));
        StreamRequest {
            stages: self.stages,
            collation: self.collation,
            variables: self.variables,
            read_concern: level.and_then(ValueRef::as_str),
        }
    }

    /// Returns the name of the first stage.
    pub fn first_stage_name(&self) -> Option<&'a str> {
        let (name, _) = self.stages.get(0)?.as_document()?.first()?;
        Some(name)
    }
}

fn parse_stages<'a>(arguments: &Arguments<'a>) -> Result<Array<'a>, CommandError> {
    match arguments.get("pipeline") {
        Some(ValueRef::Array(stages)) => Ok(stages),
        Some(other) => Err(arguments.wrong_type("pipeline", other.type_of(), &[Type::Array])),
        None => {
            let message = "'pipeline' option must be specified as an array";
            Err(CommandError::new(ErrorCode::TypeMismatch, message))
        }
    }
}

fn check_names(command: Document<'_>) -> Result<(), CommandError> {
    let mut names = command.iter().skip(1).map(|(name, _)| name);
    match names.find(|name| !FIELDS.contains(name) && !is_generic(name)) {
        Some(name) => Err(CommandError::new(
            ErrorCode::FailedToParse,
            format!("unrecognized field '{name}'"),
        )),
        None => Ok(()),
    }
}

/// Parses `cursor: {batchSize}`.
fn parse_cursor(arguments: &Arguments<'_>) -> Result<Option<FirstBatch>, CommandError> {
    let Some(cursor) = arguments.document("cursor")? else {
        return Ok(None);
    };
    if let Some((name, _)) = cursor.iter().find(|(name, _)| *name != "batchSize") {
        let message = format!("cursor object can't contain fields other than batchSize: {name}");
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    let size = Arguments::within("aggregate.cursor", cursor).count("batchSize")?;
    let limit = size.map_or(FIRST_BATCH_COUNT, |size| {
        usize::try_from(size).unwrap_or(usize::MAX)
    });
    Ok(Some(FirstBatch {
        limit,
        single: false,
    }))
}
