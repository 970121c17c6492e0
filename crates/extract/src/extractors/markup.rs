//! Line-based markup languages: AsciiDoc, reStructuredText, Org and POD.

pub(crate) mod asciidoc;
mod inline;
pub(crate) mod org_mode;
pub(crate) mod perl_documentation;
pub(crate) mod restructured_text;
