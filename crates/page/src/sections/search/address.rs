//! The address of a search: what is searched for, by which filters, in which order. It can be kept and
//! shared.

use windrow_document::{DocumentBuf, Value, doc};
use windrow_file_query::{DateRange, TimeContext};
use windrow_file_search::SortOrder;

use crate::error::PageError;
use crate::form::Form;
use crate::texts::search as texts;

/// The path of the page.
pub const PATH: &str = "/search";
/// The path of the results alone.
pub const RESULTS_PATH: &str = "/search/results";
/// The path of the facets alone.
pub const FACETS_PATH: &str = "/search/facets";
/// The path of a document.
pub const DOCUMENT_PATH: &str = "/search/document";

/// A filter: a name in the address, and the operator of `$search` for a value.
pub struct Filter {
    /// The name in the address.
    pub name: &'static str,
    /// How people call it.
    pub label: &'static str,
    operator: fn(&str) -> Option<DocumentBuf>,
}

/// All filters, in the order in which they are shown.
pub const FILTERS: [Filter; 7] = [
    Filter {
        name: "kind",
        label: texts::KIND,
        operator: |value| equals("kind", value),
    },
    Filter {
        name: "ext",
        label: texts::EXTENSION,
        operator: |value| equals("ext", value),
    },
    Filter {
        name: "dir",
        label: texts::FOLDER,
        operator: |value| equals("folders", value),
    },
    Filter {
        name: "date",
        label: texts::CHANGED,
        operator: changed,
    },
    Filter {
        name: "author",
        label: texts::AUTHOR,
        operator: |value| {
            let author = equals("author", value)?;
            let sender = equals("from", value)?;
            Some(doc! { "compound": { "should": [(author), (sender)], "minimumShouldMatch": 1 } })
        },
    },
    Filter {
        name: "lang",
        label: texts::LANGUAGE,
        operator: |value| equals("language", value),
    },
    Filter {
        name: "size",
        label: texts::SIZE,
        operator: size,
    },
];

/// The bounds of the sizes that are told apart, in bytes, with the name of each range.
pub const SIZES: [(i64, &str); 5] = [
    (0, "tiny"),
    (10_000, "small"),
    (100_000, "medium"),
    (1_000_000, "large"),
    (10_000_000, "huge"),
];

fn equals(path: &str, value: &str) -> Option<DocumentBuf> {
    Some(doc! { "equals": { "path": path, "value": value } })
}

/// Files that were changed within years, months or days, in the time zone of this machine.
fn changed(value: &str) -> Option<DocumentBuf> {
    let range = DateRange::parse(value, &TimeContext::system())?;
    let mut operator = doc! { "path": "modified" };
    for (name, ms) in [("gte", range.from_ms), ("lt", range.to_ms)] {
        if let Some(ms) = ms {
            operator.push(name, Value::DateTime(ms));
        }
    }
    Some(doc! { "range": (operator) })
}

fn size(value: &str) -> Option<DocumentBuf> {
    let found = SIZES.iter().position(|(_, name)| *name == value)?;
    let (lower, _) = SIZES.get(found)?;
    let mut operator = doc! { "path": "size", "gte": (*lower) };
    if let Some((upper, _)) = SIZES.get(found + 1) {
        operator.push("lt", *upper);
    }
    Some(doc! { "range": (operator) })
}

/// The names of orders, and how people call them.
pub const ORDERS: [(&str, &str); 4] = [
    ("relevance", texts::RELEVANCE),
    ("newest", texts::NEWEST),
    ("oldest", texts::OLDEST),
    ("largest", texts::LARGEST),
];

/// So many results are on a page.
pub const PAGE_SIZE: u32 = 20;
/// So many pages can be turned.
pub const PAGES_MAX: u32 = 500;

/// What an address asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchAddress {
    form: Form,
}

impl SearchAddress {
    /// Takes the parts of an address that belong to a search.
    pub fn new(query: &Form) -> SearchAddress {
        let others = ["q", "sort", "view", "page", "like"];
        let mut form = Form::default();
        for (name, value) in query.pairs() {
            let is_filter = FILTERS.iter().any(|filter| filter.name == name);
            if (is_filter || others.contains(&name)) && !value.is_empty() {
                form = form.and(name, value);
            }
        }
        SearchAddress { form }
    }

    /// Returns the query, as it was typed.
    pub fn query(&self) -> &str {
        self.form.text("q").trim()
    }

    /// Returns the `_id` of the document that others have to be similar to.
    pub fn like(&self) -> Option<&str> {
        self.form.get("like")
    }

    /// Returns the number of the page, from 1 on.
    pub fn page(&self) -> u32 {
        self.form.number("page").unwrap_or(1).clamp(1, PAGES_MAX)
    }

    /// Returns `true` if the results are shown as a table.
    pub fn is_table(&self) -> bool {
        self.form.text("view") == "table"
    }

    /// Returns the name of the order. Without a query, the newest files are first.
    pub fn order_name(&self) -> &str {
        let known = self.form.get("sort");
        let known = known.filter(|name| SortOrder::from_name(name).is_some());
        let is_ranked = !self.query().is_empty() || self.like().is_some();
        match known {
            Some(name) if is_ranked || name != "relevance" => name,
            _ if is_ranked => "relevance",
            _ => "newest",
        }
    }

    /// Returns the order.
    pub fn order(&self) -> SortOrder {
        SortOrder::from_name(self.order_name()).unwrap_or_default()
    }

    /// Returns the filters with their values.
    pub fn filters(&self) -> impl Iterator<Item = (&'static Filter, &str)> {
        let pairs = self.form.pairs();
        pairs.filter_map(|(name, value)| {
            let filter = FILTERS.iter().find(|filter| filter.name == name)?;
            Some((filter, value))
        })
    }

    /// Returns the value of a filter.
    pub fn filter(&self, name: &str) -> Option<&str> {
        self.form.get(name)
    }

    /// Returns the operators of the filters.
    ///
    /// # Errors
    /// Fails if a value is not one of its filter.
    pub fn operators(&self) -> Result<Vec<DocumentBuf>, PageError> {
        let operators = self.filters().map(|(filter, value)| {
            let operator = (filter.operator)(value);
            operator.ok_or_else(|| PageError::bad_request(texts::bad_filter(filter.label, value)))
        });
        operators.collect()
    }

    /// Returns the address with another value of a part, on its first page. `None` removes the part.
    pub fn with(&self, name: &str, value: Option<&str>) -> SearchAddress {
        let form = self.form.with("page", None).with(name, value);
        SearchAddress { form }
    }

    /// Returns the address of another page of the results.
    pub fn at_page(&self, page: u32) -> SearchAddress {
        let page = (page > 1).then(|| page.to_string());
        SearchAddress {
            form: self.form.with("page", page.as_deref()),
        }
    }

    /// Returns the address at a path.
    pub fn at(&self, path: &str) -> String {
        self.form.address(path)
    }

    /// Returns the address of a document, with the query whose words are marked there.
    pub fn document(&self, id: &str) -> String {
        let form = self.form.with("page", None).and("id", id);
        form.address(DOCUMENT_PATH)
    }

    /// Returns the parts that a form with the query has to send along.
    pub fn hidden_parts(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.form.pairs();
        pairs.filter(|(name, _)| !["q", "page", "like", "sort"].contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(query: &str) -> SearchAddress {
        SearchAddress::new(&Form::parse(query.as_bytes()))
    }

    #[test]
    fn addresses_have_what_a_search_needs() {
        let full = address("q=a+b&kind=pdf&token=x&page=3&dir=/d&sort=&open=1");
        assert_eq!(full.at(PATH), "/search?q=a+b&kind=pdf&page=3&dir=%2Fd");
        assert_eq!(full.with("kind", None).at(PATH), "/search?q=a+b&dir=%2Fd");
        assert_eq!(full.at_page(1).page(), 1);
        assert_eq!(address("page=9999").page(), PAGES_MAX);
        assert_eq!(full.operators().unwrap().len(), 2);
    }

    #[test]
    fn the_newest_are_first_without_a_query() {
        let cases = [
            ("", "newest"),
            ("q=a", "relevance"),
            ("q=+", "newest"),
            ("like=x", "relevance"),
            ("q=a&sort=largest", "largest"),
            ("q=a&sort=wrong", "relevance"),
            ("sort=relevance", "newest"),
        ];
        for (query, expected) in cases {
            assert_eq!(address(query).order_name(), expected, "{query}");
        }
    }

    #[test]
    fn filters_are_operators() {
        let operator = |query: &str| {
            let operators = address(query).operators();
            operators.map(|all| all.first().map(ToString::to_string).unwrap_or_default())
        };
        assert_eq!(
            operator("size=small").unwrap(),
            r#"{"range":{"path":"size","gte":10000,"lt":100000}}"#
        );
        assert_eq!(
            operator("size=huge").unwrap(),
            r#"{"range":{"path":"size","gte":10000000}}"#
        );
        assert!(
            operator("date=1970-01")
                .unwrap()
                .contains(r#""path":"modified""#)
        );
        assert!(operator("date=never").is_err() && operator("size=odd").is_err());
    }
}
