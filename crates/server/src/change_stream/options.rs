//! The options of a change stream: the operand of `$changeStream`, and the namespace.

use windrow_collection::{ClusterTime, Namespace};
use windrow_document::ValueRef;
use windrow_wire::{CommandError, ErrorCode};

use super::token::Token;
use crate::arguments::Arguments;
use crate::errors::refuse;
use crate::namespace::is_internal_database;

/// The parsed options.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeStreamOptions {
    pub scope: Scope,
    pub start: Start,
    pub full_document: FullDocument,
    pub before: BeforeChange,
    /// `showExpandedEvents`: more kinds of events, and more fields.
    pub expanded: bool,
}

/// The collections that a stream watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Collection(Namespace),
    Database(String),
    Deployment,
}

/// The position at which a stream starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Now,
    At(ClusterTime),
    /// `resumeAfter`. Not allowed after the end of a stream.
    Resume(Token),
    /// `startAfter`.
    After(Token),
}

/// `fullDocument`: the new version of an updated document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullDocument {
    Default,
    UpdateLookup,
    WhenAvailable,
    Required,
}

/// `fullDocumentBeforeChange`: the old version of a changed document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeforeChange {
    Off,
    WhenAvailable,
    Required,
}

const FULL_DOCUMENT: &[(&str, FullDocument)] = &[
    ("default", FullDocument::Default),
    ("required", FullDocument::Required),
    ("updateLookup", FullDocument::UpdateLookup),
    ("whenAvailable", FullDocument::WhenAvailable),
];

const BEFORE_CHANGE: &[(&str, BeforeChange)] = &[
    ("off", BeforeChange::Off),
    ("required", BeforeChange::Required),
    ("whenAvailable", BeforeChange::WhenAvailable),
];

const OPTIONS: &[&str] = &[
    "allChangesForCluster",
    "fullDocument",
    "fullDocumentBeforeChange",
    "resumeAfter",
    "showExpandedEvents",
    "showMigrationEvents",
    "startAfter",
    "startAtOperationTime",
];

impl ChangeStreamOptions {
    /// Parses the operand. `namespace` is that of the command. It has no collection if the stream
    /// watches a database.
    pub fn parse(
        namespace: &Namespace,
        operand: ValueRef<'_>,
    ) -> Result<ChangeStreamOptions, CommandError> {
        let Some(options) = operand.as_document() else {
            return refuse(50_808, "the operand of $changeStream must be an object");
        };
        let options = Arguments::within("$changeStream", options);
        options.only(OPTIONS)?;
        let flag = |name: &str| options.bool(name).map(Option::unwrap_or_default);
        // Migrations are between shards, and there are none.
        flag("showMigrationEvents")?;
        Ok(ChangeStreamOptions {
            full_document: choice(&options, "fullDocument", FULL_DOCUMENT)?,
            before: choice(&options, "fullDocumentBeforeChange", BEFORE_CHANGE)?,
            expanded: flag("showExpandedEvents")?,
            start: start(&options)?,
            scope: scope(namespace, flag("allChangesForCluster")?)?,
        })
    }
}

/// Returns an option with several known values. The first one is the default.
fn choice<T: Copy>(
    options: &Arguments<'_>,
    name: &str,
    known: &[(&str, T)],
) -> Result<T, CommandError> {
    let given = options.string(name)?;
    let word = given.or(known.first().map(|(word, _)| *word)).unwrap_or("");
    match known.iter().find(|(known, _)| *known == word) {
        Some((_, value)) => Ok(*value),
        None => refuse(40_575, format!("unrecognized value for '{name}': '{word}'")),
    }
}

fn token(options: &Arguments<'_>, name: &str) -> Result<Option<Token>, CommandError> {
    options.document(name)?.map(Token::read).transpose()
}

fn start(options: &Arguments<'_>) -> Result<Start, CommandError> {
    let resume = token(options, "resumeAfter")?;
    let after = token(options, "startAfter")?;
    let time = options.timestamp("startAtOperationTime")?;
    match (resume, after, time) {
        (None, None, None) => Ok(Start::Now),
        (Some(token), None, None) => Ok(Start::Resume(token)),
        (None, Some(token), None) => Ok(Start::After(token)),
        (None, None, Some(time)) => Ok(Start::At(ClusterTime(time.bits()))),
        (Some(_), Some(_), _) => refuse(
            50_865,
            "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage",
        ),
        (_, _, Some(_)) => refuse(
            40_674,
            "Only one type of resume option is allowed, but multiple were found",
        ),
    }
}

fn scope(namespace: &Namespace, whole_deployment: bool) -> Result<Scope, CommandError> {
    let Namespace {
        database,
        collection,
    } = namespace;
    if whole_deployment {
        return match (database.as_str(), collection.is_empty()) {
            ("admin", true) => Ok(Scope::Deployment),
            _ => Err(CommandError::new(
                ErrorCode::InvalidOptions,
                "A $changeStream with 'allChangesForCluster:true' may only be opened on the \
                 'admin' database, and with no collection name",
            )),
        };
    }
    if is_internal_database(database) || is_system(collection) {
        let message = format!("$changeStream may not be opened on {namespace}");
        return Err(CommandError::new(ErrorCode::InvalidNamespace, message));
    }
    Ok(if collection.is_empty() {
        Scope::Database(database.clone())
    } else {
        Scope::Collection(namespace.clone())
    })
}

fn is_system(collection: &str) -> bool {
    collection.starts_with("system.")
}

impl Scope {
    /// Returns `true` if the stream contains changes of documents in this collection.
    pub fn wants(&self, namespace: &Namespace) -> bool {
        match self {
            Scope::Collection(own) => own == namespace,
            Scope::Database(database) => {
                *database == namespace.database && !is_system(&namespace.collection)
            }
            Scope::Deployment => {
                let is_internal = is_internal_database(&namespace.database);
                !is_internal && !is_system(&namespace.collection)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, Timestamp, Value, doc};

    fn parse(name: &str, operand: impl Into<Value>) -> Result<ChangeStreamOptions, i32> {
        let (database, collection) = name.split_once('.').unwrap();
        let namespace = Namespace {
            database: database.to_owned(),
            collection: collection.to_owned(),
        };
        let operand: Value = operand.into();
        let parsed = ChangeStreamOptions::parse(&namespace, operand.as_ref());
        parsed.map_err(|error| error.code.number())
    }

    #[test]
    fn scopes_have_their_databases() {
        let check = |name: &str, options: DocumentBuf, expected: Result<Scope, i32>| {
            let found = parse(name, options.clone()).map(|parsed| parsed.scope);
            assert_eq!(found, expected, "{name} {options}");
        };
        let whole = doc! { "allChangesForCluster": true };
        let collection = Namespace {
            database: "a".to_owned(),
            collection: "c".to_owned(),
        };
        check("a.c", doc! {}, Ok(Scope::Collection(collection)));
        check("a.", doc! {}, Ok(Scope::Database("a".to_owned())));
        check("admin.", whole.clone(), Ok(Scope::Deployment));
        check("admin.c", whole.clone(), Err(72));
        check("a.", whole, Err(72));
        check("a.", doc! { "allChangesForCluster": 1 }, Err(14));
        for refused in ["admin.", "admin.c", "local.c", "config.", "a.system.views"] {
            check(refused, doc! {}, Err(73));
        }
    }

    #[test]
    fn invalid_options_are_refused() {
        let refused = |operand: Value, code: i32| {
            assert_eq!(parse("a.c", operand.clone()), Err(code), "{operand}");
        };
        let token = || doc! { "_data": "82EE6B2800000000012B0229296E04" };
        let time = || Value::Timestamp(Timestamp::from_bits(5));
        refused("x".into(), 50_808);
        refused(doc! { "nonsense": 1 }.into(), 40_415);
        refused(doc! { "fullDocument": "UpdateLookup" }.into(), 40_575);
        refused(doc! { "fullDocument": 1 }.into(), 14);
        refused(doc! { "fullDocumentBeforeChange": "x" }.into(), 40_575);
        refused(doc! { "resumeAfter": "x" }.into(), 14);
        refused(doc! { "startAtOperationTime": 5 }.into(), 14);
        let both = doc! { "resumeAfter": (token()), "startAfter": (token()) };
        refused(both.into(), 50_865);
        let both = doc! { "resumeAfter": (token()), "startAtOperationTime": (time()) };
        refused(both.into(), 40_674);
        let nothing = doc! { "fullDocument": null, "resumeAfter": null };
        assert_eq!(parse("a.c", nothing).map(|it| it.start), Ok(Start::Now));
    }
}
