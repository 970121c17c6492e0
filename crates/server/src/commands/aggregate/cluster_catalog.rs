//! `$listClusterCatalog`: the collections and views of a database, or of all databases from
//! `admin`.

use windrow_collection::Namespace;
use windrow_document::{ArrayBuf, DocumentBuf, ValueRef};
use windrow_wire::CommandError;

use super::document_list::Describe;
use super::stage_options;
use crate::commands::list_collections;
use crate::context::Context;
use crate::errors::refuse;

/// Optional fields. The second one is always absent without shards.
const FLAGS: [&str; 2] = ["shards", "balancingConfiguration"];

/// Lists the collections.
///
/// # Errors
///
/// - 9621301: a collection is named.
/// - 9621302, 14, 40415: invalid options.
pub fn describe<'c>(
    context: &'c Context<'_>,
    namespace: &'c Namespace,
    is_collectionless: bool,
    operand: ValueRef<'_>,
) -> Result<Describe<'c>, CommandError> {
    let with_shards = parse_shards(operand)?;
    if !is_collectionless {
        let message = "$listClusterCatalog must be run against the database with {aggregate: 1}";
        return refuse(9_621_301, message);
    }
    Ok(Box::new(move || {
        collect(context, &namespace.database, with_shards)
    }))
}

fn collect(
    context: &Context<'_>,
    database: &str,
    with_shards: bool,
) -> Result<Vec<DocumentBuf>, CommandError> {
    let databases = match database {
        "admin" => context.state.services.engine.databases(),
        one => vec![one.to_owned()],
    };
    let mut described = Vec::new();
    for database in databases {
        let listed = list_collections::describe_all(context, &database, false)?;
        described.extend(listed.iter().map(|one| entry(&database, one, with_shards)));
    }
    Ok(described)
}

fn parse_shards(operand: ValueRef<'_>) -> Result<bool, CommandError> {
    if operand.as_document().is_none() {
        return refuse(9_621_302, "$listClusterCatalog must take a nested object");
    }
    let options = stage_options::parse("$listClusterCatalog", operand, &FLAGS)?;
    options.non_null_bool("balancingConfiguration")?;
    Ok(options.non_null_bool("shards")?.unwrap_or(false))
}

/// Returns the entry of a collection: that of `listCollections`, with the name of the database and
/// the fields of a collection that is not sharded.
fn entry(database: &str, listed: &DocumentBuf, with_shards: bool) -> DocumentBuf {
    let mut entry = DocumentBuf::new();
    for (name, value) in listed.iter() {
        match (name, value.as_str()) {
            ("name", Some(collection)) => {
                entry.push("ns", format!("{database}.{collection}"));
                entry.push("db", database);
            }
            _ => entry.push(name, value),
        }
    }
    entry.push("sharded", false);
    if with_shards {
        entry.push("shards", ArrayBuf::new());
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Value, doc};

    #[test]
    fn options_are_booleans() {
        let check = |operand: Value, expected: Result<bool, i32>| {
            let found = parse_shards(operand.as_ref()).map_err(|error| error.code.number());
            assert_eq!(found, expected, "{operand}");
        };
        check(doc! {}.into(), Ok(false));
        check(
            doc! { "shards": true, "balancingConfiguration": true }.into(),
            Ok(true),
        );
        check(doc! { "shards": null }.into(), Err(14));
        check(doc! { "balancingConfiguration": 1 }.into(), Err(14));
        check(doc! { "Shards": true }.into(), Err(40415));
        check(Value::Null, Err(9_621_302));
    }
}
