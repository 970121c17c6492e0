//! The form of a query: filter, projection, sort and page.

use maud::{Markup, html};
use windrow_document::{DocumentBuf, Value, doc};

use crate::collection_frame::document_field;
use crate::form::FormFields;
use crate::literals::parse_document;
use crate::namespace::Namespace;
use crate::texts::{collections as texts, frame};

/// The selectable page sizes.
const PAGE_SIZES: [u32; 4] = [20, 50, 100, 200];

/// A query, and the page of its results that is shown.
#[derive(Debug)]
pub struct Find {
    /// The filter.
    pub filter: DocumentBuf,
    projection: DocumentBuf,
    sort: DocumentBuf,
    /// The number of documents of a page.
    pub page_size: u32,
    /// The number of documents before the page.
    pub skip: u64,
    /// Documents are shown as a table instead of trees.
    pub is_table: bool,
}

impl Find {
    /// Parses the fields of a form. Fails with a message.
    pub fn parse(form: &FormFields) -> Result<Find, String> {
        let field = |name: &str, title: &str| {
            let parsed = parse_document(form.text(name));
            parsed.map_err(|error| texts::field_error(title, &error.to_string()))
        };
        let page = parse_page(form);
        Ok(Find {
            filter: field("filter", texts::FILTER)?,
            projection: field("projection", texts::PROJECTION)?,
            sort: field("sort", texts::SORT)?,
            page_size: page.size,
            skip: u64::from(page.number) * u64::from(page.size),
            is_table: form.text("view") == "table",
        })
    }

    /// Returns the `find` command for all results.
    pub fn command(&self, namespace: &Namespace) -> DocumentBuf {
        let mut command = doc! {
            "find": (namespace.collection.as_str()), "filter": (self.filter.clone()),
        };
        if !self.projection.as_document().is_empty() {
            command.push("projection", self.projection.clone());
        }
        if !self.sort.as_document().is_empty() {
            command.push("sort", self.sort.clone());
        }
        command.push("$db", namespace.database.as_str());
        command
    }

    /// Returns the `find` command for the page. It requests one document more, which shows whether
    /// a next page exists.
    pub fn page_command(&self, namespace: &Namespace) -> DocumentBuf {
        let mut command = self.command(namespace);
        command.push(
            "skip",
            Value::Int64(i64::try_from(self.skip).unwrap_or(i64::MAX)),
        );
        command.push("limit", i64::from(self.page_size) + 1);
        command
    }
}

/// A page of the results.
struct Page {
    /// The number of documents of each page.
    size: u32,
    /// The number of pages before this one.
    number: u32,
}

fn parse_page(form: &FormFields) -> Page {
    let size = form.number("size").filter(|it| PAGE_SIZES.contains(it));
    Page {
        size: size.unwrap_or(20),
        number: form.number("page").unwrap_or(0),
    }
}

/// Shows the form.
pub fn find_form(namespace: &Namespace, form: &FormFields) -> Markup {
    let has_more = ["projection", "sort"]
        .iter()
        .any(|name| !form.text(name).is_empty());
    let size = parse_page(form).size;
    html! {
        form .find .panel method="get" action=(namespace.address()) role="search"
            data-cancel=(frame::CANCEL) data-cancelled=(frame::CANCELLED) {
            (document_field("filter", texts::FILTER, texts::FILTER_EXAMPLE, form.text("filter")))
            details open[has_more] {
                summary { (texts::MORE_OPTIONS) }
                div .row .two {
                    (document_field("projection", texts::PROJECTION, "{ name: 1 }", form.text("projection")))
                    (document_field("sort", texts::SORT, "{ at: -1 }", form.text("sort")))
                }
            }
            div .row {
                button .primary type="submit" { (texts::FIND) }
                a .button .quiet href=(namespace.address()) { (texts::RESET) }
                label .row .small { (texts::VIEW_AS)
                    select name="view" {
                        option value="tree" { (texts::TREE) }
                        option value="table" selected[form.text("view") == "table"] { (texts::TABLE) }
                    }
                }
                label .row .small { (texts::PAGE_SIZE)
                    select name="size" {
                        @for known in PAGE_SIZES { option value=(known) selected[known == size] { (known) } }
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
    fn forms_become_commands() {
        let form = FormFields::default()
            .and("filter", "{a: /x/}")
            .and("sort", "{b: -1}")
            .and("page", "2")
            .and("size", "50");
        let find = Find::parse(&form).unwrap();
        let namespace = Namespace {
            database: "d".to_owned(),
            collection: "c".to_owned(),
        };
        let command = find.page_command(&namespace).to_string();
        assert_eq!(
            command,
            r#"{"find":"c","filter":{"a":{"$regularExpression":{"pattern":"x","options":""}}},"sort":{"b":-1},"$db":"d","skip":100,"limit":51}"#
        );
    }

    #[test]
    fn wrong_fields_are_named() {
        let error = Find::parse(&FormFields::default().and("sort", "{a: }")).unwrap_err();
        assert!(
            error.starts_with("Sort: ") && error.contains("column 5"),
            "{error}"
        );
        let large = FormFields::default()
            .and("size", "100000")
            .and("page", "4294967295");
        assert_eq!(Find::parse(&large).unwrap().page_size, 20);
    }
}
