//! Parses mail addresses (RFC 5322), including malformed ones.

use super::encoded_words;
use super::headers::collapse_spaces;
use crate::encoding::truncate;

/// The maximum number of addresses of a field.
const ADDRESSES_MAX: usize = 1000;
/// The maximum length of an address or identifier. Longer ones are malformed and truncated.
const ADDRESS_BYTES_MAX: usize = 500;

/// An address under construction.
#[derive(Default)]
struct Mailbox {
    /// The display name, or the address if there are no angle brackets.
    phrase: String,
    address: Option<String>,
    comment: String,
}

impl Mailbox {
    /// Returns the mailbox as `Name <address>`, or `None` if it is empty.
    fn format(&self) -> Option<String> {
        let phrase = collapse_spaces(&encoded_words::decode(&self.phrase));
        let comment = collapse_spaces(&encoded_words::decode(&self.comment));
        let address = self.address.as_deref().map(str::trim).unwrap_or_default();
        let (name, address) = match address {
            "" if comment.is_empty() => ("", phrase.as_str()),
            "" => (comment.as_str(), phrase.as_str()),
            address if phrase.is_empty() => (comment.as_str(), address),
            address => (phrase.trim_matches('\''), address),
        };
        match (name, address) {
            ("", "") => None,
            ("", only) | (only, "") => Some(only.to_string()),
            (name, address) if name == address => Some(address.to_string()),
            (name, address) => Some(format!("{name} <{address}>")),
        }
    }

    /// Returns `true` if the mailbox is only a name: an unquoted comma in a display name has split
    /// it, as in `Lovelace, Ada <ada@example.org>`.
    fn is_part_of_name(&self) -> bool {
        self.address.is_none() && !self.phrase.contains('@') && !self.phrase.trim().is_empty()
    }
}

/// Returns the addresses in a field as `Ada Lovelace <ada@example.org>`.
pub(crate) fn parse_addresses(text: &str) -> Vec<String> {
    let mut parser = AddressParser::default();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if parser.mailboxes.len() >= ADDRESSES_MAX {
            break;
        }
        match character {
            '"' => {
                let quoted = take_quoted(&mut characters, '"', '"');
                parser.current.phrase.push_str(&quoted);
            }
            '(' => {
                let comment = take_quoted(&mut characters, '(', ')');
                parser.current.comment.push_str(&comment);
            }
            '<' => {
                let address: String = characters.by_ref().take_while(|c| *c != '>').collect();
                parser.current.address = Some(address);
            }
            ',' => parser.finish_mailbox(),
            ';' => parser.finish_mailbox(),
            // The name of a group.
            ':' if parser.is_in_group_name() => parser.current = Mailbox::default(),
            other => parser.current.phrase.push(other),
        }
    }
    parser.finish_mailbox();
    parser.merge_split_names();
    parser
        .mailboxes
        .iter()
        .filter_map(Mailbox::format)
        .collect()
}

fn cut(mut text: String) -> String {
    truncate(&mut text, ADDRESS_BYTES_MAX);
    text
}

#[derive(Default)]
struct AddressParser {
    mailboxes: Vec<Mailbox>,
    current: Mailbox,
}

impl AddressParser {
    fn finish_mailbox(&mut self) {
        self.mailboxes.push(std::mem::take(&mut self.current));
    }

    fn is_in_group_name(&self) -> bool {
        let phrase = &self.current.phrase;
        phrase.len() <= ADDRESS_BYTES_MAX && !phrase.contains(['@', '['])
    }

    fn merge_split_names(&mut self) {
        let mut merged: Vec<Mailbox> = Vec::new();
        for mut mailbox in std::mem::take(&mut self.mailboxes) {
            if mailbox.address.is_some()
                && !mailbox.phrase.trim().is_empty()
                && let Some(last) = merged.pop_if(|last| last.is_part_of_name())
            {
                mailbox.phrase = format!("{}, {}", last.phrase.trim(), mailbox.phrase.trim());
            }
            merged.push(mailbox);
        }
        self.mailboxes = merged;
    }
}

/// Returns the text up to the closing character. Comments can be nested.
fn take_quoted(characters: &mut std::str::Chars<'_>, open: char, close: char) -> String {
    let mut text = String::new();
    let mut depth = 1;
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next()),
            character if character == close => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
                text.push(character);
            }
            character => {
                depth += usize::from(character == open);
                text.push(character);
            }
        }
    }
    text
}

/// Returns the identifiers in a field like `References`, without angle brackets.
pub(crate) fn parse_message_ids(text: &str) -> Vec<String> {
    if !text.contains('<') {
        let single = text.split_whitespace().next().map(|id| cut(id.to_string()));
        return single.into_iter().collect();
    }
    let ids = text.split('<').skip(1).filter_map(|part| {
        let id = part.split('>').next()?.trim();
        (!id.is_empty()).then(|| cut(id.to_string()))
    });
    ids.take(ADDRESSES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(parse_addresses(text), expected, "{text}");
        };
        check("a@x.org", &["a@x.org"]);
        check("Ada <a@x.org>, b@x.org", &["Ada <a@x.org>", "b@x.org"]);
        check("\"Lovelace, \\\"A\\\"\" <a@x>", &["Lovelace, \"A\" <a@x>"]);
        check(
            "Lovelace, Ada <a@x>, Bob <b@x>",
            &["Lovelace, Ada <a@x>", "Bob <b@x>"],
        );
        check("a@x (Ada (the first))", &["Ada (the first) <a@x>"]);
        check("Team: a@x, B <b@x>;, c@x", &["a@x", "B <b@x>", "c@x"]);
        check("undisclosed-recipients:;", &[]);
        check("=?utf-8?Q?B=C3=A4r=2C_A?= <a@x>", &["Bär, A <a@x>"]);
        check("\"=?utf-8?Q?B=C3=A4r?=\" <a@x>", &["Bär <a@x>"]);
        check("<a@x>", &["a@x"]);
        check("a", &["a"]);
        check("root, ada", &["root", "ada"]);
        check("'a@x' <a@x>, <b@x", &["a@x", "b@x"]);
        check("Ada \"unclosed <a@x>", &["Ada unclosed <a@x>"]);
        check("", &[]);
    }

    #[test]
    fn message_ids_are_parsed() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(parse_message_ids(text), expected, "{text}");
        };
        check("<a@x> <b@x>(c)\t<d", &["a@x", "b@x", "d"]);
        check("a@x words", &["a@x"]);
        check("Your mail of <a@x>", &["a@x"]);
        check("", &[]);
    }
}
