//! The parts of a certificate that the server shows or uses as names: X.509, RFC 5280.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windrow_mql::expression::CalendarDate;

use super::der::{
    CONTEXT_0, Element, GENERALIZED_TIME, INTEGER, OBJECT_ID, Reader, SEQUENCE, SET, UTC_TIME,
};

/// A certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The subject as RFC 2253 writes it, the last part first: `CN=client,O=Windrow,C=DE`.
    pub subject: String,
    pub not_before: SystemTime,
    pub not_after: SystemTime,
}

impl Certificate {
    /// Parses a certificate in DER. Returns `None` if it is malformed.
    pub fn parse(der: &[u8]) -> Option<Certificate> {
        let mut fields = Reader::new(der).enter(SEQUENCE)?.enter(SEQUENCE)?;
        if fields.next_tag() == Some(CONTEXT_0) {
            fields.expect(CONTEXT_0)?; // the version
        }
        fields.expect(INTEGER)?; // the serial number
        fields.expect(SEQUENCE)?; // the algorithm of the signature
        fields.expect(SEQUENCE)?; // the issuer
        let mut validity = fields.enter(SEQUENCE)?;
        let subject = fields.enter(SEQUENCE)?;
        Some(Certificate {
            subject: format_name(subject)?,
            not_before: parse_time(validity.next()?)?,
            not_after: parse_time(validity.next()?)?,
        })
    }
}

/// Attributes of names that have a short name, as OpenSSL and therefore MongoDB write it.
const ATTRIBUTES: &[(&[u8], &str)] = &[
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 4], "SN"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "street"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 12], "title"),
    (&[0x55, 4, 42], "GN"),
    (&[0x55, 4, 43], "initials"),
    (&[0x55, 4, 46], "dnQualifier"),
    // 0.9.2342.19200300.100.1.1 and .25
    (&[9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
    (&[9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
    // 1.2.840.113549.1.9.1
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 9, 1], "emailAddress"),
];

/// Writes a name as RFC 2253 does: the last relative name first, parts of one relative name joined
/// by `+`. Returns `None` if any part is malformed: a name without it would be that of another
/// client.
fn format_name(mut name: Reader<'_>) -> Option<String> {
    let mut relative_names = Vec::new();
    while !name.is_at_end() {
        relative_names.push(format_relative_name(name.enter(SET)?)?);
    }
    relative_names.reverse();
    Some(relative_names.join(","))
}

/// Writes a relative name. It has at least one attribute.
fn format_relative_name(mut name: Reader<'_>) -> Option<String> {
    let mut attributes = Vec::new();
    loop {
        let mut parts = name.enter(SEQUENCE)?;
        let id = parts.expect(OBJECT_ID)?;
        attributes.push(format_attribute(id.content, parts.next()?)?);
        if !parts.is_at_end() {
            return None;
        }
        if name.is_at_end() {
            return Some(attributes.join("+"));
        }
    }
}

fn format_attribute(id: &[u8], value: Element<'_>) -> Option<String> {
    let known = ATTRIBUTES.iter().find(|(known, _)| *known == id);
    Some(match known {
        Some((_, name)) if is_string(value.tag) => {
            format!("{name}={}", escape(&decode_string(value)?))
        }
        Some((_, name)) => format!("{name}={}", format_bytes(value.encoded)),
        None => format!("{}={}", format_object_id(id)?, format_bytes(value.encoded)),
    })
}

/// The tags of strings.
const UTF8: u8 = 0x0c;
const PRINTABLE: u8 = 0x13;
const TELETEX: u8 = 0x14;
const ASCII: u8 = 0x16;
const UNIVERSAL: u8 = 0x1c;
const TWO_BYTES: u8 = 0x1e;

fn is_string(tag: u8) -> bool {
    matches!(
        tag,
        UTF8 | PRINTABLE | TELETEX | ASCII | UNIVERSAL | TWO_BYTES
    )
}

/// Returns the text of a string. `None` if it is malformed.
fn decode_string(value: Element<'_>) -> Option<String> {
    let text = || String::from_utf8(value.content.to_vec()).ok();
    match value.tag {
        UTF8 => text(),
        PRINTABLE | ASCII => text().filter(|text| text.is_ascii()),
        // OpenSSL reads it as Latin-1.
        TELETEX => Some(value.content.iter().map(|byte| char::from(*byte)).collect()),
        TWO_BYTES => {
            let (units, rest) = value.content.as_chunks::<2>();
            let units = units.iter().map(|unit| u16::from_be_bytes(*unit));
            let text: Result<String, _> = char::decode_utf16(units).collect();
            text.ok().filter(|_| rest.is_empty())
        }
        UNIVERSAL => {
            let (units, rest) = value.content.as_chunks::<4>();
            let units = units
                .iter()
                .map(|unit| char::from_u32(u32::from_be_bytes(*unit)));
            units
                .collect::<Option<String>>()
                .filter(|_| rest.is_empty())
        }
        _ => None,
    }
}

/// Escapes what has a meaning in RFC 2253, and control characters.
fn escape(text: &str) -> String {
    let (mut escaped, last) = (String::new(), text.chars().count().saturating_sub(1));
    for (position, letter) in text.chars().enumerate() {
        let is_special = matches!(letter, ',' | '+' | '"' | '\\' | '<' | '>' | ';')
            || letter == '#' && position == 0
            || letter == ' ' && (position == 0 || position == last);
        if letter.is_ascii_control() {
            let _ = write!(escaped, "\\{:02X}", letter as u32);
            continue;
        }
        if is_special {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

fn format_bytes(bytes: &[u8]) -> String {
    bytes.iter().fold("#".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}

/// Formats an object id, which is a sequence of numbers in base 128. The first number combines the
/// first two. Returns `None` for malformed ids and for numbers of more than 63 bits.
fn format_object_id(bytes: &[u8]) -> Option<String> {
    let (mut numbers, mut number, mut is_first) = (Vec::new(), 0u64, true);
    for byte in bytes {
        // A number has one encoding, the one without leading zeros.
        if number > u64::MAX >> 8 || is_first && *byte == 0x80 {
            return None;
        }
        number = number << 7 | u64::from(byte & 0x7f);
        is_first = byte & 0x80 == 0;
        if is_first {
            if numbers.is_empty() {
                numbers.push((number / 40).min(2));
                number -= 40 * (number / 40).min(2);
            }
            numbers.push(std::mem::take(&mut number));
        }
    }
    if !is_first || numbers.is_empty() {
        return None;
    }
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    Some(numbers.join("."))
}

/// Parses `YYMMDDHHMMSSZ`, with years from 1950 to 2049, or `YYYYMMDDHHMMSSZ`.
fn parse_time(time: Element<'_>) -> Option<SystemTime> {
    let text = std::str::from_utf8(time.content).ok()?.strip_suffix('Z')?;
    let (year, rest) = match time.tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year = parse_number(year)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (parse_number(year)?, rest)
        }
        _ => return None,
    };
    let number = |position: usize| parse_number(rest.get(position..position + 2)?);
    if rest.len() != 10 {
        return None;
    }
    let (month, day) = (number(0)?, number(2)?);
    let days = CalendarDate { year, month, day }.days();
    let seconds = days * 86_400 + number(4)? * 3600 + number(6)? * 60 + number(8)?;
    // Certificates that are valid since before 1970 do not need the exact time.
    Some(UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

fn parse_number(text: &str) -> Option<i64> {
    let is_number = text.bytes().all(|digit| digit.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair, date_time_ymd};

    fn encoded(name: DistinguishedName) -> Vec<u8> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = name;
        parameters.not_before = date_time_ymd(1999, 12, 31);
        parameters.not_after = date_time_ymd(2051, 2, 3);
        let certificate = parameters.self_signed(&KeyPair::generate().unwrap());
        certificate.unwrap().der().to_vec()
    }

    #[test]
    fn subjects_are_written_as_in_rfc_2253() {
        let check = |parts: Vec<(DnType, DnValue)>, expected: &str| {
            let mut name = DistinguishedName::new();
            parts
                .into_iter()
                .for_each(|(kind, value)| name.push(kind, value));
            assert_eq!(
                Certificate::parse(&encoded(name)).unwrap().subject,
                expected
            );
        };
        let text = |text: &str| DnValue::Utf8String(text.to_owned());
        check(
            vec![
                (DnType::CountryName, text("DE")),
                (DnType::OrganizationName, text("Windrow, \"Inc\"")),
                (DnType::CommonName, text("alice")),
            ],
            "CN=alice,O=Windrow\\, \\\"Inc\\\",C=DE",
        );
        check(
            vec![(DnType::CommonName, text(" #a+b;\0 "))],
            "CN=\\ #a\\+b\\;\\00\\ ",
        );
        check(vec![(DnType::CommonName, text("#1"))], "CN=\\#1");
        check(
            vec![(
                DnType::CommonName,
                DnValue::BmpString("Zoë".try_into().unwrap()),
            )],
            "CN=Zoë",
        );
        let email = DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]);
        let address = DnValue::Ia5String("a@b".try_into().unwrap());
        check(vec![(email, address)], "emailAddress=a@b");
        let unknown = DnType::CustomDnType(vec![2, 999, 3, 128]);
        check(vec![(unknown, text("x"))], "2.999.3.128=#0C0178");
        check(Vec::new(), "");
    }

    /// Malformed parts had been left out, so that the subject was that of another client.
    #[test]
    fn malformed_subjects_are_refused() {
        // CN=a, as a relative name.
        let good: &[u8] = &[0x31, 10, 0x30, 8, 6, 3, 0x55, 4, 3, 0x0c, 1, b'a'];
        let check = |name: &[u8], expected: Option<&str>| {
            let found = format_name(Reader::new(name));
            assert_eq!(found.as_deref(), expected, "{name:?}");
        };
        check(good, Some("CN=a"));
        check(&[good, good].concat(), Some("CN=a,CN=a"));
        let malformed: &[&[u8]] = &[
            // Not a set, an empty set, bytes that are cut off, a length that is not the shortest.
            &[0x30, 0],
            &[0x31, 0],
            &[0x31, 9],
            &[0x31],
            &[0x31, 0x81, 0],
            // An attribute that is no sequence, or has no id, no value or too many.
            &[0x31, 2, 0x31, 0],
            &[0x31, 4, 0x30, 2, 0x0c, 0],
            &[0x31, 7, 0x30, 5, 6, 3, 0x55, 4, 3],
            &[0x31, 11, 0x30, 9, 6, 3, 0x55, 4, 3, 0x0c, 0, 5, 0],
            // Bytes after an attribute that are none.
            &[0x31, 11, 0x30, 8, 6, 3, 0x55, 4, 3, 0x0c, 1, b'a', 0x30],
            // Strings that are none: UTF-8, printable, two bytes.
            &[0x31, 10, 0x30, 8, 6, 3, 0x55, 4, 3, 0x0c, 1, 0xff],
            &[0x31, 11, 0x30, 9, 6, 3, 0x55, 4, 3, 0x13, 2, 0xc3, 0xa4],
            &[0x31, 10, 0x30, 8, 6, 3, 0x55, 4, 3, 0x1e, 1, b'a'],
            // Ids that are empty, cut off, too long, or have a second encoding.
            &[0x31, 6, 0x30, 4, 6, 0, 0x0c, 0],
            &[0x31, 7, 0x30, 5, 6, 1, 0x80, 0x0c, 0],
            &[0x31, 8, 0x30, 6, 6, 2, 0x80, 1, 0x0c, 0],
            &[
                0x31, 17, 0x30, 15, 6, 11, 0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                0xff, 1, 0x0c, 0,
            ],
        ];
        for part in malformed {
            check(part, None);
            check(&[good, part].concat(), None);
            check(&[part, good].concat(), None);
        }
    }

    #[test]
    fn times_are_parsed_and_damage_is_no_panic() {
        let der = encoded(DistinguishedName::new());
        let certificate = Certificate::parse(&der).unwrap();
        let days = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap().as_secs() / 86_400;
        assert_eq!(days(certificate.not_before), 10_956);
        assert_eq!(days(certificate.not_after), 29_618);
        for length in 0..der.len() {
            Certificate::parse(&der[..length]);
        }
        for position in 0..der.len() {
            for byte in [0, 1, 0x7f, 0x80, 0x84, 0xff] {
                let mut damaged = der.clone();
                damaged[position] = byte;
                Certificate::parse(&damaged);
            }
        }
    }
}
