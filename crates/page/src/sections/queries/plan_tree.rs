//! Renders a plan as a tree whose root is the step that returns the result.

use maud::{Markup, html};

use crate::show::grouped;
use crate::texts::queries as texts;

use super::plan::{Plan, PlanStep};

/// The number of bytes of a parameter that are shown collapsed.
const DETAIL_BYTES_MAX: usize = 300;
/// A scan is reported if it examines this many times the documents that it returns.
const SCAN_RATIO: i64 = 10;
/// Scans of fewer documents are not reported.
const SCAN_DOCUMENTS_MIN: i64 = 1_000;

/// Shows the totals of a plan, advice and the tree.
pub fn plan_markup(plan: &Plan) -> Markup {
    let numbers = [
        (texts::RETURNED, grouped(plan.rows)),
        (texts::KEYS, grouped(plan.keys)),
        (texts::DOCUMENTS, grouped(plan.documents)),
        (texts::TIME, texts::millis(plan.millis)),
    ];
    let reads_much = plan.documents >= SCAN_DOCUMENTS_MIN
        && plan.documents >= plan.rows.saturating_mul(SCAN_RATIO);
    html! {
        dl .cards { @for (name, value) in numbers { div { dt { (name) } dd { (value) } } } }
        @if plan.root.any(PlanStep::is_scan) && reads_much {
            p .notice .warning { (texts::SCAN_ADVICE) }
        }
        @if plan.root.any(|it| it.name == "SORT") { p .notice { (texts::SORT_ADVICE) } }
        h2 { (texts::PLAN) }
        ul .plan { (step_markup(&plan.root, plan.millis)) }
        @if !plan.rejected.is_empty() {
            details .below {
                summary { (texts::REJECTED) " (" (plan.rejected.len()) ")" }
                @for rejected in &plan.rejected { ul .plan { (step_markup(rejected, plan.millis)) } }
            }
        }
    }
}

fn step_markup(step: &PlanStep, total_millis: i64) -> Markup {
    let is_slow = step.is_slow(total_millis);
    let class = if is_slow { "step slow" } else { "step" };
    let numbers = [
        (texts::ROWS, step.rows.map(grouped)),
        (texts::KEYS, step.keys.map(grouped)),
        (texts::DOCUMENTS, step.documents.map(grouped)),
        (texts::TIME, step.own_millis().map(texts::millis)),
    ];
    html! {
        li {
            div class=(class) {
                p .step-head {
                    strong { (step.name) }
                    @if is_slow { " " span .badge .bad { (texts::SLOW_STEP) } }
                    @if step.is_scan() { " " span .badge .warning { (texts::SCAN) } }
                }
                dl .step-numbers {
                    @for (name, value) in numbers {
                        @if let Some(value) = value { div { dt { (name) } dd { (value) } } }
                    }
                }
                @if total_millis > 0 { (time_bar(step, total_millis)) }
                @for (name, value) in &step.details { (detail(name, value)) }
            }
            @if !step.inputs.is_empty() {
                ul { @for input in &step.inputs { (step_markup(input, total_millis)) } }
            }
        }
    }
}

/// Shows the share of the total time of a step as a bar.
fn time_bar(step: &PlanStep, total_millis: i64) -> Markup {
    let part = step.own_millis().unwrap_or(0) * 100 / total_millis.max(1);
    html! {
        svg .bar viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect width=(part.clamp(0, 100)) height="8" {}
        }
    }
}

fn detail(name: &str, value: &str) -> Markup {
    let (start, rest) = value.split_at(value.floor_char_boundary(DETAIL_BYTES_MAX));
    html! {
        p .detail {
            @if !name.is_empty() { span .muted { (name) ": " } }
            code { bdi { (start) @if !rest.is_empty() { "…" } } }
        }
    }
}
