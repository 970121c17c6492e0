//! Indexes.

pub const NAME: &str = "Indexes";
pub const TITLE: &str = "Indexes";
pub const COLLECTION: &str = "Collection";
pub const INDEX: &str = "Index";
pub const ALL_INDEXES: &str = "All indexes";
pub const SIZE: &str = "Size";
pub const ENTRIES: &str = "Entries";
pub const ENTRIES_HINT: &str = "Entries of stored sections; the newest writes are in memory.";
pub const COST: &str = "Entries a document";
pub const COST_HINT: &str = "What a write of a document costs: an entry takes about a microsecond on \
    another thread, and its bytes on the disk.";
pub const USES: &str = "Uses";
pub const ADVICE: &str = "Advice";
pub const NONE: &str = "There are no indexes.";
pub const UNKNOWN: &str = "–";
pub const BUILDING: &str = "being built";
pub const NOT_ALL: &str = "Only the first collections are shown.";
pub const ADVICE_ONLY: &str = "Only with advice";
pub const ALL: &str = "All";
pub const SHOW: &str = "Indexes shown";
pub const OF_COLLECTION: &str = "Indexes of the collection";

/// The labels of index options, in the order of the table.
pub const OPTIONS: [(&str, &str); 5] = [
    ("unique", "unique"),
    ("sparse", "sparse"),
    ("hidden", "hidden"),
    ("partialFilterExpression", "partial"),
    ("collation", "collation"),
];

/// Says when documents expire.
pub fn expires(seconds: i64) -> String {
    format!("expires after {}", crate::show::duration(seconds as f64))
}

/// Says since when uses are counted.
pub fn since(date: &str) -> String {
    format!("since {date}")
}

pub const UNUSED: &str = "No query has used it yet.";
pub const HIDDEN: &str = "Hidden: no query uses it, but each write updates it.";

/// Says that the index is a prefix of another index.
pub fn prefix_of(other: &str) -> String {
    format!("{other} begins with the same fields and can do the same.")
}

/// Says that another index has the same key.
pub fn same_as(other: &str) -> String {
    format!("{other} has the same key.")
}

pub const BUILDS: &str = "Running builds";
pub const NO_BUILDS: &str = "No index is being built.";
pub const PHASE: &str = "Phase";
pub const PROGRESS: &str = "Progress";
pub const RATE: &str = "Documents per second";
pub const LEFT: &str = "Time left";
pub const STARTING: &str = "starting";

/// Says how many documents of a build are done.
pub fn documents_of(done: i64, total: i64) -> String {
    let (done, total) = (crate::show::grouped(done), crate::show::grouped(total));
    format!("{done} of {total} documents")
}

pub const CREATE: &str = "Create an index";
pub const CREATE_KEY: &str = "Key";
pub const CREATE_KEY_HINT: &str = "1 and -1 are directions; \"text\", \"hashed\", \"2dsphere\" and { \"$**\": 1 } are other kinds.";
pub const CREATE_NAME: &str = "Name, if it is to be another one than that of the key";
pub const UNIQUE: &str = "Unique: no two documents have the same values";
pub const SPARSE: &str = "Sparse: without documents that lack the fields";
pub const EXPIRE: &str = "Documents expire after so many seconds";
pub const PARTIAL: &str = "Only documents that match this filter";
pub const MORE: &str = "Other options";
pub const CREATE_SUBMIT: &str = "Create";
pub const EXPIRE_ERROR: &str = "The time of expiry is a number of seconds.";
pub const KEY_ERROR: &str = "The key has at least one field.";
pub const CREATED: &str = "The index is ready.";
pub const BUILD_STARTED: &str =
    "The index is being built. It may take a while; this page can be left.";
pub const DROP: &str = "Drop";
pub const DROPPED: &str = "The index was dropped.";
pub const ACTION: &str = "Action";

/// Names the button that drops an index.
pub fn drop(name: &str) -> String {
    format!("Drop index {name}")
}

/// Asks before an index is dropped.
pub fn confirm_drop(name: &str) -> String {
    format!("Drop index {name}? Queries that use it become slower, until it is built again.")
}

/// Says which field of the form is wrong.
pub fn field_error(field: &str, message: &str) -> String {
    format!("{field}: {message}.")
}

pub const SEARCH_INDEXES: &str = "Search indexes";
pub const STATUS: &str = "Status";
pub const DEFINITION: &str = "Definition";
pub const SEARCH_READY: &str = "ready";
pub const SEARCH_BUILDING: &str = "being built";
pub const SEARCH_UPDATING: &str = "being replaced, the older definition answers";
pub const ALL_FIELDS: &str = "all fields";
pub const SOME_FIELDS: &str = "the fields of the definition";
pub const CREATE_SEARCH: &str = "Create a search index";
pub const CREATE_SEARCH_LEAD: &str =
    "For the stage $search of an aggregation: words with analyzers, numbers, dates, facets.";
pub const SEARCH_NAME: &str = "Name of the search index";
pub const SEARCH_DEFINITION: &str = "Definition of the search index";
pub const SEARCH_DEFINITION_HINT: &str = "The one given takes all fields. With dynamic: false, only those in fields: \
    { mappings: { dynamic: false, fields: { title: { type: \"string\" } } } }";
/// The default definition in the form.
pub const SEARCH_DEFINITION_DEFAULT: &str = "{\n  mappings: { dynamic: true }\n}";
pub const SEARCH_NAME_DEFAULT: &str = "default";

/// Names the button that drops a search index.
pub fn drop_search(name: &str) -> String {
    format!("Drop search index {name}")
}

/// Asks before a search index is dropped.
pub fn confirm_drop_search(name: &str) -> String {
    format!(
        "Drop search index {name}? Searches with $search that name it fail, until it is built again."
    )
}
