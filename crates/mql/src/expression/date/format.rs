//! Date formats such as `%Y-%m-%d`. They are parsed once, for printing and for parsing dates.

use super::calendar::{Local, iso_weekday, month_name, weekday};
use crate::Error;

/// A parsed format.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DateFormat(pub Vec<Item>);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Text(String),
    /// A format letter after a percent sign.
    Letter(char),
}

impl Default for DateFormat {
    /// "2019-07-14T05:06:07.089Z".
    fn default() -> DateFormat {
        let text = |text: &str| Item::Text(text.to_owned());
        DateFormat(vec![
            Item::Letter('Y'),
            text("-"),
            Item::Letter('m'),
            text("-"),
            Item::Letter('d'),
            text("T"),
            Item::Letter('H'),
            text(":"),
            Item::Letter('M'),
            text(":"),
            Item::Letter('S'),
            text("."),
            Item::Letter('L'),
            text("Z"),
        ])
    }
}

/// The format letters for printing, and those for parsing.
pub(crate) const PRINT_LETTERS: &str = "BGHLMSUVYZbdjmuwz";
pub(crate) const PARSE_LETTERS: &str = "BGHLMSVYZbdjmuz";

impl DateFormat {
    /// Parses a format.
    ///
    /// # Errors
    ///
    /// - 18535: the format ends with a percent sign.
    /// - 18536: a letter is not one of `letters`.
    pub fn parse(text: &str, letters: &str) -> Result<DateFormat, Error> {
        let mut items = Vec::new();
        let mut plain = String::new();
        let mut characters = text.chars();
        while let Some(one) = characters.next() {
            if one != '%' {
                plain.push(one);
                continue;
            }
            match characters.next() {
                None => return Err(Error::new(18535, "Unmatched '%' at end of format string")),
                Some('%') => plain.push('%'),
                Some(letter) if letters.contains(letter) => {
                    if !plain.is_empty() {
                        items.push(Item::Text(std::mem::take(&mut plain)));
                    }
                    items.push(Item::Letter(letter));
                }
                Some(letter) => {
                    let message = format!("Invalid format character '%{letter}' in format string");
                    return Err(Error::new(18536, message));
                }
            }
        }
        if !plain.is_empty() {
            items.push(Item::Text(plain));
        }
        Ok(DateFormat(items))
    }

    /// Prints a date. Fails with 18537 if the year does not fit in four digits.
    pub fn print(&self, local: &Local) -> Result<String, Error> {
        let mut text = String::new();
        for item in &self.0 {
            match item {
                Item::Text(plain) => text.push_str(plain),
                Item::Letter(letter) => text.push_str(&print_letter(*letter, local)?),
            }
        }
        Ok(text)
    }
}

fn year(year: i64) -> Result<String, Error> {
    if (0..=9999).contains(&year) {
        return Ok(format!("{year:04}"));
    }
    let message = format!(
        "Could not convert date to string: date component was outside the supported range of 0-9999: {year}"
    );
    Err(Error::new(18537, message))
}

fn print_letter(letter: char, local: &Local) -> Result<String, Error> {
    Ok(match letter {
        'Y' => year(local.date().year)?,
        'G' => year(local.iso_week().year)?,
        'm' => format!("{:02}", local.date().month),
        'd' => format!("{:02}", local.date().day),
        'b' => month_name(local.date().month).chars().take(3).collect(),
        'B' => month_name(local.date().month).to_owned(),
        'H' => format!("{:02}", local.hour()),
        'M' => format!("{:02}", local.minute()),
        'S' => format!("{:02}", local.second()),
        'L' => format!("{:03}", local.millisecond()),
        'j' => format!("{:03}", local.date().day_of_year()),
        'w' => (weekday(local.days()) + 1).to_string(),
        'u' => iso_weekday(local.days()).to_string(),
        'U' => format!("{:02}", local.week()),
        'V' => format!("{:02}", local.iso_week().week),
        'Z' => (local.offset / 60).to_string(),
        'z' => {
            let (sign, minutes) = (
                if local.offset < 0 { '-' } else { '+' },
                local.offset.abs() / 60,
            );
            format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
        }
        _ => String::new(),
    })
}
