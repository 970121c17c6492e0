//! The interface to programs that read what this crate does not.
//!
//! The crate starts no processes. Its caller passes an implementation of [`Programs`], if it has one.

use std::path::Path;

use crate::error::ExtractError;
use crate::language::Languages;
use crate::limits::Limits;
use crate::output::DocumentKind;

/// Programs outside of the process: converters of further formats, and one that recognizes the text
/// of pictures.
pub trait Programs {
    /// Returns the converter for a file with this lower-case extension, or for a format with these
    /// media types. The extension counts first.
    fn find_converter(&self, extension: &str, media_types: &[&str]) -> Option<ConverterChoice>;

    /// Returns the documents that a converter finds in a file or member. Their bytes have together
    /// at most [`Limits::input_bytes_max`].
    ///
    /// # Errors
    /// Fails with [`ExtractError::MissingProgram`] or [`ExtractError::ProgramFailed`].
    fn convert(
        &mut self,
        converter: &ConverterChoice,
        input: &ProgramInput<'_>,
        limits: &Limits,
    ) -> Result<Vec<ConvertedDocument>, ExtractError>;

    /// Returns `true` if [`Programs::recognize_text`] should be called for pictures.
    fn recognizes_text(&self) -> bool;

    /// Returns the text that is visible in a picture or on the pages of a document.
    fn recognize_text(
        &mut self,
        format: PictureFormat,
        input: &ProgramInput<'_>,
        limits: &Limits,
    ) -> RecognizedText;
}

/// The text of a picture or of the pages of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecognizedText {
    /// The text, up to the error if there is one.
    pub text: String,
    /// There are more pages than are read.
    pub truncated: bool,
    /// Why the text is not complete: [`ExtractError::MissingProgram`] or
    /// [`ExtractError::ProgramFailed`].
    pub error: Option<ExtractError>,
}

/// A converter and how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConverterChoice {
    /// Its number among the converters.
    pub number: usize,
    /// The media type that it reads.
    pub media_type: String,
    /// It reads only files in which the crate finds no text.
    pub is_fallback: bool,
    /// The kind of its documents.
    pub kind: DocumentKind,
}

/// What a program reads.
#[derive(Debug, Clone, Copy)]
pub struct ProgramInput<'a> {
    /// The name of the file or member.
    pub name: &'a str,
    /// Its content.
    pub content: ProgramContent<'a>,
}

/// The content that a program reads.
#[derive(Debug, Clone, Copy)]
pub enum ProgramContent<'a> {
    /// A file.
    File(&'a Path),
    /// The bytes of a member.
    Bytes(&'a [u8]),
}

/// What [`Programs::recognize_text`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureFormat {
    /// A picture.
    Picture,
    /// A PDF whose pages are pictures.
    Pdf,
}

impl PictureFormat {
    /// The first media types of the pictures whose text is recognized. Tesseract reads these.
    pub const MEDIA_TYPES: [&str; 5] = [
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        "image/tiff",
    ];
}

/// A document that a converter found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConvertedDocument {
    /// Its name inside the file. `None` if the file is the document.
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

/// What an extraction may use besides the bytes of a file.
pub struct FileContext<'a> {
    /// The limits.
    pub limits: &'a Limits,
    /// The path of the file, for programs. Without it they read a copy of the bytes.
    pub path: Option<&'a Path>,
    /// The languages of its documents. `None`: any.
    pub languages: Option<&'a Languages>,
    /// Programs outside of the process.
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
