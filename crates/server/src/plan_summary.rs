//! A summary of a plan in one line, for logs and `currentOp`: "IXSCAN { a: 1 }", "COLLSCAN".

use windrow_document::{Document, ValueRef};
use windrow_query::plan::Plan;

/// Returns the sources that the plan reads, in order.
pub fn summarize(plan: &Plan) -> String {
    let mut leaves = Vec::new();
    collect(plan, &mut leaves);
    leaves.join(", ")
}

fn collect(plan: &Plan, leaves: &mut Vec<String>) {
    match plan {
        Plan::Eof => leaves.push("EOF".to_owned()),
        Plan::CollectionScan { .. } => leaves.push("COLLSCAN".to_owned()),
        Plan::IdHack {
            clustered: false, ..
        } => leaves.push("IDHACK".to_owned()),
        Plan::IdHack {
            clustered: true, ..
        }
        | Plan::ClusteredScan(_) => leaves.push("CLUSTERED_IXSCAN".to_owned()),
        Plan::IndexScan(scan) => {
            let key = key_pattern(scan.index.definition.key_pattern());
            leaves.push(format!("{} {key}", scan.stage()));
        }
        Plan::Text { scan, within } => {
            let key = key_pattern(scan.definition.key_pattern());
            leaves.push(format!("TEXT_MATCH {key}"));
            if let Some(within) = within {
                collect(within, leaves);
            }
        }
        other => other
            .inputs()
            .into_iter()
            .for_each(|input| collect(input, leaves)),
    }
}

/// Returns the key pattern of an index. Of a number, it has only the sign.
fn key_pattern(pattern: Document<'_>) -> String {
    let field = |(name, value): (&str, ValueRef<'_>)| match value {
        ValueRef::String(kind) => format!("{name}: \"{kind}\""),
        number if number.as_f64().is_some_and(|number| number < 0.0) => format!("{name}: -1"),
        _ => format!("{name}: 1"),
    };
    let fields: Vec<String> = pattern.iter().map(field).collect();
    format!("{{ {} }}", fields.join(", "))
}

/// Returns `true` if a step of the plan sorts.
pub fn sorts(plan: &Plan) -> bool {
    matches!(plan, Plan::Sort { .. }) || plan.inputs().into_iter().any(sorts)
}

/// Adds the names of the indexes that a plan reads.
pub fn collect_indexes(plan: &Plan, names: &mut Vec<String>) {
    match plan {
        Plan::IndexScan(scan) => names.push(scan.index.definition.name.clone()),
        Plan::Text { scan, within } => {
            names.push(scan.definition.name.clone());
            if let Some(within) = within {
                collect_indexes(within, names);
            }
        }
        other => other
            .inputs()
            .into_iter()
            .for_each(|input| collect_indexes(input, names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Value, doc};
    use windrow_query::Direction;

    #[test]
    fn the_summary_names_the_leaves_of_a_plan() {
        let check = |plan: Plan, expected: &str| assert_eq!(summarize(&plan), expected);
        let scan = || Plan::CollectionScan {
            direction: Direction::Forward,
            filter: None,
        };
        let id = || Plan::IdHack {
            id: Value::from(doc! { "a": 1 }),
            clustered: false,
        };
        check(Plan::Eof, "EOF");
        check(
            Plan::Limit {
                amount: 1,
                input: Box::new(scan()),
            },
            "COLLSCAN",
        );
        check(Plan::Or(vec![id(), scan()]), "IDHACK, COLLSCAN");
    }

    #[test]
    fn a_key_pattern_shows_directions_and_kinds() {
        let pattern = doc! { "a": 1.0, "b": (-2i64), "c": "2dsphere" };
        let expected = r#"{ a: 1, b: -1, c: "2dsphere" }"#;
        assert_eq!(key_pattern(pattern.as_document()), expected);
    }
}
