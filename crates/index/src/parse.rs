//! Parses MongoDB's index specifications, and builds the normal form that `listIndexes` returns
//! (<https://www.mongodb.com/docs/manual/reference/command/createIndexes/>).

mod geo;
mod key;
mod options;
mod search_index;
mod text;
mod wildcard;

use std::sync::Arc;

use windrow_document::{Collation, Document, DocumentBuf, ValueRef, doc};
use windrow_mql::Error;

use crate::definition::{Definition, KeyKind, TextDefinition};
use crate::search;
use geo::SPHERE_VERSION;
use key::Family;
use options::{
    check_storage_engine, collation, expire_after_seconds, flag_of, partial_of, version_of,
};

pub use options::{EXPIRE_SECONDS_MAX, check_version};

const CANNOT_CREATE: i32 = 67;
const INVALID_OPTION: i32 = 197;
const INVALID_OPTIONS: i32 = 72;

/// The supported options. Options of another kind of index are ignored and stored unchanged.
const OPTIONS: &[&str] = &[
    "2dsphereIndexVersion",
    "background",
    "bits",
    "bucketSize",
    "coarsestIndexedLevel",
    "collation",
    "default_language",
    "dropDups",
    "expireAfterSeconds",
    "finestIndexedLevel",
    "hidden",
    "key",
    "language_override",
    "max",
    "min",
    "name",
    "ns",
    "partialFilterExpression",
    "positions",
    "prepareUnique",
    "sparse",
    "storageEngine",
    "textIndexVersion",
    "unique",
    "v",
    "weights",
    "wildcardProjection",
];

/// The options that an index on `_id` may have.
const ID_OPTIONS: &[&str] = &["collation", "key", "name", "ns", "v"];

/// The name of the index on `_id`. A name in the specification is ignored.
const ID_NAME: &str = "_id_";

/// The error code if a hashed index is unique.
const HASHED_UNIQUE: i32 = 16764;

fn cannot(message: String) -> Error {
    Error::new(CANNOT_CREATE, message)
}

impl Definition {
    /// Parses the specification of a new index. `default` is the collation of the collection. It
    /// applies to an index without a collation of its own, and always to the index on `_id`.
    ///
    /// Fails with MongoDB's code if the specification is not valid. This function is stricter than
    /// [`Definition::parse`].
    pub fn parse_within(
        specification: Document<'_>,
        default: Option<&Arc<Collation>>,
    ) -> Result<Definition, Error> {
        check_known(specification)?;
        let definition = Definition::parse_completed(specification, default)?;
        definition.check_new(specification)?;
        Ok(definition)
    }

    /// Checks the requirements for new indexes only. [`Definition::parse`] skips them, since a
    /// database may contain indexes from before these checks and must still open.
    fn check_new(&self, specification: Document<'_>) -> Result<(), Error> {
        check_version(specification)?;
        if self.name.starts_with(search::NAME_PREFIX) {
            return Err(cannot(format!(
                "index names that begin with '{}' are reserved for search indexes",
                search::NAME_PREFIX
            )));
        }
        if let Some(ValueRef::Document(filter)) = specification.get("partialFilterExpression") {
            crate::partial::check_depth(filter)?;
        }
        match specification.get("key") {
            Some(ValueRef::Document(key)) if self.is_text() => key::check_directions(key),
            _ if specification.contains("positions") => Err(cannot(
                "the option positions is for text indexes only".to_owned(),
            )),
            _ => text::check_languages(specification),
        }
    }

    /// Parses a specification with the default collation inserted.
    fn parse_completed(
        specification: Document<'_>,
        default: Option<&Arc<Collation>>,
    ) -> Result<Definition, Error> {
        let Some(default) = default else {
            return Definition::parse(specification);
        };
        let key = specification.get("key").and_then(ValueRef::as_document);
        if key.is_some_and(is_key_of_ids) {
            check_collation_of_ids(specification, Some(default))?;
            let others = specification
                .iter()
                .filter(|(name, _)| *name != "collation");
            Definition::parse(others.collect::<DocumentBuf>().as_document())?;
            return Ok(Definition::new_id_index(Some(default.clone())));
        }
        let is_old = matches!(version_of(specification), Ok(1));
        if is_old || specification.contains("collation") {
            return Definition::parse(specification);
        }
        let mut completed = specification.to_buf();
        completed.push("collation", default.specification());
        Definition::parse(completed.as_document())
    }

    /// Parses a specification `{key: …, name: …, options…}`, also one of an existing index. Fails
    /// with MongoDB's code if it is not valid.
    pub fn parse(specification: Document<'_>) -> Result<Definition, Error> {
        if specification.contains(search::OPTION) {
            return search_index::definition(specification);
        }
        check_known(specification)?;
        let key = key_of(specification)?;
        let name = name_of(specification)?;
        let version = version_of(specification)?;
        if is_key_of_ids(key) {
            check_of_ids(specification, key)?;
            return Ok(Definition::new_id_index(None));
        }
        if name == ID_NAME {
            return Err(Error::bad_value(format!(
                "The index name '_id_' is reserved for the _id index, which must have key pattern \
                 {{_id: 1}}, found {key}"
            )));
        }
        check_storage_engine(specification)?;
        let family = Family::from_key(key);
        let fields = key::fields(key, family)?;
        geo::check_plane_fields(&fields)?;
        let flag = |name| flag_of(specification, name);
        let collation = collation(specification)?;
        let parts = Definition {
            geo: geo::definition(&fields, specification)?,
            name,
            fields,
            unique: flag("unique")?,
            prepare_unique: flag("prepareUnique")?,
            sparse: flag("sparse")?,
            hidden: flag("hidden")?,
            clustered: false,
            partial: partial_of(specification, collation.clone())?,
            collation,
            expire_after_seconds: expire_after_seconds(specification)?,
            text: (family == Family::Text)
                .then(|| text::definition(key, specification))
                .transpose()?,
            wildcard: (family == Family::Wildcard)
                .then(|| match key.count() {
                    1 => wildcard::definition(key, specification),
                    _ => wildcard::definition(key, specification).map_err(wildcard::compound_error),
                })
                .transpose()?,
            search: None,
            specification: DocumentBuf::new(),
        };
        check_together(&parts, specification, family, version)?;
        let text = parts.text.as_ref();
        let specification = normal_form(specification, version, key, &parts, text);
        Ok(Definition {
            specification,
            // A wildcard index has no entry for a path at which a document has no value.
            sparse: parts.sparse || parts.wildcard.is_some(),
            ..parts
        })
    }
}

fn key_of(specification: Document<'_>) -> Result<Document<'_>, Error> {
    match specification.get("key") {
        Some(ValueRef::Document(key)) => Ok(key),
        Some(other) => {
            let name = other.type_of().name();
            let message = format!("The field 'key' must be an object, but got {name}");
            Err(Error::type_mismatch(message))
        }
        None => Err(Error::failed_to_parse(
            "The 'key' field is a required property",
        )),
    }
}

/// Fails if options exclude each other or the kind of index does not support them.
fn check_together(
    parts: &Definition,
    specification: Document<'_>,
    family: Family,
    version: i32,
) -> Result<(), Error> {
    if parts.sparse && parts.partial.is_some() {
        return Err(cannot(
            "cannot mix \"partialFilterExpression\" and \"sparse\" options".to_owned(),
        ));
    }
    if parts.unique && parts.prepare_unique {
        return Err(cannot(
            "cannot set both \"unique\" and \"prepareUnique\" options".to_owned(),
        ));
    }
    if family != Family::Wildcard && specification.contains("wildcardProjection") {
        return Err(wildcard::projection_not_allowed());
    }
    let expires = specification.contains("expireAfterSeconds");
    if expires
        && specification
            .get("key")
            .and_then(ValueRef::as_document)
            .is_some_and(|key| key.count() > 1)
    {
        return Err(cannot(
            "TTL indexes are single-field indexes, compound indexes do not support TTL".to_owned(),
        ));
    }
    let unsupported = |kind: &str, option: &str| {
        Err(cannot(format!(
            "Index type '{kind}' does not support the {option} option"
        )))
    };
    if let Some(wildcard) = &parts.wildcard {
        let projection = specification.get("wildcardProjection");
        wildcard::check_beside(wildcard, &parts.fields, projection)?;
    }
    match family {
        Family::Hashed if parts.enforces_uniqueness() => Err(Error::new(
            HASHED_UNIQUE,
            "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.",
        )),
        Family::Text if parts.collation.is_some() => Err(cannot(
            "text indexes have no collation but {locale: 'simple'}".to_owned(),
        )),
        Family::Plain if is_plane(parts) && parts.collation.is_some() => Err(cannot(
            "2d indexes have no collation but {locale: 'simple'}".to_owned(),
        )),
        // The keys of a unique text index contain the score (see `Definition::text_entries`), so a
        // conversion would have to rewrite its entries.
        Family::Text if parts.prepare_unique => unsupported("text", "prepareUnique"),
        Family::Wildcard if parts.enforces_uniqueness() => unsupported("wildcard", "unique"),
        Family::Wildcard if parts.sparse => unsupported("wildcard", "sparse"),
        Family::Wildcard if expires => unsupported("wildcard", "expireAfterSeconds"),
        Family::Wildcard if version == 1 => unsupported("wildcard", "v: 1"),
        _ => Ok(()),
    }
}

/// Fails with code 197 if the specification has an unknown option.
fn check_known(specification: Document<'_>) -> Result<(), Error> {
    let mut names = specification.iter().map(|(name, _)| name);
    match names.find(|name| !OPTIONS.contains(name)) {
        None => Ok(()),
        Some(name) => Err(Error::new(
            INVALID_OPTION,
            format!("The field '{name}' is not valid for an index specification"),
        )),
    }
}

fn name_of(specification: Document<'_>) -> Result<String, Error> {
    match specification.get("name") {
        Some(ValueRef::String("")) => Err(cannot("index name cannot be empty".to_owned())),
        Some(ValueRef::String("*")) => Err(Error::bad_value("The index name '*' is not valid.")),
        Some(ValueRef::String(name)) if name.contains('\0') => {
            Err(cannot("index names cannot contain NUL bytes".to_owned()))
        }
        Some(ValueRef::String(name)) => Ok(name.to_owned()),
        Some(other) => Err(Error::type_mismatch(format!(
            "The field 'name' must be a string, but got {}",
            other.type_of().name()
        ))),
        None => Err(Error::failed_to_parse(
            "The 'name' field is a required property",
        )),
    }
}

/// Returns `true` if the key is `_id` alone, in either direction.
fn is_key_of_ids(key: Document<'_>) -> bool {
    let direction = key.get("_id").and_then(ValueRef::as_f64);
    key.count() == 1 && direction.is_some_and(|direction| direction.abs() == 1.0)
}

fn check_of_ids(specification: Document<'_>, key: Document<'_>) -> Result<(), Error> {
    if key.get("_id").and_then(ValueRef::as_f64) != Some(1.0) {
        return Err(Error::bad_value(format!(
            "The field 'key' for an _id index must be {{_id: 1}}, but got {key}"
        )));
    }
    check_options_of_ids(specification)?;
    check_collation_of_ids(specification, None)
}

/// Fails with code 197 if a specification has an option that the index on `_id` does not support.
pub fn check_options_of_ids(specification: Document<'_>) -> Result<(), Error> {
    let mut names = specification.iter().map(|(name, _)| name);
    match names.find(|name| !ID_OPTIONS.contains(name)) {
        None => Ok(()),
        Some(name) => Err(Error::new(
            INVALID_OPTION,
            format!("The field '{name}' is not valid for an _id index specification"),
        )),
    }
}

/// Returns the specification without unknown options, as `ignoreUnknownIndexOptions` demands.
pub fn without_unknown_options(specification: Document<'_>) -> DocumentBuf {
    let known = |(name, _): &(&str, ValueRef<'_>)| OPTIONS.contains(name);
    specification.iter().filter(known).collect()
}

/// Fails with code 2 if an index on `_id` has another collation than its collection.
fn check_collation_of_ids(
    specification: Document<'_>,
    of_collection: Option<&Arc<Collation>>,
) -> Result<(), Error> {
    match collation(specification) {
        Ok(collation) if collation.as_ref() == of_collection => Ok(()),
        Ok(None) if !specification.contains("collation") => Ok(()),
        _ => Err(Error::bad_value(
            "The _id index must have the same collation as the collection",
        )),
    }
}

/// Returns the normal form in MongoDB's order: version, `unique`, key, name, then the options in
/// the order of the specification.
fn normal_form(
    specification: Document<'_>,
    version: i32,
    key: Document<'_>,
    parts: &Definition,
    text: Option<&TextDefinition>,
) -> DocumentBuf {
    let already_stored = key.contains("_fts");
    let stored = text::stored_key(key, text.is_some() && !already_stored);
    let version_of_text = text.map(|text| text.version.number());
    let is_set = |option| specification.get(option).is_some_and(ValueRef::is_truthy);
    let mut normal = doc! { "v": version };
    if is_set("unique") {
        normal.push("unique", true);
    }
    normal.push("key", stored);
    normal.push("name", parts.name.as_str());
    let text = text.map(|text| text::options(specification, text));
    for (option, value) in specification {
        match text.as_ref().and_then(|text| text.get(option)) {
            Some(text) => normal.push(option, text),
            None if option == "collation" => {
                if let Some(collation) = &parts.collation {
                    normal.push(option, collation.specification());
                }
            }
            None if is_kept(option, value, text.is_some()) => normal.push(option, value),
            None => {}
        }
    }
    // Default values follow at the end, and `textIndexVersion` is always last.
    for (option, value) in text.iter().flat_map(DocumentBuf::iter) {
        if normal.get(option).is_none() {
            normal.push(option, value);
        }
    }
    let sphere = parts.geo.as_ref().filter(|_| !is_plane(parts));
    if let Some(geo) = sphere.filter(|_| !specification.contains(SPHERE_VERSION)) {
        normal.push(SPHERE_VERSION, geo.version);
    }
    if let Some(version) = version_of_text {
        normal.push("textIndexVersion", version);
    }
    normal
}

fn is_plane(parts: &Definition) -> bool {
    parts
        .fields
        .iter()
        .any(|field| field.kind == KeyKind::Plane)
}

/// Returns `true` if an option is stored unchanged.
fn is_kept(option: &str, value: ValueRef<'_>, is_text: bool) -> bool {
    match option {
        "collation" | "dropDups" | "key" | "name" | "ns" | "unique" | "v" => false,
        "hidden" | "prepareUnique" => value.is_truthy(),
        "textIndexVersion" => !is_text,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a specification. `expected` is the normal form or the code of the error.
    pub(super) fn check(specification: DocumentBuf, expected: Result<DocumentBuf, i32>) {
        let parsed = Definition::parse(specification.as_document());
        let found = parsed
            .map(|it| it.specification)
            .map_err(|error| error.code);
        assert_eq!(found, expected, "{specification}");
    }

    #[test]
    fn requirements_for_new_indexes_do_not_apply_to_existing_ones() {
        let deep = doc! { "$and": [{ "$and": [{ "$and": [{ "$and": [{ "b": 3 }] }] }] }] };
        let french = doc! { "locale": "fr" };
        for (specification, code) in [
            (
                doc! { "key": { "a": 1 }, "name": "x", "partialFilterExpression": deep },
                67,
            ),
            (
                doc! { "key": { "a": 1 }, "name": "x", "v": 1, "collation": french },
                67,
            ),
            (doc! { "key": { "a": "text", "b": 3 }, "name": "x" }, 67),
            (
                doc! { "key": { "a": 1 }, "name": "x", "default_language": 1 },
                14,
            ),
        ] {
            let made = Definition::parse_within(specification.as_document(), None);
            assert_eq!(made.map(drop).map_err(|error| error.code), Err(code));
            assert!(
                Definition::parse(specification.as_document()).is_ok(),
                "{specification}"
            );
        }
    }

    #[test]
    fn an_index_of_version_1_has_no_collation() {
        let french = doc! { "locale": "fr" };
        let default = windrow_mql::collation::parse(french.as_document()).unwrap();
        let of = |specification: DocumentBuf| {
            Definition::parse_within(specification.as_document(), default.as_ref())
                .map(|it| it.collation.is_some())
                .map_err(|error| error.code)
        };
        let key = || doc! { "a": 1 };
        assert_eq!(of(doc! { "key": (key()), "name": "x" }), Ok(true));
        assert_eq!(of(doc! { "key": (key()), "name": "x", "v": 1 }), Ok(false));
        for locale in ["fr", "simple"] {
            let given = doc! { "locale": locale };
            assert_eq!(
                of(doc! { "key": (key()), "name": "x", "v": 1, "collation": given }),
                Err(67)
            );
        }
    }

    #[test]
    fn specifications_have_a_normal_form() {
        check(
            doc! { "key": { "a": 1, "b": (-1) }, "name": "x", "unique": 1, "sparse": false },
            Ok(doc! {
                "v": 2, "unique": true, "key": { "a": 1, "b": (-1) }, "name": "x", "sparse": false,
            }),
        );
        check(
            doc! { "key": { "a": 1 }, "name": "x", "v": 1, "hidden": false, "dropDups": true, "max": 5 },
            Ok(doc! { "v": 1, "key": { "a": 1 }, "name": "x", "max": 5 }),
        );
        check(
            doc! { "key": { "_id": 1.0 }, "name": "x" },
            Ok(doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" }),
        );
        check(
            doc! { "key": { "a": 1 }, "name": "x", "default_language": "german" },
            Ok(doc! { "v": 2, "key": { "a": 1 }, "name": "x", "default_language": "german" }),
        );
        let normal = doc! {
            "v": 2, "key": { "p": 1, "_fts": "text", "_ftsx": 1 }, "name": "t",
            "weights": { "a": 5, "b": 1 }, "default_language": "english",
            "language_override": "language", "textIndexVersion": 3,
        };
        check(
            doc! { "key": { "p": 1, "b": "text", "a": "text" }, "name": "t", "weights": { "a": 5 } },
            Ok(normal.clone()),
        );
        check(normal.clone(), Ok(normal));
    }

    #[test]
    fn invalid_specifications_fail_with_mongodbs_codes() {
        check(doc! { "name": "x" }, Err(9));
        check(doc! { "key": { "a": 1 } }, Err(9));
        check(doc! { "key": 5, "name": "x" }, Err(14));
        check(doc! { "key": { "a": 0 }, "name": "x" }, Err(67));
        check(doc! { "key": { "a": "foo" }, "name": "x" }, Err(67));
        check(doc! { "key": { "a..b": 1 }, "name": "x" }, Err(67));
        check(doc! { "key": { "a": 1 }, "name": "x\0y" }, Err(67));
        check(doc! { "key": { "_fts": 1 }, "name": "x" }, Err(67));
        check(
            doc! { "key": { "a": "hashed", "b": "hashed" }, "name": "x" },
            Err(31303),
        );
        check(
            doc! { "key": { "a": "hashed", "b": "text" }, "name": "x" },
            Err(67),
        );
        check(
            doc! { "key": { "a": "hashed" }, "name": "x", "unique": true },
            Err(16764),
        );
        check(doc! { "key": { "a": 1 }, "name": "x", "foo": 1 }, Err(197));
        let expiring = |seconds: windrow_document::Value| {
            doc! { "key": { "a": 1 }, "name": "x", "expireAfterSeconds": seconds }
        };
        check(expiring((-1).into()), Err(67));
        check(expiring(2_147_483_648i64.into()), Err(67));
        check(expiring("1".into()), Err(67));
        check(expiring(f64::NAN.into()), Err(67));
        let prepared = |prepared: bool, unique: bool| {
            doc! { "key": { "a": 1 }, "name": "x", "unique": unique, "prepareUnique": prepared }
        };
        check(prepared(true, true), Err(67));
        check(
            prepared(false, true),
            Ok(doc! { "v": 2, "unique": true, "key": { "a": 1 }, "name": "x" }),
        );
        check(
            doc! { "key": { "a": 1, "b": 1 }, "name": "x", "expireAfterSeconds": 1 },
            Err(67),
        );
        check(doc! { "key": { "a": 1 }, "name": "_id_" }, Err(2));
        check(doc! { "key": { "_id": (-1) }, "name": "x" }, Err(2));
        check(
            doc! { "key": { "_id": 1 }, "name": "x", "unique": true },
            Err(197),
        );
        check(doc! { "key": { "a": 1 }, "name": "x", "v": 3 }, Err(67));
        check(doc! { "key": { "a": 1 }, "name": "x", "v": 1.5 }, Err(2));
        check(doc! { "key": { "a": 1 }, "name": "x", "v": "2" }, Err(14));
        check(doc! { "key": { "a.$x": 1 }, "name": "x" }, Err(67));
        check(
            doc! { "key": { "a": 1 }, "name": "x", "hidden": 1 },
            Err(14),
        );
        check(
            doc! { "key": { "a": 1 }, "name": "x", "collation": { "locale": "xx" } },
            Err(2),
        );
        check(
            doc! { "key": { "a": "text", "b": 1, "c": "text" }, "name": "x" },
            Err(67),
        );
        check(
            doc! { "key": { "a": "text" }, "name": "x", "weights": { "a": 0 } },
            Err(67),
        );
    }
}
