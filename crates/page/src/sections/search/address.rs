//! The parameters of a search in its address: query, filters, order and page. Addresses can be
//! bookmarked and shared.

use windrow_document::{DocumentBuf, Value, doc};
use windrow_file_query::{DateRange, TimeContext};
use windrow_file_search::SortOrder;

use crate::error::PageError;
use crate::form::FormFields;
use crate::texts::search as texts;

/// The path of the page.
pub const PATH: &str = "/search";
/// The path of the results alone.
pub const RESULTS_PATH: &str = "/search/results";
/// The path of the facets alone.
pub const FACETS_PATH: &str = "/search/facets";
/// The path of a document.
pub const DOCUMENT_PATH: &str = "/search/document";

/// A filter: a parameter of the address, and the function that converts its value to an operator of
/// `$search`.
pub struct Filter {
    /// The name of the parameter.
    pub name: &'static str,
    /// The label.
    pub label: &'static str,
    operator: fn(&str) -> Option<DocumentBuf>,
}

/// All filters, in the order of display.
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

/// The lower bounds of size ranges in bytes, with the name of each range.
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

/// Returns the filter for files that were modified in a range of years, months or days in the local
/// time zone.
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

/// The names and labels of sort orders.
pub const ORDERS: [(&str, &str); 4] = [
    ("relevance", texts::RELEVANCE),
    ("newest", texts::NEWEST),
    ("oldest", texts::OLDEST),
    ("largest", texts::LARGEST),
];

/// The number of results on a page.
pub const PAGE_SIZE: u32 = 20;
/// The maximum page number.
pub const PAGES_MAX: u32 = 500;

/// The parameters of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchAddress {
    form: FormFields,
}

impl SearchAddress {
    /// Takes the parameters of a query string that belong to a search.
    pub fn new(query: &FormFields) -> SearchAddress {
        let others = ["q", "sort", "view", "page", "like"];
        let mut form = FormFields::default();
        for (name, value) in query.pairs() {
            let is_filter = FILTERS.iter().any(|filter| filter.name == name);
            if (is_filter || others.contains(&name)) && !value.is_empty() {
                form = form.and(name, value);
            }
        }
        SearchAddress { form }
    }

    /// Returns the query as it was typed.
    pub fn query(&self) -> &str {
        self.form.text("q").trim()
    }

    /// Returns the `_id` of the document to which the results must be similar.
    pub fn like(&self) -> Option<&str> {
        self.form.get("like")
    }

    /// Returns the page number, counted from 1.
    pub fn page(&self) -> u32 {
        self.form.number("page").unwrap_or(1).clamp(1, PAGES_MAX)
    }

    /// Returns `true` if the results are shown as a table.
    pub fn is_table(&self) -> bool {
        self.form.text("view") == "table"
    }

    /// Returns the name of the sort order. Without a query, the default is the newest first.
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

    /// Returns the sort order.
    pub fn order(&self) -> SortOrder {
        SortOrder::from_name(self.order_name()).unwrap_or_default()
    }

    /// Returns the active filters with their values.
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

    /// Returns the operators of the active filters.
    ///
    /// # Errors
    /// Fails if a value is invalid for its filter.
    pub fn operators(&self) -> Result<Vec<DocumentBuf>, PageError> {
        let operators = self.filters().map(|(filter, value)| {
            let operator = (filter.operator)(value);
            operator.ok_or_else(|| PageError::bad_request(texts::bad_filter(filter.label, value)))
        });
        operators.collect()
    }

    /// Returns the address with a changed parameter, on the first page. `None` removes the
    /// parameter.
    pub fn with(&self, name: &str, value: Option<&str>) -> SearchAddress {
        let form = self.form.with("page", None).with(name, value);
        SearchAddress { form }
    }

    /// Returns the address of another results page.
    pub fn at_page(&self, page: u32) -> SearchAddress {
        let page = (page > 1).then(|| page.to_string());
        SearchAddress {
            form: self.form.with("page", page.as_deref()),
        }
    }

    /// Returns the address with another path.
    pub fn at(&self, path: &str) -> String {
        self.form.address(path)
    }

    /// Returns the address of a document. It includes the query, whose words are highlighted.
    pub fn document(&self, id: &str) -> String {
        let form = self.form.with("page", None).and("id", id);
        form.address(DOCUMENT_PATH)
    }

    /// Returns the parameters that the search form keeps in hidden fields.
    pub fn hidden_parts(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.form.pairs();
        pairs.filter(|(name, _)| !["q", "page", "like", "sort"].contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(query: &str) -> SearchAddress {
        SearchAddress::new(&FormFields::parse(query.as_bytes()))
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
