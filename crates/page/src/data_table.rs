//! Tables of data. Each has a frame that scrolls on narrow screens, can be focused with the
//! keyboard, and has a label for screen readers.

use maud::{Markup, html};

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column<'c> {
    heading: &'c str,
    is_number: bool,
}

impl<'c> Column<'c> {
    /// A column of text.
    pub const fn text(heading: &'c str) -> Column<'c> {
        Column {
            heading,
            is_number: false,
        }
    }

    /// A column of numbers.
    pub const fn number(heading: &'c str) -> Column<'c> {
        Column {
            heading,
            is_number: true,
        }
    }
}

/// Returns a table. `label` is its name for screen readers; an empty `class` sets no class.
pub fn data_table(label: &str, class: &str, columns: &[Column<'_>], rows: &Markup) -> Markup {
    let class = (!class.is_empty()).then_some(class);
    let table = html! {
        table class=[class] {
            thead { tr {
                @for column in columns {
                    th scope="col" class=[column.is_number.then_some("number")] { (column.heading) }
                }
            } }
            tbody { (rows) }
        }
    };
    table_frame(label, &table)
}

/// Returns the frame around a table with custom headings.
pub fn table_frame(label: &str, table: &Markup) -> Markup {
    html! {
        div .table-frame tabindex="0" role="region" aria-label=(label) { (table) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_a_name_and_marked_numbers() {
        let columns = [Column::text("Name"), Column::number("Size")];
        let table = data_table("Files", "", &columns, &html! { tr { td { "a" } } });
        assert_eq!(
            table.into_string(),
            "<div class=\"table-frame\" tabindex=\"0\" role=\"region\" aria-label=\"Files\"><table><thead><tr>\
             <th scope=\"col\">Name</th><th scope=\"col\" class=\"number\">Size</th></tr></thead>\
             <tbody><tr><td>a</td></tr></tbody></table></div>"
        );
    }
}
