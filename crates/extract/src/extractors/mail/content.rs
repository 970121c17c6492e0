//! Walks the parts of a message, selects between alternatives, and collects text and attachments.

use std::borrow::Cow;
use std::collections::HashSet;

use super::body_text::{clean_plain_text, read_calendar};
use super::embedded_files::{EmbeddedFile, separate_embedded_files};
use super::part::Part;
use super::signed_data::{self, CryptographicMessage};
use crate::error::ExtractError;
use crate::extractors::html;
use crate::format::extraction::catch_panic;
use crate::limits::Limits;

/// The maximum nesting depth of multipart bodies in a message. Deeper ones are attachments.
const MULTIPART_DEPTH_MAX: u32 = 30;
/// A plain body up to this length is a stub if the HTML body has several times its text.
const STUB_BYTES_MAX: usize = 1000;
const STUB_RATIO: usize = 4;

/// The text and the attachments of a message.
#[derive(Default)]
pub(crate) struct MessageContent<'m> {
    bodies: Vec<Body>,
    pub(crate) attachments: Vec<Attachment<'m>>,
}

/// An attachment of a message.
pub(crate) enum Attachment<'m> {
    /// A part of the message.
    Part(Part<'m>),
    /// A file embedded in the text of the message (uuencode, yEnc).
    File(EmbeddedFile),
    /// An encrypted body.
    Encrypted,
    /// A message inside a signature.
    Signed(Vec<u8>),
}

struct Body {
    text: String,
    is_html: bool,
}

impl<'m> MessageContent<'m> {
    pub(crate) fn read(message: Part<'m>, limits: &Limits) -> Result<Self, ExtractError> {
        let mut content = MessageContent::default();
        content.read_part(message, limits, 0)?;
        Ok(content)
    }

    /// Returns the text of all bodies.
    pub(crate) fn text(&self) -> String {
        join_bodies(&self.bodies)
    }

    fn read_part(
        &mut self,
        part: Part<'m>,
        limits: &Limits,
        depth: u32,
    ) -> Result<(), ExtractError> {
        limits.check_deadline()?;
        if part.content_type.main_type() == "multipart"
            && depth < MULTIPART_DEPTH_MAX
            && let Some(children) = part.split_multipart()
        {
            return self.read_multipart(&part, &children, limits, depth + 1);
        }
        if is_body(&part, depth) {
            return self.read_body(&part, limits);
        }
        match part.content_type.value.as_str() {
            // They are only meaningful together with the part that they sign or accompany.
            "application/pgp-signature"
            | "application/pkcs7-signature"
            | "application/x-pkcs7-signature"
            | "application/applefile" => {}
            "application/pkcs7-mime" | "application/x-pkcs7-mime" => {
                match signed_data::read(&part.decode_body()) {
                    CryptographicMessage::Signed(bytes) => {
                        self.read_signed(bytes, limits, depth + 1)?;
                    }
                    CryptographicMessage::Encrypted => {
                        self.attachments.push(Attachment::Encrypted);
                    }
                    CryptographicMessage::Other => {}
                }
            }
            _ if is_inline_image(&part) => {}
            _ => self.attachments.push(Attachment::Part(part)),
        }
        Ok(())
    }

    /// Reads the message inside a signature. If it has attachments, it is also a document.
    fn read_signed(
        &mut self,
        bytes: Vec<u8>,
        limits: &Limits,
        depth: u32,
    ) -> Result<(), ExtractError> {
        let mut content = MessageContent::default();
        if depth < MULTIPART_DEPTH_MAX {
            content.read_part(Part::parse(&bytes, "text/plain"), limits, depth)?;
            self.bodies.append(&mut content.bodies);
        }
        if depth == MULTIPART_DEPTH_MAX || !content.attachments.is_empty() {
            self.attachments.push(Attachment::Signed(bytes));
        }
        Ok(())
    }

    fn read_multipart(
        &mut self,
        part: &Part<'m>,
        children: &[&'m [u8]],
        limits: &Limits,
        depth: u32,
    ) -> Result<(), ExtractError> {
        let default_type = if part.is("multipart/digest") {
            "message/rfc822"
        } else {
            "text/plain"
        };
        let children = children
            .iter()
            .map(|child| Part::parse(child, default_type));
        match part.content_type.value.as_str() {
            "multipart/encrypted" => self.attachments.push(Attachment::Encrypted),
            "multipart/alternative" => return self.read_alternatives(children, limits, depth),
            "multipart/related" => {
                for (number, child) in children.enumerate() {
                    let is_image = child.content_type.main_type() == "image";
                    if number == 0 || !is_image || child.is_attachment() {
                        self.read_part(child, limits, depth)?;
                    }
                }
            }
            _ => {
                for child in children {
                    self.read_part(child, limits, depth)?;
                }
            }
        }
        Ok(())
    }

    /// Reads the plain alternative. Reads the HTML alternative instead if the plain one is missing,
    /// empty or a stub. If their words differ otherwise, both are read.
    fn read_alternatives(
        &mut self,
        children: impl Iterator<Item = Part<'m>>,
        limits: &Limits,
        depth: u32,
    ) -> Result<(), ExtractError> {
        let (mut plain, mut html, mut others) = (String::new(), String::new(), Vec::new());
        for child in children {
            let is_calendar = child.is("text/calendar");
            let before = std::mem::take(&mut self.bodies);
            let result = self.read_part(child, limits, depth);
            let mut found = std::mem::replace(&mut self.bodies, before);
            result?;
            let alternative = if found.iter().any(|body| body.is_html) {
                &mut html
            } else {
                &mut plain
            };
            if is_calendar || !alternative.is_empty() {
                others.append(&mut found);
            } else {
                *alternative = join_bodies(&found);
            }
        }
        let is_stub = is_stub(&plain, &html);
        let is_html = is_stub || lacks_most_words(&plain, &html);
        if is_html {
            self.bodies.push(Body {
                text: html,
                is_html,
            });
        }
        if !is_stub {
            self.bodies.push(Body {
                text: plain,
                is_html: false,
            });
        }
        // Further plain or HTML alternatives repeat the first one.
        others.retain(|body| is_html == body.is_html || !body.is_html);
        self.bodies.append(&mut others);
        Ok(())
    }

    fn read_body(&mut self, part: &Part<'m>, limits: &Limits) -> Result<(), ExtractError> {
        let mut bytes: Cow<'_, [u8]> = part.decode_body();
        let is_plain = part.is("text/plain");
        if is_plain && let Some(separated) = separate_embedded_files(&bytes) {
            bytes = separated.text.into();
            self.attachments
                .extend(separated.files.into_iter().map(Attachment::File));
        }
        let text = part.decode_text(&bytes);
        let is_markup = ["text/html", "text/enriched", "text/richtext"]
            .iter()
            .any(|it| part.is(it));
        let text = if is_markup {
            catch_panic("HTML", || html::extract_page(&text, limits))?.text
        } else if part.is("text/calendar") {
            read_calendar(&text)
        } else if is_plain {
            let plain = clean_plain_text(&text, &part.content_type);
            if plain.has_encrypted {
                self.attachments.push(Attachment::Encrypted);
            }
            plain.text
        } else {
            text.trim_end().to_string()
        };
        self.bodies.push(Body {
            text,
            is_html: is_markup,
        });
        Ok(())
    }
}

/// Returns `true` if the part is text of the message and not a file. Many programs give a file name
/// to the only part of a message.
fn is_body(part: &Part<'_>, depth: u32) -> bool {
    let is_report = [
        "message/delivery-status",
        "message/disposition-notification",
    ]
    .iter()
    .any(|it| part.is(it));
    let is_text = part.content_type.main_type() == "text" && !part.is("text/rtf");
    let is_file = part.is_attachment() || part.file_name().is_some() && depth > 0;
    // A multipart type without boundaries.
    let is_damaged = part.content_type.main_type() == "multipart";
    is_damaged || (is_text && !is_file) || is_report
}

/// Inline pictures have a Content-ID, by which the body refers to them.
fn is_inline_image(part: &Part<'_>) -> bool {
    part.content_type.main_type() == "image"
        && part.headers.value("content-id").is_some()
        && !part.is_attachment()
}

fn is_stub(plain: &str, html: &str) -> bool {
    let plain = plain.trim();
    !html.is_empty()
        && (plain.is_empty()
            || plain.len() <= STUB_BYTES_MAX && html.len() / STUB_RATIO > plain.len())
}

/// Returns `true` if a text has less than half of the distinct words of an HTML text. It is then
/// not a version of that text, but for example a request to use another program.
fn lacks_most_words(plain: &str, html: &str) -> bool {
    let words = |text| str::split(text, |it: char| !it.is_alphanumeric());
    let plain_words: HashSet<String> = words(plain).map(str::to_lowercase).collect();
    let mut html_words: HashSet<String> = words(html).map(str::to_lowercase).collect();
    html_words.remove("");
    let found = html_words.intersection(&plain_words).count();
    2 * found < html_words.len()
}

fn join_bodies(bodies: &[Body]) -> String {
    let texts = bodies.iter().map(|body| body.text.as_str());
    texts
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}
