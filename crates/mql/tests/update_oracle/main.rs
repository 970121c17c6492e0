//! Replays recorded conversations about updates, with this crate and a collection in memory. The
//! tests run if WINDROW_ORACLE is the folder of the recordings:
//!
//!     WINDROW_ORACLE=… cargo test -p windrow-mql --test update_oracle -- --nocapture
//!
//! Cases that need more (indexes, collations, other commands) are skipped.

mod collection;
#[path = "../json/mod.rs"]
mod json;
#[path = "../recorded/mod.rs"]
mod recorded;

use recorded::Step;
use windrow_document::{Document, ValueRef};

use collection::{Collection, Refusal};

/// Cases that contradict MongoDB's manual: names that start with a dollar sign ("Dollar-Prefixed
/// Field Names") and operators with empty operands ("Update Operators Behavior"), both since
/// MongoDB 5.0.
const DELIBERATE: &[&str] = &[
    "find_and_modify/update/error-empty-operator",
    "random_update/indexed/0018",
    "random_update/indexed/0645",
    "random_update/indexed/0966",
    "random_update/plain/0233",
    "random_update/plain/0289",
    "random_update/plain/0730",
    "random_update/plain/0767",
    "random_update/plain/0889",
    "update/add-to-set/field-before-each",
    "update/malformed/one-empty-operator",
    "update/paths-bad/set-dollar-inside",
    "update/push/each-object-with-dollar",
    "update/replace/dollar-nested",
    "update/replace/dollar-nested-in-array",
];

/// Cases in which an index decides which of several documents a statement selects.
const ORDER_OF_AN_INDEX: &[&str] = &["random_update/indexed/0810", "random_update/indexed/0906"];

#[test]
fn updates_answer_as_recorded() {
    let Ok(folder) = std::env::var("WINDROW_ORACLE") else {
        return;
    };
    let mut differences = 0;
    for area in ["update", "random_update", "find_and_modify"] {
        let path = format!("{folder}/cases/{area}.jsonl");
        let lines = std::fs::read_to_string(&path).expect(&path);
        let (mut passed, mut deliberate) = (0, 0);
        let mut skipped = std::collections::BTreeMap::new();
        for line in lines.lines() {
            let case = json::parse(line);
            let case = case.as_ref().as_document().expect("a case");
            let name = case.get("name").and_then(ValueRef::as_str).expect("a name");
            match run(case) {
                _ if ORDER_OF_AN_INDEX.contains(&name) => {}
                _ if DELIBERATE.contains(&name) => deliberate += 1,
                Ok(()) => passed += 1,
                Err(Refusal::Skipped(why)) => *skipped.entry(why).or_insert(0) += 1,
                Err(Refusal::Difference(what)) => {
                    differences += 1;
                    println!("{name}: {what}");
                }
            }
        }
        println!(
            "{area}: {passed} as recorded, {deliberate} deliberately not, skipped: {skipped:?}"
        );
    }
    assert_eq!(differences, 0, "differences to the recordings");
}

fn run(case: Document<'_>) -> Result<(), Refusal> {
    let mut collection = Collection::default();
    for Step { run, reply, .. } in recorded::steps(case) {
        collection.step(run, reply)?;
    }
    Ok(())
}
