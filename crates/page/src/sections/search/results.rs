//! Shows the results of a search as a list or a table.

use maud::{Markup, PreEscaped, html};
use windrow_file_query::TimeContext;
use windrow_file_search::{SearchResult, Snippet, TextLocation};

use super::address::{PAGES_MAX, PATH, SearchAddress};
use super::prepared_search::{Results, Search};
use crate::data_table::table_frame;
use crate::show::{bytes, grouped, name_alone, sentence, visible};
use crate::texts::search as texts;

/// Shows a page of results, with suggestions if there are few. `total` is the number of all
/// results, if it is known.
pub fn show_results(
    search: &Search,
    results: &Results,
    total: Option<i64>,
    address: &SearchAddress,
) -> Markup {
    let times = TimeContext::system();
    html! {
        h2 .visually-hidden { (texts::RESULTS) }
        div .summary {
            p #summary role="status" { (summary(results, total, address)) }
            (view_links(address))
        }
        (chips(address))
        @for note in &search.notes {
            p .notice { (visible(&sentence(note))) "." }
        }
        @if let Some(words) = results.found.words_found {
            p .notice { (texts::some_words(words)) }
        }
        @if let Some(suggestion) = &results.found.suggestion {
            p .suggestion {
                (texts::DID_YOU_MEAN) " "
                a href=(address.with("q", Some(suggestion)).at(PATH)) { (suggestion) }
            }
        }
        @if results.all.is_empty() {
            div .empty {
                p { (texts::NOTHING) }
                @if let Some(reason) = &results.found.reason { p .small { (sentence(reason)) } }
            }
        } @else if address.is_table() {
            (table(results, &times, address))
        } @else {
            ol #hits .hits start=((address.page() - 1) * super::address::PAGE_SIZE + 1) {
                @for result in &results.all { (item(result, &times, address)) }
            }
        }
        (pages(results, address))
    }
}

fn summary(results: &Results, total: Option<i64>, address: &SearchAddress) -> Markup {
    let is_whole = !results.has_more && address.page() == 1;
    let total = match total {
        _ if is_whole => Some(results.all.len() as i64),
        total => total,
    };
    html! {
        @match total {
            Some(total) => (texts::documents(total, &grouped(total))),
            None => span data-total="1" { (texts::MANY_DOCUMENTS) },
        }
        @if let Some(like) = address.like() {
            " " (texts::SIMILAR_TO) " " span .path { bdi { (visible(like)) } } " · "
            a href=(address.with("like", None).at(PATH)) { (texts::REMOVE) }
        }
    }
}

fn view_links(address: &SearchAddress) -> Markup {
    let views = [
        (None, texts::LIST, false),
        (Some("table"), texts::TABLE, true),
    ];
    html! {
        div .views role="group" aria-label=(texts::VIEW) {
            @for (value, name, is_table) in views {
                a href=(address.with("view", value).at_page(address.page()).at(PATH))
                    aria-current=[(address.is_table() == is_table).then_some("true")] { (name) }
            }
        }
    }
}

/// Shows the active filters, each with a link that removes it.
fn chips(address: &SearchAddress) -> Markup {
    if address.filters().next().is_none() {
        return html! {};
    }
    html! {
        ul .chips aria-label=(texts::FILTERS) {
            @for (filter, value) in address.filters() {
                li {
                    a href=(address.with(filter.name, None).at(PATH)) {
                        span .chip-name { (filter.label) ":" } " "
                        span .chip-value { (visible(texts::filter_value(filter.name, value))) }
                        span .cross aria-hidden="true" { "×" }
                        span .visually-hidden { (texts::REMOVE) }
                    }
                }
            }
        }
    }
}

fn item(result: &SearchResult, times: &TimeContext, address: &SearchAddress) -> Markup {
    let (folder, name) = split_path(result);
    html! {
        li .hit {
            article {
                h3 { a .open href=(address.document(&result.id)) data-id=(result.id) { (visible(result.shown_name())) } }
                p .path title=(visible(&result.id)) { bdi { (visible(folder)) } bdi .last { (visible(name)) } }
                p .snippet {
                    (place(&result.snippet)) (snippet(&result.snippet))
                    @if let Some(reason) = &result.unread { span .muted { (visible(&sentence(reason))) } }
                }
                p .facts {
                    span .badge { (texts::kind(&result.kind)) }
                    span { (date(result, times)) }
                    // Several documents share the file of a member.
                    @if result.inner.is_none() { span { (bytes(result.size as f64)) } }
                    @if !result.author.is_empty() {
                        span .author title=(visible(&result.author)) { bdi { (names(&result.author)) } }
                    }
                    @if result.unread.is_none() {
                        a href=(address.with("q", None).with("like", Some(&result.id)).at(PATH)) {
                            (texts::SIMILAR)
                            span .visually-hidden { " " (texts::TO) " " (visible(result.shown_name())) }
                        }
                    }
                }
            }
        }
    }
}

fn table(results: &Results, times: &TimeContext, address: &SearchAddress) -> Markup {
    table_frame(
        texts::RESULT_TABLE,
        &html! {
            table #hits .hits-table {
                thead { tr {
                    th scope="col" { (texts::RESULT_NAME) } th scope="col" { (texts::FOLDER) }
                    th scope="col" { (texts::KIND) } th scope="col" { (texts::CHANGED) }
                    th scope="col" .number { (texts::SIZE) }
                } }
                tbody {
                    @for result in &results.all {
                        @let (folder, _) = split_path(result);
                        tr .hit {
                            th scope="row" {
                                a .open href=(address.document(&result.id)) data-id=(result.id) { (visible(result.shown_name())) }
                            }
                            td .path title=(visible(&result.id)) { bdi { (visible(folder)) } }
                            td { (texts::kind(&result.kind)) }
                            td .nowrap { (date(result, times)) }
                            td .number { @if result.inner.is_none() { (bytes(result.size as f64)) } }
                        }
                    }
                }
            }
        },
    )
}

/// Shows the links to the other pages.
fn pages(results: &Results, address: &SearchAddress) -> Markup {
    let page = address.page();
    let has_next = results.has_more && page < PAGES_MAX;
    html! {
        @if page > 1 || has_next {
            nav .pages aria-label=(texts::PAGES) {
                @if page > 1 {
                    a .button rel="prev" href=(address.at_page(page - 1).at(PATH)) { (texts::PREVIOUS) }
                }
                span .muted { (texts::page(page)) }
                @if has_next {
                    a .button rel="next" href=(address.at_page(page + 1).at(PATH)) { (texts::NEXT) }
                }
            }
        }
    }
}

/// Returns display names without mail addresses.
fn names(authors: &str) -> String {
    let names = authors.split(", ").map(name_alone);
    visible(&names.collect::<Vec<_>>().join(", "))
}

/// Splits a path before its last component. The position inside the file belongs to the last
/// component.
fn split_path(result: &SearchResult) -> (&str, &str) {
    let end = result.path.rfind('/').map_or(0, |at| at + 1);
    result.id.split_at_checked(end).unwrap_or(("", &result.id))
}

fn date(result: &SearchResult, times: &TimeContext) -> Markup {
    let shown = times.format_ms(result.date_ms.unwrap_or(result.modified_ms));
    let day = shown.split(' ').next().unwrap_or_default();
    html! { time datetime=(day) title=(shown) { (day) } }
}

fn place(snippet: &Snippet) -> Markup {
    html! {
        @match snippet.location {
            Some(TextLocation::Line(line)) => span .place { (texts::line(line)) },
            Some(TextLocation::Page(page)) => span .place { (texts::page(page as u32)) },
            None => {},
        }
    }
}

/// Shows a snippet with highlighted words. The text is escaped.
pub fn snippet(snippet: &Snippet) -> Markup {
    let mut shown = String::new();
    let mut end = 0;
    // Browsers show form feeds between pages as boxes. Spaces have the same length.
    let text = snippet.text.replace('\x0c', " ");
    let piece = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let escaped = |text: &str| html! { (text) }.into_string();
    for range in &snippet.ranges {
        shown.push_str(&escaped(piece(end, range.start)));
        shown.push_str(&html! { mark { (piece(range.start, range.end)) } }.into_string());
        end = range.end;
    }
    shown.push_str(&escaped(piece(end, text.len())));
    html! {
        bdi {
            @if snippet.is_cut_before { "… " }
            (PreEscaped(shown))
            @if snippet.is_cut_after { " …" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_documents_are_escaped() {
        let text = "<script>alert(1)</script> cake & \"more\"\x0c";
        let at = text.find("cake").unwrap();
        let shown = Snippet {
            text: text.to_owned(),
            ranges: vec![0..8, at..at + 4],
            is_cut_after: true,
            ..Snippet::default()
        };
        assert_eq!(
            snippet(&shown).into_string(),
            "<bdi><mark>&lt;script&gt;</mark>alert(1)&lt;/script&gt; <mark>cake</mark> &amp; \
             &quot;more&quot;  …</bdi>"
        );
    }
}
