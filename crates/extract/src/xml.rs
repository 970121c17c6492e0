//! An XML reader that ignores namespace prefixes.

use std::borrow::Cow;

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::QName;
use quick_xml::{Reader, XmlVersion};

use crate::encoding;
use crate::error::ExtractError;
use crate::limits::Limits;

/// Events between two checks of the deadline.
const EVENTS_PER_CHECK: u32 = 4096;

/// Decodes an XML file of any encoding.
pub(crate) fn decode_xml(bytes: &[u8]) -> String {
    let declared = encoding::find_declared_encoding(bytes);
    encoding::decode_with(bytes, declared, usize::MAX).text
}

/// Part of an XML document.
#[derive(Debug)]
pub(crate) enum XmlEvent<'x> {
    Start(XmlElement<'x>),
    /// An end tag with its local name. Empty elements have one, too.
    End(Cow<'x, str>),
    /// Text, CDATA, or a decoded reference.
    Text(Cow<'x, str>),
}

/// The start tag of an element.
#[derive(Debug)]
pub(crate) struct XmlElement<'x>(BytesStart<'x>);

impl XmlElement<'_> {
    /// The name without its prefix.
    pub(crate) fn name(&self) -> &str {
        self.0.local_name().into_inner()
    }

    /// Returns the value of the first attribute with this local name. An attribute without a
    /// prefix takes precedence.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        self.find_attribute(|key| key.as_ref() == name)
            .or_else(|| self.prefixed_attribute(name))
    }

    /// Returns the value of the first attribute with this local name and any prefix.
    pub(crate) fn prefixed_attribute(&self, name: &str) -> Option<String> {
        self.find_attribute(|key| key.prefix().is_some() && key.local_name().into_inner() == name)
    }

    fn find_attribute(&self, matches: impl Fn(QName<'_>) -> bool) -> Option<String> {
        let mut attributes = self.0.attributes();
        // The check for duplicate attributes would take quadratic time.
        let mut valid = attributes.with_checks(false).flatten();
        let attribute = valid.find(|attribute| matches(attribute.key))?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?;
        Some(value.into_owned())
    }
}

/// Reads one XML document. Entities that a document type declares are not expanded.
pub(crate) struct XmlReader<'x> {
    reader: Reader<&'x [u8]>,
    /// The format's name in messages.
    format: &'static str,
    limits: &'x Limits,
    events: u32,
}

impl<'x> XmlReader<'x> {
    pub(crate) fn new(format: &'static str, xml: &'x str, limits: &'x Limits) -> Self {
        let mut reader = Reader::from_str(xml);
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.allow_dangling_amp = true;
        XmlReader {
            reader,
            format,
            limits,
            events: 0,
        }
    }

    /// Returns the next event, or `None` at the end of the document.
    ///
    /// # Errors
    /// Fails with [`ExtractError::Malformed`] if the document is not well-formed, and with
    /// [`ExtractError::Deadline`].
    pub(crate) fn next(&mut self) -> Result<Option<XmlEvent<'x>>, ExtractError> {
        loop {
            self.events = self.events.wrapping_add(1);
            if self.events.is_multiple_of(EVENTS_PER_CHECK) {
                self.limits.check_deadline()?;
            }
            let event = self.reader.read_event();
            let event = event.map_err(|error| self.describe_error(&error))?;
            match event {
                Event::Start(start) | Event::Empty(start) => {
                    return Ok(Some(XmlEvent::Start(XmlElement(start))));
                }
                Event::End(end) => {
                    let name = end.local_name().into_inner().to_string();
                    return Ok(Some(XmlEvent::End(Cow::Owned(name))));
                }
                Event::Text(text) => return Ok(Some(XmlEvent::Text(text.into_inner()))),
                Event::CData(text) => return Ok(Some(XmlEvent::Text(text.into_inner()))),
                Event::GeneralRef(reference) => {
                    if let Some(text) = resolve_reference(&reference) {
                        return Ok(Some(XmlEvent::Text(text)));
                    }
                }
                Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Comment(_) => {}
                Event::Eof => return Ok(None),
            }
        }
    }

    /// Skips the content of an element whose start tag was just returned, and its end tag.
    pub(crate) fn skip_element(&mut self) -> Result<(), ExtractError> {
        let mut depth = 1u64;
        while depth > 0 {
            match self.next()? {
                Some(XmlEvent::Start(_)) => depth += 1,
                Some(XmlEvent::End(_)) => depth -= 1,
                Some(XmlEvent::Text(_)) => {}
                None => return Err(self.describe_error(&"it ends within an element")),
            }
        }
        Ok(())
    }

    /// Returns the trimmed text of an element whose start tag was just returned.
    pub(crate) fn read_element_text(&mut self) -> Result<String, ExtractError> {
        let (mut text, mut depth) = (String::new(), 1u64);
        while depth > 0 {
            match self.next()? {
                Some(XmlEvent::Start(_)) => depth += 1,
                Some(XmlEvent::End(_)) => depth -= 1,
                Some(XmlEvent::Text(piece)) => text.push_str(&piece),
                None => return Err(self.describe_error(&"it ends within an element")),
            }
        }
        Ok(text.trim().to_string())
    }

    fn describe_error(&self, error: &dyn std::fmt::Display) -> ExtractError {
        ExtractError::malformed(self.format, format!("its XML is invalid: {error}"))
    }
}

/// Returns the text of a character reference or predefined entity. Other references have no text.
fn resolve_reference(reference: &BytesRef<'_>) -> Option<Cow<'static, str>> {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return Some(Cow::Owned(character.to_string()));
    }
    let name: &str = reference;
    match name {
        "nbsp" => Some(Cow::Borrowed("\u{a0}")),
        name => resolve_predefined_entity(name).map(Cow::Borrowed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(xml: &str, expected: &str) {
        let limits = Limits::default();
        let mut reader = XmlReader::new("XML", xml, &limits);
        let mut found = String::new();
        let result = loop {
            match reader.next() {
                Ok(Some(XmlEvent::Start(element))) => {
                    found += &format!("<{}", element.name());
                    for name in ["id", "b"] {
                        let value = element.attribute(name);
                        found += &value.map_or(String::new(), |value| format!(" {name}={value}"));
                    }
                    found += ">";
                }
                Ok(Some(XmlEvent::End(name))) => found += &format!("</{name}>"),
                Ok(Some(XmlEvent::Text(text))) => found += &text,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = result {
            found += &format!("!{}", error.code());
        }
        assert_eq!(found, expected, "{xml}");
    }

    #[test]
    fn names_attributes_and_text_are_read() {
        check("<w:a r:id='1' b='&lt;2'/>", "<a id=1 b=<2></a>");
        check("<a r:id='1' id='2'/>", "<a id=2></a>");
        check("<a>&amp;&#65;<![CDATA[<]]>&nbsp;x</a>", "<a>&A<\u{a0}x</a>");
        check("<a>b & c</a>", "<a>b & c</a>");
        check("<a></b>", "<a>!malformed");
        check("<a", "!malformed");
    }

    /// The "billion laughs": each entity repeats the one before.
    #[test]
    fn declared_entities_are_not_expanded() {
        let xml = "<!DOCTYPE a [<!ENTITY x 'words'><!ENTITY y '&x;&x;'>]><a>1&y;2</a>";
        check(xml, "<a>12</a>");
    }
}
