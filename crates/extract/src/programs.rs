//! The interface to external programs.
//!
//! The crate starts no processes. Its caller can pass an implementation of [`Programs`].

use std::path::Path;

use crate::error::ExtractError;
use crate::language::Languages;
use crate::limits::Limits;
use crate::output::DocumentKind;

/// External programs: converters of further formats, and text recognition in pictures.
pub trait Programs {
    /// Returns the converter for a file with this lower-case extension, or for a format with one of
    /// these media types. The extension takes precedence.
    fn find_converter(&self, extension: &str, media_types: &[&str]) -> Option<ConverterChoice>;

    /// Converts a file or member to documents, which have at most [`Limits::input_bytes_max`] bytes
    /// in total.
    ///
    /// # Errors
    /// Fails with [`ExtractError::MissingProgram`] or [`ExtractError::ProgramFailed`].
    fn convert(
        &mut self,
        converter: &ConverterChoice,
        input: &ProgramInput<'_>,
        limits: &Limits,
    ) -> Result<Vec<ConvertedDocument>, ExtractError>;

    /// Returns `true` if text recognition is available.
    fn recognizes_text(&self) -> bool;

    /// Recognizes the text of a picture or of the pages of a document.
    fn recognize_text(
        &mut self,
        format: PictureFormat,
        input: &ProgramInput<'_>,
        limits: &Limits,
    ) -> RecognizedText;
}

/// The recognized text of a picture or of the pages of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecognizedText {
    /// The text that was recognized before an error.
    pub text: String,
    /// The document has more pages than are read.
    pub truncated: bool,
    /// The error if the text is incomplete: [`ExtractError::MissingProgram`] or
    /// [`ExtractError::ProgramFailed`].
    pub error: Option<ExtractError>,
}

/// A converter and its properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConverterChoice {
    /// The index of the converter.
    pub number: usize,
    /// The media type that it reads.
    pub media_type: String,
    /// The converter reads only files without extractable text.
    pub is_fallback: bool,
    /// The kind of its documents.
    pub kind: DocumentKind,
}

/// The input of a program.
#[derive(Debug, Clone, Copy)]
pub struct ProgramInput<'a> {
    /// The name of the file or member.
    pub name: &'a str,
    /// Its content.
    pub content: ProgramContent<'a>,
}

/// The content of an input.
#[derive(Debug, Clone, Copy)]
pub enum ProgramContent<'a> {
    /// A file.
    File(&'a Path),
    /// The bytes of a member.
    Bytes(&'a [u8]),
}

/// The input of text recognition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureFormat {
    /// A picture.
    Picture,
    /// A PDF with scanned pages.
    Pdf,
}

impl PictureFormat {
    /// The first media types of the pictures that Tesseract can read.
    pub const MEDIA_TYPES: [&str; 5] = [
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        "image/tiff",
    ];
}

/// A document returned by a converter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConvertedDocument {
    /// Its name inside the file. `None` if the document is the file itself.
    pub inner_name: Option<String>,
    /// The media type of the bytes. `None` if it follows from the name and the bytes.
    pub media_type: Option<String>,
    /// The character encoding of text, by its label in the WHATWG standard.
    pub charset: Option<String>,
    /// The content.
    pub bytes: Vec<u8>,
    /// Lower-case names and values of properties: `title`, `author`, `keywords`, `abstract`.
    pub properties: Vec<(String, String)>,
}

/// The environment of an extraction, besides the bytes of the file.
pub struct FileContext<'a> {
    /// The limits.
    pub limits: &'a Limits,
    /// The path of the file, for programs. If `None`, they read a copy of the bytes.
    pub path: Option<&'a Path>,
    /// The possible languages of its documents. `None` is any language.
    pub languages: Option<&'a Languages>,
    /// The external programs.
    pub programs: Option<&'a mut dyn Programs>,
}

impl<'a> FileContext<'a> {
    /// An extraction without programs.
    pub fn new(limits: &'a Limits) -> Self {
        FileContext {
            limits,
            path: None,
            languages: None,
            programs: None,
        }
    }
}
