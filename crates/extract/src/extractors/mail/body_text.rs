//! The text of a plain body: format=flowed (RFC 3676), inline PGP, and calendars (RFC 5545).

use super::parameters::ParameterizedField;

/// The text of a plain body.
#[derive(Debug, PartialEq)]
pub(crate) struct PlainText {
    pub(crate) text: String,
    /// Encrypted PGP blocks were removed.
    pub(crate) has_encrypted: bool,
}

/// Joins flowed lines, and removes PGP armour.
pub(crate) fn clean_plain_text(text: &str, content_type: &ParameterizedField) -> PlainText {
    let flowed = content_type.parameter("format");
    let mut text = text.replace("\r\n", "\n");
    if flowed.is_some_and(|format| format.eq_ignore_ascii_case("flowed")) {
        let delete_space = content_type.parameter("delsp");
        text = join_flowed(
            &text,
            delete_space.is_some_and(|it| it.eq_ignore_ascii_case("yes")),
        );
    }
    let mut plain = if text.contains("-----BEGIN PGP ") {
        remove_armour(&text)
    } else {
        PlainText {
            text,
            has_encrypted: false,
        }
    };
    plain.text.truncate(plain.text.trim_end().len());
    plain
}

/// Joins lines that end in a space with the next line of the same quotation depth.
fn join_flowed(text: &str, delete_space: bool) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut flows_at = None;
    for line in text.split('\n') {
        let content = line.trim_start_matches('>');
        let depth = line.len() - content.len();
        let content = content.strip_prefix(' ').unwrap_or(content);
        let is_signature = content == "-- ";
        if flows_at != Some(depth) || is_signature {
            if !joined.is_empty() {
                end_flow(&mut joined, flows_at.is_some());
            }
            let marks = line.get(..depth).unwrap_or_default();
            joined.push_str(marks);
            if depth > 0 {
                joined.push(' ');
            }
        }
        let flows = content.ends_with(' ') && !is_signature;
        let without_space = if flows && delete_space {
            content.strip_suffix(' ')
        } else {
            None
        };
        joined.push_str(without_space.unwrap_or(content));
        flows_at = flows.then_some(depth);
    }
    joined
}

fn end_flow(joined: &mut String, flows: bool) {
    if flows {
        joined.truncate(joined.trim_end_matches(' ').len());
    }
    joined.push('\n');
}

/// Removes encrypted blocks, keys and signatures. Signed text is kept.
fn remove_armour(text: &str) -> PlainText {
    let mut rest = String::new();
    let mut block: Option<&str> = None;
    let mut in_signed_header = false;
    let mut has_encrypted = false;
    for line in text.split('\n') {
        let trimmed = line.trim_end();
        if let Some(kind) = armour_line(trimmed, "-----BEGIN PGP ") {
            in_signed_header = kind == "SIGNED MESSAGE";
            has_encrypted |= kind == "MESSAGE";
            block = (!in_signed_header).then_some(kind);
        } else if block.is_some() {
            if armour_line(trimmed, "-----END PGP ") == block {
                block = None;
            }
        } else if in_signed_header {
            in_signed_header = !trimmed.is_empty();
        } else {
            rest.push_str(
                line.strip_prefix("- ")
                    .filter(|it| it.starts_with('-'))
                    .unwrap_or(line),
            );
            rest.push('\n');
        }
    }
    PlainText {
        text: rest,
        has_encrypted,
    }
}

fn armour_line<'l>(line: &'l str, start: &str) -> Option<&'l str> {
    line.strip_prefix(start)?.strip_suffix("-----")
}

/// Returns the readable properties of a calendar, one per line.
pub(crate) fn read_calendar(text: &str) -> String {
    const PROPERTIES: [&str; 8] = [
        "SUMMARY",
        "DESCRIPTION",
        "LOCATION",
        "ORGANIZER",
        "ATTENDEE",
        "COMMENT",
        "CATEGORIES",
        "CONTACT",
    ];
    let unfolded = text
        .replace("\r\n", "\n")
        .replace("\n ", "")
        .replace("\n\t", "");
    let mut lines = Vec::new();
    for line in unfolded.lines() {
        let Some((name, value)) = split_property(line) else {
            continue;
        };
        let parameters = ParameterizedField::parse(name);
        if PROPERTIES
            .iter()
            .any(|known| known.eq_ignore_ascii_case(&parameters.value))
        {
            let value = value
                .trim_start_matches("mailto:")
                .trim_start_matches("MAILTO:");
            let value = unescape_calendar(value);
            let line = match parameters.parameter("cn") {
                Some(name) => format!("{name} <{value}>"),
                None => value,
            };
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// Splits `NAME;PARAMETER="a:b":VALUE` at the unquoted colon.
fn split_property(line: &str) -> Option<(&str, &str)> {
    let mut quoted = false;
    let colon = line.char_indices().find(|(_, character)| {
        quoted ^= *character == '"';
        *character == ':' && !quoted
    });
    let (name, value) = line.split_at(colon?.0);
    Some((name, value.get(1..)?))
}

fn unescape_calendar(value: &str) -> String {
    let mut text = String::new();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n' | 'N') => text.push('\n'),
                Some(other) => text.push(other),
                None => {}
            },
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content_type: &str, text: &str, expected: &str, has_encrypted: bool) {
        let expected = PlainText {
            text: expected.into(),
            has_encrypted,
        };
        let content_type = ParameterizedField::parse(content_type);
        assert_eq!(clean_plain_text(text, &content_type), expected);
    }

    #[test]
    fn flowed_lines_are_joined() {
        let flowed = "text/plain; format=flowed";
        check(flowed, "one \ntwo\nthree \n\n", "one two\nthree", false);
        check(
            flowed,
            " >a \n>b \n>c\n>> d \ne\n-- \nAda",
            ">a\n> b c\n>> d\ne\n-- \nAda",
            false,
        );
        check(
            "text/plain; format=Flowed; delsp=Yes",
            "日本 \r\n語\r\n",
            "日本語",
            false,
        );
        check("text/plain", "one \ntwo", "one \ntwo", false);
    }

    #[test]
    fn pgp_armour_is_removed() {
        let signed = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA1\n\n- -- a\nb\n\
            -----BEGIN PGP SIGNATURE-----\n\niQ==\n-----END PGP SIGNATURE-----\nc";
        check("text/plain", signed, "-- a\nb\nc", false);
        let encrypted = "a\n-----BEGIN PGP MESSAGE-----\n\nhQ\n-----END PGP MESSAGE-----\nb";
        check("text/plain", encrypted, "a\nb", true);
    }

    #[test]
    fn calendars_are_read() {
        let calendar = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nSUMMARY;LANGUAGE=en:Bread\r\n  and salt\r\n\
            ATTENDEE;CN=\"Ada: L\":mailto:a@x\r\nLOCATION:Room 1\\, left\\nDoor 2\r\nEND:VEVENT\r\n";
        assert_eq!(
            read_calendar(calendar),
            "Bread and salt\nAda: L <a@x>\nRoom 1, left\nDoor 2"
        );
    }
}
