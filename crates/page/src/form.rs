//! Query strings and form data (`application/x-www-form-urlencoded`).

/// Names with values, in their order. A name can have several values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormFields {
    pairs: Vec<(String, String)>,
}

impl FormFields {
    /// Parses `name=value&…` with `+` and `%XX`. Invalid UTF-8 is replaced.
    pub fn parse(bytes: &[u8]) -> FormFields {
        FormFields {
            pairs: form_urlencoded::parse(bytes).into_owned().collect(),
        }
    }

    /// Returns the first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.pairs.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the first value of a name, or an empty string.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Returns all values of a name.
    pub fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        let pairs = self.pairs.iter();
        pairs
            .filter(move |(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the first value of a name as a number. `None` if it is not a number.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.get(name)?.parse().ok()
    }

    /// Returns a copy in which a name has this value alone. `None` removes the name.
    pub fn with(&self, name: &str, value: Option<&str>) -> FormFields {
        let mut changed = self.clone();
        changed.pairs.retain(|(known, _)| known != name);
        if let Some(value) = value {
            changed.pairs.push((name.to_owned(), value.to_owned()));
        }
        changed
    }

    /// Returns the form with an additional value of a name.
    pub fn and(mut self, name: &str, value: &str) -> FormFields {
        self.pairs.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns the address with this path and the form as its query.
    pub fn address(&self, path: &str) -> String {
        if self.pairs.is_empty() {
            return path.to_owned();
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&self.pairs);
        format!("{path}?{}", query.finish())
    }

    /// Returns all pairs of names and values.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.pairs.iter();
        pairs.map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_parsed_and_written() {
        let form = FormFields::parse(b"q=a+b%26%C3%A4&kind=text&kind=mail&n=7&x");
        assert_eq!(form.text("q"), "a b&ä");
        assert_eq!(form.all("kind").collect::<Vec<_>>(), ["text", "mail"]);
        assert_eq!((form.number("n"), form.number("q")), (Some(7), None));
        assert_eq!((form.get("x"), form.get("y")), (Some(""), None));
        let changed = form
            .with("kind", Some("pdf"))
            .with("x", None)
            .with("n", None);
        assert_eq!(changed.address("/"), "/?q=a+b%26%C3%A4&kind=pdf");
        assert_eq!(FormFields::default().address("/a"), "/a");
        assert_eq!(FormFields::parse(b"q=%ff").text("q"), "\u{fffd}");
    }
}
