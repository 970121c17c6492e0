//! The facets of a search: the number of documents for each value of a property.

use std::ops::RangeInclusive;

use maud::{Markup, html};
use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};
use windrow_file_query::{DateRange, TimeContext};
use windrow_file_search::{
    CountedField, DocumentSource, ValueCount, counting_facets, facet_buckets,
};

use super::address::{SIZES, SearchAddress};
use super::facet_value::value;
use super::folder_tree::{FolderTree, folder_tree};
use super::histogram::{Bar, histogram};
use super::prepared_search::Search;
use super::source::IndexedFiles;
use crate::error::PageError;
use crate::show::name_alone;
use crate::texts::search as texts;

/// A property whose values are shown as a list.
struct ListedFacet {
    /// The name of its filter parameter.
    filter: &'static str,
    title: &'static str,
    field: CountedField,
}

const LISTED: [ListedFacet; 4] = [
    ListedFacet {
        filter: "kind",
        title: texts::KIND,
        field: CountedField::Kind,
    },
    ListedFacet {
        filter: "ext",
        title: texts::EXTENSION,
        field: CountedField::Extension,
    },
    ListedFacet {
        filter: "author",
        title: texts::AUTHOR,
        field: CountedField::Author,
    },
    ListedFacet {
        filter: "lang",
        title: texts::LANGUAGE,
        field: CountedField::Language,
    },
];

/// The maximum number of counted values.
const VALUES_MAX: u32 = 30;
/// The number of values that are shown collapsed.
const VALUES_SHOWN: usize = 6;
/// The maximum number of counted folders.
const FOLDERS_MAX: u32 = 1_000;
/// The time facet shows months instead of years if the results span at most this many years.
const YEARS_WITH_MONTHS: usize = 4;
/// The name of the size facet.
const SIZE: &str = "size";
/// The name of the month facet.
const MONTHS: &str = "months";

/// The counts of all facets.
pub struct Facets {
    /// The number of documents.
    pub total: i64,
    listed: Vec<(&'static ListedFacet, Vec<ValueCount>)>,
    folders: Vec<ValueCount>,
    times: Vec<Bar>,
    sizes: Vec<(&'static str, i64)>,
}

impl Facets {
    /// Counts the values of all properties in one aggregation.
    ///
    /// # Errors
    /// Fails if the database fails.
    pub fn count(files: &mut IndexedFiles, search: &Search) -> Result<Facets, PageError> {
        let operator = &search.target.operator;
        let mut facets = DocumentBuf::new();
        for facet in &LISTED {
            facet.field.push_facets(&mut facets, VALUES_MAX);
        }
        CountedField::Folder.push_facets(&mut facets, FOLDERS_MAX);
        CountedField::Year.push_facets(&mut facets, VALUES_MAX);
        let bounds = SIZES.iter().map(|(bound, _)| Value::Int64(*bound));
        let bounds: ArrayBuf = bounds.chain([Value::Int64(i64::MAX)]).collect();
        facets.push(
            SIZE,
            doc! { "type": "number", "path": SIZE, "boundaries": (bounds) },
        );
        let reply = files
            .first(&counting_facets(operator, facets))?
            .unwrap_or_default();
        let reply = reply.as_document();
        let years = CountedField::Year.counts(reply, VALUES_MAX);
        let listed = LISTED
            .iter()
            .map(|facet| (facet, facet.field.counts(reply, VALUES_MAX)));
        Ok(Facets {
            total: total(reply),
            listed: listed.collect(),
            folders: CountedField::Folder.counts(reply, FOLDERS_MAX),
            sizes: sizes(reply),
            times: times(files, operator, &years)?,
        })
    }
}

fn total(reply: Document<'_>) -> i64 {
    let count = reply.get("count").and_then(ValueRef::as_document);
    let total = count.and_then(|count| count.get("total"));
    total.and_then(ValueRef::as_whole).unwrap_or(0)
}

fn sizes(reply: Document<'_>) -> Vec<(&'static str, i64)> {
    let buckets = facet_buckets(reply, SIZE).into_iter().flatten();
    let counts = buckets.filter_map(|bucket| {
        let bucket = bucket.as_document()?;
        let bound = bucket.get("_id")?.as_whole()?;
        let (_, name) = SIZES.iter().find(|(known, _)| *known == bound)?;
        Some((*name, bucket.get("count")?.as_whole()?))
    });
    counts.filter(|(_, count)| *count > 0).collect()
}

/// Returns the bars of years, or of months if the results span few years.
fn times(
    files: &mut IndexedFiles,
    operator: &DocumentBuf,
    years: &[ValueCount],
) -> Result<Vec<Bar>, PageError> {
    let known = years.iter().filter_map(|it| it.value.parse::<i16>().ok());
    let known: Vec<i16> = known.collect();
    let (Some(first), Some(last)) = (known.first(), known.last()) else {
        return Ok(Vec::new());
    };
    let range = *first..=*last;
    if range.clone().count() > YEARS_WITH_MONTHS {
        return Ok(range.map(|year| year_bar(year, years)).collect());
    }
    month_bars(files, operator, range)
}

fn year_bar(year: i16, years: &[ValueCount]) -> Bar {
    let value = year.to_string();
    let counted = years.iter().find(|it| it.value == value);
    Bar {
        count: counted.map_or(0, |it| it.count),
        value,
    }
}

/// Counts the documents of each month of these years.
fn month_bars(
    files: &mut IndexedFiles,
    operator: &DocumentBuf,
    years: RangeInclusive<i16>,
) -> Result<Vec<Bar>, PageError> {
    let last = *years.end();
    let months: Vec<(i16, u8)> = years
        .flat_map(|year| (1..=12).map(move |month| (year, month)))
        .collect();
    let mut bounds: Vec<i64> = months
        .iter()
        .filter_map(|(year, month)| month_start(*year, *month))
        .collect();
    bounds.extend(TimeContext::system().start_of_year_ms(last + 1));
    let dates: ArrayBuf = bounds.iter().map(|ms| Value::DateTime(*ms)).collect();
    let facet = doc! { "type": "date", "path": "modified", "boundaries": (dates) };
    let facets = doc! { (MONTHS): (facet) };
    let reply = files
        .first(&counting_facets(operator, facets))?
        .unwrap_or_default();
    let buckets = facet_buckets(reply.as_document(), MONTHS)
        .into_iter()
        .flatten();
    let counts: Vec<(i64, i64)> = buckets
        .filter_map(|bucket| {
            let bucket = bucket.as_document()?;
            match bucket.get("_id")? {
                ValueRef::DateTime(ms) => Some((ms, bucket.get("count")?.as_whole()?)),
                _ => None,
            }
        })
        .collect();
    let bars = months
        .iter()
        .zip(&bounds)
        .map(|((year, month), start)| Bar {
            value: format!("{year}-{month:02}"),
            count: counts
                .iter()
                .find(|(ms, _)| ms == start)
                .map_or(0, |it| it.1),
        });
    Ok(without_empty_ends(bars.collect()))
}

fn month_start(year: i16, month: u8) -> Option<i64> {
    let text = format!("{year}-{month:02}");
    DateRange::parse(&text, &TimeContext::system())?.from_ms
}

fn without_empty_ends(bars: Vec<Bar>) -> Vec<Bar> {
    let first = bars.iter().position(|bar| bar.count > 0).unwrap_or(0);
    let last = bars
        .iter()
        .rposition(|bar| bar.count > 0)
        .map_or(0, |at| at + 1);
    bars.into_iter().take(last).skip(first).collect()
}

/// Shows the facets. Each value is a link that adds it to the filters or removes it.
pub fn show_facets(facets: &Facets, address: &SearchAddress) -> Markup {
    html! {
        @for (facet, values) in &facets.listed {
            @if !values.is_empty() { (listed(facet, values, address)) }
        }
        @if !facets.folders.is_empty() {
            section .facet {
                h2 { (texts::FOLDER) }
                (folder_tree(&FolderTree::new(&facets.folders), address))
            }
        }
        @if facets.times.len() > 1 {
            section .facet {
                h2 { (texts::CHANGED) }
                (histogram(&facets.times, address))
            }
        }
        @if facets.sizes.len() > 1 {
            section .facet {
                h2 { (texts::SIZE) }
                ul {
                    @for (name, count) in &facets.sizes {
                        li { (value(address, "size", name, texts::size(name), *count)) }
                    }
                }
            }
        }
    }
}

fn listed(facet: &ListedFacet, values: &[ValueCount], address: &SearchAddress) -> Markup {
    let (shown, others) = values.split_at(values.len().min(VALUES_SHOWN));
    let row = |it: &ValueCount| {
        let name = it.value.as_str();
        let label = match facet.filter {
            "kind" => texts::kind(name),
            "lang" => texts::language(name),
            "author" => name_alone(name),
            _ => name,
        };
        html! { li { (value(address, facet.filter, name, label, it.count)) } }
    };
    html! {
        section .facet {
            h2 { (facet.title) }
            ul { @for one in shown { (row(one)) } }
            @if !others.is_empty() {
                details {
                    summary { (texts::more_values(others.len())) }
                    ul { @for one in others { (row(one)) } }
                }
            }
        }
    }
}
