//! A value of a facet.

use maud::{Markup, html};

use super::address::{PATH, SearchAddress};
use crate::show::{grouped, visible};

/// Shows a value as a link that adds it to the filters, or removes it if it is active.
pub fn value(
    address: &SearchAddress,
    filter: &str,
    value: &str,
    label: &str,
    count: i64,
) -> Markup {
    let is_chosen = address.filter(filter) == Some(value);
    let link = address.with(filter, (!is_chosen).then_some(value)).at(PATH);
    html! {
        a .value href=(link) aria-current=[is_chosen.then_some("true")] {
            span .name title=(visible(label)) { (visible(label)) }
            span .count { (grouped(count)) }
        }
    }
}
