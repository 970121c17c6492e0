//! The steps of a recorded conversation.

use windrow_document::{Document, ValueRef};

/// A command and MongoDB's reply.
pub struct Step<'c> {
    pub run: Document<'c>,
    pub reply: Document<'c>,
    /// `true` if the order of the result does not matter.
    #[allow(dead_code, reason = "not every test has recordings of finds")]
    pub is_unordered: bool,
}

/// The steps of a case, in order.
pub fn steps(case: Document<'_>) -> impl Iterator<Item = Step<'_>> {
    let steps = case.get("steps").and_then(ValueRef::as_array);
    let steps = steps.expect("steps").iter();
    steps.filter_map(ValueRef::as_document).map(|step| {
        let part = |name| step.get(name).and_then(ValueRef::as_document);
        Step {
            run: part("run").expect("run"),
            reply: part("reply").expect("reply"),
            is_unordered: step.get("compare") == Some(ValueRef::String("unordered")),
        }
    })
}
