//! Shows a document: its properties, and its text with highlighted matches.

use std::ops::Range;

use maud::{Markup, PreEscaped, html};
use windrow_document::ValueRef;
use windrow_file_query::TimeContext;

use super::address::{DOCUMENT_PATH, PATH, SearchAddress};
use super::document::{Member, StoredDocument};
use super::file::{address_of_unchanged, download_address, file_address, read_text_file};
use super::formatted::{format_html, format_markdown};
use super::marked_text::marked_text;
use super::source::IndexedFiles;
use super::syntax::classify;
use crate::error::PageError;
use crate::form::FormFields;
use crate::request::Request;
use crate::show::{bytes, sentence, visible};
use crate::texts::search as texts;

/// A request to show a document.
pub struct Preview<'r> {
    /// The request.
    pub request: &'r Request,
    /// The document.
    pub document: &'r StoredDocument,
    /// The search whose words are highlighted.
    pub address: &'r SearchAddress,
    /// The text is shown although the file could be rendered.
    pub is_plain: bool,
}

/// Extensions of images that browsers can display.
const PICTURES: [&str; 7] = ["png", "jpg", "jpeg", "gif", "webp", "avif", "bmp"];
/// The maximum number of words passed to the highlighting script.
const WORDS_MAX: usize = 50;

impl Preview<'_> {
    /// Shows the document.
    ///
    /// # Errors
    /// Fails if the database fails.
    pub fn show(&self, files: &mut IndexedFiles) -> Result<Markup, PageError> {
        let document = self.document;
        let query = self.address.query();
        // A query that is no longer valid highlights nothing.
        let hits = document
            .hits(self.request, files, query)
            .unwrap_or_default();
        let formatted = if self.is_plain {
            None
        } else {
            self.formatted()
        };
        let has_form = formatted.is_some() || self.is_plain;
        let attachments = match document.text("kind") {
            "mail" => document.attachments(files)?,
            _ => Vec::new(),
        };
        let others = if document.text("inner").is_empty() {
            document.others(files)?
        } else {
            Vec::new()
        };
        Ok(html! {
            article .document data-document=(document.text("_id")) {
                (self.head(has_form))
                (self.properties())
                (members(texts::ATTACHMENTS, &attachments, self.address))
                @if let Some(formatted) = formatted {
                    (hit_links(0))
                    div .formatted data-words=(words(document, &hits)) { (formatted) }
                } @else {
                    (self.picture())
                    (self.body(&hits))
                }
                @if attachments.is_empty() { (members(texts::MEMBERS, &others, self.address)) }
            }
        })
    }

    fn head(&self, has_form: bool) -> Markup {
        let document = self.document;
        let id = document.text("_id");
        let title = document.shown_name();
        let is_file = document.text("inner").is_empty();
        html! {
            header {
                h2 #document-title tabindex="-1" { bdi { (visible(title)) } }
                p .path { bdi { (visible(id)) } }
                p .row .actions {
                    @if is_file {
                        a .button href=(file_address(id)) target="_blank" rel="noopener" data-open="1" { (texts::OPEN_FILE) }
                        a .button .quiet href=(download_address(id)) { (texts::DOWNLOAD) }
                    } @else {
                        a .button href=(file_address(document.text("path"))) target="_blank" rel="noopener" data-open="1" { (texts::OPEN_FILE) }
                    }
                    @if document.text("unread").is_empty() {
                        a .button .quiet href=(self.address.with("q", None).with("like", Some(id)).at(PATH)) { (texts::SIMILAR) }
                    }
                    @if has_form {
                        @let plain = if self.is_plain { None } else { Some("1") };
                        a .button .quiet data-form="1" href=(self.own_address(plain)) {
                            @if self.is_plain { (texts::AS_PAGE) } @else { (texts::AS_TEXT) }
                        }
                    }
                }
            }
        }
    }

    fn own_address(&self, plain: Option<&str>) -> String {
        let form = FormFields::default().and("q", self.address.query());
        let form = form.and("id", self.document.text("_id"));
        form.with("plain", plain).address(DOCUMENT_PATH)
    }

    /// Shows the properties of the document as a list of names and values.
    fn properties(&self) -> Markup {
        let document = self.document;
        let times = TimeContext::system();
        let date = document.date_ms("date").map(|ms| times.format_ms(ms));
        let changed = document.date_ms("modified").map(|ms| times.format_ms(ms));
        let size = document.number("size").map(|size| bytes(size as f64));
        let pages = document.number("pages").map(|pages| pages.to_string());
        let dimensions = document.number("width").zip(document.number("height"));
        let mail = |name: &str| Some(document.texts(name).join(", ")).filter(|it| !it.is_empty());
        let text = |name: &str| Some(document.text(name).to_owned()).filter(|it| !it.is_empty());
        let subject = text("subject").filter(|it| it != document.text("title"));
        let rows = [
            (
                texts::KIND,
                Some(texts::kind(document.text("kind")).to_owned()),
            ),
            (texts::FROM, mail("from")),
            (texts::RECIPIENTS, mail("to")),
            (texts::COPIES, mail("cc")),
            (texts::SUBJECT, subject),
            (texts::AUTHOR, text("author")),
            (texts::DATE, date),
            (texts::CHANGED, changed),
            (texts::SIZE, size),
            (texts::PAGE_COUNT, pages),
            (
                texts::DIMENSIONS,
                dimensions.map(|(width, height)| texts::dimensions(width, height)),
            ),
            (
                texts::LANGUAGE,
                text("language").map(|code| texts::language(&code).to_owned()),
            ),
        ];
        let mail_of = document
            .fields
            .get("attached_to")
            .and_then(ValueRef::as_document);
        let mail_of = mail_of
            .and_then(|mail| mail.get("_id"))
            .and_then(ValueRef::as_str);
        html! {
            dl .properties {
                @for (name, value) in rows {
                    @if let Some(value) = value { div { dt { (name) } dd { bdi { (visible(&value)) } } } }
                }
                @if let Some(mail) = mail_of {
                    div { dt { (texts::ATTACHED_TO) } dd { a href=(self.address.document(mail)) data-id=(mail) { bdi { (visible(mail)) } } } }
                }
            }
        }
    }

    /// Renders Markdown and HTML. `None` if the file has changed.
    fn formatted(&self) -> Option<Markup> {
        let format = match self.document.text("kind") {
            "markdown" => format_markdown,
            "html" => format_html,
            _ => return None,
        };
        if !self.document.text("inner").is_empty() {
            return None;
        }
        let text = read_text_file(self.request, self.document)?;
        Some(PreEscaped(format(&text)))
    }

    fn picture(&self) -> Markup {
        let document = self.document;
        let is_picture =
            document.text("kind") == "image" && PICTURES.contains(&document.text("ext"));
        let address = is_picture
            .then(|| address_of_unchanged(self.request, document))
            .flatten();
        html! {
            @if let Some(address) = address {
                p .picture { img src=(address) alt=(document.text("title")); }
            }
        }
    }

    /// Shows the stored text with highlighted matches.
    fn body(&self, hits: &[Range<usize>]) -> Markup {
        let document = self.document;
        let text = document.text("text");
        let classes = match document.text("kind") {
            "source" => classify(text, document.text("syntax")),
            _ => Vec::new(),
        };
        let is_code = matches!(document.text("kind"), "source" | "text" | "table");
        html! {
            (hit_links(hits.len()))
            @if text.trim().is_empty() {
                p .muted {
                    @match document.text("unread") {
                        "" => (texts::EMPTY_TEXT),
                        reason => (visible(&sentence(reason))),
                    }
                }
            } @else if document.text("kind") == "pdf" {
                div .drawn-pages data-pdf=[address_of_unchanged(self.request, document)] { (pages(text, hits)) }
            } @else if document.text("kind") == "djvu" && text.contains('\x0c') {
                (pages(text, hits))
            } @else {
                div .text .code[is_code] dir="auto" { (marked_text(text, hits, &classes)) }
            }
            @if document.is_cut { p .notice { (texts::CUT) } }
        }
    }
}

/// Shows the links to the matches. A script adds the previous and next buttons.
fn hit_links(count: usize) -> Markup {
    html! {
        p .hit-links data-hits=(count) hidden[count == 0] {
            span .hit-count { (texts::hit(count)) }
            a .button href="#hit-1" data-step="-1" aria-label=(texts::PREVIOUS_HIT) { "↑" }
            a .button href="#hit-1" data-step="1" aria-label=(texts::NEXT_HIT) { "↓" }
        }
    }
}

/// Shows a text whose pages are separated by form feeds.
fn pages(text: &str, hits: &[Range<usize>]) -> Markup {
    let (mut start, mut first_hit) = (0, 0);
    let mut shown = Vec::new();
    for page in text.split('\x0c') {
        let end = start + page.len();
        let on_page = hits
            .iter()
            .skip(first_hit)
            .take_while(|hit| hit.start < end)
            .count();
        let own: Vec<Range<usize>> = hits
            .iter()
            .skip(first_hit)
            .take(on_page)
            .map(|hit| hit.start.saturating_sub(start)..hit.end.min(end).saturating_sub(start))
            .collect();
        shown.push((page, first_hit, own));
        first_hit += on_page;
        start = end + 1;
    }
    html! {
        @for (number, (page, before, own)) in (1..).zip(shown) {
            section .page data-page=(number) data-label=(texts::drawn_page(number)) {
                h3 { (texts::page(number)) }
                div .text dir="auto" { (renumbered(marked_text(page, &own, &[]), before)) }
            }
        }
    }
}

/// Renumbers the matches of a page after those of the previous pages.
fn renumbered(markup: Markup, before: usize) -> Markup {
    if before == 0 {
        return markup;
    }
    let mut shown = String::new();
    let begin = "<mark id=\"hit-";
    let text = markup.into_string();
    let mut parts = text.split(begin);
    shown.push_str(parts.next().unwrap_or_default());
    for part in parts {
        // The text is escaped, so it cannot contain this tag.
        let (number, rest) = part.split_once('"').unwrap_or((part, ""));
        let number = number.parse::<usize>().unwrap_or(0) + before;
        shown.push_str(&format!("{begin}{number}\"{rest}"));
    }
    PreEscaped(shown)
}

/// Returns the distinct matched words, which a script highlights in a rendered document.
fn words(document: &StoredDocument, hits: &[Range<usize>]) -> String {
    let text = document.text("text");
    let mut words: Vec<String> = Vec::new();
    for hit in hits {
        let word = text.get(hit.clone()).unwrap_or_default().to_lowercase();
        if !words.contains(&word) && words.len() < WORDS_MAX {
            words.push(word);
        }
    }
    serde_json::Value::from(words).to_string()
}

fn members(title: &str, members: &[Member], address: &SearchAddress) -> Markup {
    html! {
        @if !members.is_empty() {
            section .members {
                h3 { (title) }
                ul {
                    @for member in members {
                        li {
                            a href=(address.document(&member.id)) data-id=(member.id) { bdi { (visible(&member.title)) } }
                            " " span .muted .small { (texts::kind(&member.kind)) " · " bdi { (visible(&member.inner)) } }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_numbered_over_pages() {
        let text = "a cake\x0cno\x0cb cake cake";
        let hits: Vec<Range<usize>> = text
            .match_indices("cake")
            .map(|(at, it)| at..at + it.len())
            .collect();
        let shown = pages(text, &hits).into_string();
        for number in 1..=3 {
            assert!(
                shown.contains(&format!("<mark id=\"hit-{number}\">cake</mark>")),
                "{shown}"
            );
        }
        assert_eq!(shown.matches("<mark").count(), 3);
    }
}
