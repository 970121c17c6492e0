//! The Unicode properties that `\p{…}` names.

use super::class;
use crate::ParseError;

/// The general categories. PCRE2 does not have their long names.
const CATEGORIES: [&str; 38] = [
    "C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn",
    "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm",
    "So", "Z", "Zl", "Zp", "Zs", "Any",
];

/// Properties that PCRE2 defines, and not Unicode.
const OWN: [(&str, &str); 6] = [
    ("l&", r"\p{Lu}\p{Ll}\p{Lt}"),
    ("lc", r"\p{Lu}\p{Ll}\p{Lt}"),
    ("xan", r"\p{L}\p{N}"),
    ("xwd", r"\p{L}\p{N}_"),
    ("xuc", r"$@`\x{A0}-\x{D7FF}\x{E000}-\x{10FFFF}"),
    // Surrogates, which valid UTF-8 never has: an empty set.
    ("cs", r"[^\x00-\x{10FFFF}]"),
];

/// The names of properties that have values, and their names in `regex-syntax`.
const WITH_VALUES: [(&str, &str); 4] = [
    ("sc", "sc"),
    ("script", "sc"),
    ("scx", "scx"),
    ("scriptextensions", "scx"),
];

/// Returns the members of a property in the syntax of `regex-syntax`. Case, spaces, hyphens and
/// underscores in the name are ignored. Fails if there is no such property.
pub(super) fn members(name: &str) -> Result<String, ParseError> {
    let is_ignored = |one: &char| matches!(one, '-' | '_') || one.is_ascii_whitespace();
    let name: String = name.chars().filter(|one| !is_ignored(one)).collect();
    let name = name.to_ascii_lowercase();
    if let Some((_, members)) = OWN.iter().find(|(own, _)| *own == name) {
        return Ok((*members).to_owned());
    }
    if matches!(name.as_str(), "xps" | "xsp") {
        return Ok(class::sets(true).space.to_owned());
    }
    if CATEGORIES.iter().any(|one| one.eq_ignore_ascii_case(&name)) {
        return Ok(format!(r"\p{{{name}}}"));
    }
    let known = |members: String| {
        class::parse(&format!("[{members}]"))
            .is_ok()
            .then_some(members)
    };
    if let Some((property, value)) = name.split_once([':', '=']) {
        let property = WITH_VALUES.iter().find(|(one, _)| *one == property);
        let members = property.and_then(|(_, theirs)| known(format!(r"\p{{{theirs}={value}}}")));
        return members.ok_or_else(unknown);
    }
    if let Some(script) = known(format!(r"\p{{scx={name}}}")) {
        return Ok(script);
    }
    let is_category = known(format!(r"\p{{gc={name}}}")).is_some();
    match known(format!(r"\p{{{name}}}")) {
        Some(members) if !is_category => Ok(members),
        _ => Err(unknown()),
    }
}

fn unknown() -> ParseError {
    ParseError::new(r"unknown property after \P or \p")
}
