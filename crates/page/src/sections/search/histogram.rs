//! The time facet: an SVG histogram with a bar for each year or month.

use maud::{Markup, html};

use super::address::{PATH, SearchAddress};
use crate::show::grouped;
use crate::texts::search as texts;

/// A bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    /// The year (`2026`) or month (`2026-01`), as in the filter of the address.
    pub value: String,
    /// The number of documents.
    pub count: i64,
}

/// The view box of the image, which is stretched to the width of its column.
const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 64.0;
const GAP: f64 = 1.5;

/// Draws the bars. Each bar is a link that filters by its period. A script adds the selection of
/// ranges.
pub fn histogram(bars: &[Bar], address: &SearchAddress) -> Markup {
    let most = bars.iter().map(|bar| bar.count).max().unwrap_or(1).max(1) as f64;
    let step = WIDTH / bars.len().max(1) as f64;
    let chosen = address.filter("date");
    let (first, last) = (bars.first(), bars.last());
    html! {
        div .histogram data-histogram=(PATH) {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="group"
                aria-label=(texts::HISTOGRAM) {
                @for (at, bar) in bars.iter().enumerate() {
                    @let is_chosen = chosen.is_some_and(|range| contains(range, &bar.value));
                    @let height = (bar.count as f64 / most * HEIGHT).max(if bar.count > 0 { 2.0 } else { 0.0 });
                    @let label = texts::bar(&bar.value, &grouped(bar.count));
                    a href=(address.with("date", Some(&bar.value)).at(PATH)) data-value=(bar.value)
                        aria-label=(label) aria-current=[is_chosen.then_some("true")] {
                        rect .ground x=(place(at, step)) y="0" width=(width(step)) height=(HEIGHT) {}
                        rect .bar x=(place(at, step)) y=(format!("{:.1}", HEIGHT - height))
                            width=(width(step)) height=(format!("{height:.1}")) {}
                        title { (label) }
                    }
                }
            }
            @if let (Some(first), Some(last)) = (first, last) {
                p .ends aria-hidden="true" { span { (first.value) } span { (last.value) } }
            }
            @if chosen.is_some() {
                p { a href=(address.with("date", None).at(PATH)) { (texts::ALL_TIMES) } }
            }
        }
    }
}

fn place(at: usize, step: f64) -> String {
    format!("{:.2}", at as f64 * step)
}

fn width(step: f64) -> String {
    format!("{:.2}", (step - GAP).max(step * 0.6))
}

/// Returns `true` if a period is within a range such as `2023..2024-05`.
fn contains(range: &str, value: &str) -> bool {
    let (from, to) = range.split_once("..").unwrap_or((range, range));
    // Dates are ordered as strings. A longer date belongs to the period that is its prefix.
    let is_behind = from.is_empty() || value >= from || from.starts_with(value);
    let is_before = to.is_empty() || value <= to || value.starts_with(to);
    is_behind && is_before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_within_ranges() {
        let cases = [
            ("2024", "2024-03", true),
            ("2024", "2023-12", false),
            ("2023..2024", "2024-12", true),
            ("2023-05..2024", "2023-04", false),
            ("2023-05..2024", "2023-05", true),
            ("..2024", "1999", true),
            ("2024..", "2025-01", true),
            ("2024-02", "2024", true),
            ("2024-02", "2025", false),
        ];
        for (range, value, expected) in cases {
            assert_eq!(contains(range, value), expected, "{range} {value}");
        }
    }
}
