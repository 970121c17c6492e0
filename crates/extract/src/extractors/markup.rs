//! Lightweight markup languages of which lines have a meaning: AsciiDoc, reStructuredText, Org and
//! POD.

pub(crate) mod asciidoc;
mod inline;
pub(crate) mod org_mode;
pub(crate) mod perl_documentation;
pub(crate) mod restructured_text;
