//! Media types, defined by the properties of their documents.

use crate::field::TokenField;

/// A media type. Its documents have one of its kinds or extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MimeType {
    name: String,
    properties: Vec<(TokenField, String)>,
}

/// The media types that queries can use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MimeTypes(Vec<MimeType>);

impl MimeType {
    /// Creates a media type without documents.
    pub fn new(name: &str) -> MimeType {
        MimeType {
            name: name.to_lowercase(),
            properties: Vec::new(),
        }
    }

    /// Adds the documents of a kind.
    pub fn with_kind(mut self, kind: &str) -> MimeType {
        self.properties.push((TokenField::Kind, kind.to_owned()));
        self
    }

    /// Adds the documents with these extensions.
    pub fn with_extensions(mut self, extensions: &[&str]) -> MimeType {
        let extensions = extensions.iter().map(|it| (*it).to_owned());
        let properties = extensions.map(|it| (TokenField::Extension, it));
        self.properties.extend(properties);
        self
    }
}

impl MimeTypes {
    /// Creates the list of these types.
    pub fn new(types: impl IntoIterator<Item = MimeType>) -> MimeTypes {
        MimeTypes(types.into_iter().collect())
    }

    /// Returns the distinct properties of the documents of a type, or of the types that match a
    /// pattern with `*`. Case is ignored.
    pub(crate) fn find_properties(
        &self,
        pattern: &str,
    ) -> impl Iterator<Item = (TokenField, &str)> {
        let types = self.0.iter();
        let matching = types.filter(|it| matches_pattern(pattern, &it.name));
        let mut found: Vec<(TokenField, &str)> = Vec::new();
        for (field, value) in matching.flat_map(|it| &it.properties) {
            if !found.contains(&(*field, value)) {
                found.push((*field, value));
            }
        }
        found.into_iter()
    }
}

/// Returns `true` if a name contains the parts of a pattern between its asterisks in order.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        match name.split_once(part) {
            Some((_, behind)) => name = behind,
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        let cases = [
            ("text/plain", "text/plain", true),
            ("text/plain", "text/plain2", false),
            ("text/*", "text/plain", true),
            ("*", "text/plain", true),
            ("*plain", "text/plain", true),
            ("t*/*p*n", "text/plain", true),
            ("image/*", "text/plain", false),
            ("text/plain*n", "text/plain", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches_pattern(pattern, name), expected, "{pattern}");
        }
    }

    #[test]
    fn properties_are_returned_once() {
        let office = MimeType::new("application/A").with_extensions(&["doc", "dot"]);
        let other = MimeType::new("application/b").with_extensions(&["dot"]);
        let types = MimeTypes::new([office, other.with_kind("document")]);
        let found: Vec<_> = types.find_properties("application/*").collect();
        let expected = [
            (TokenField::Extension, "doc"),
            (TokenField::Extension, "dot"),
            (TokenField::Kind, "document"),
        ];
        assert_eq!(found, expected);
    }
}
