//! Destinations: the kinds of content of groups.

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Destination {
    Body,
    /// A note, comment, header or text box. It is separate from the text around it.
    Block,
    /// Text that is part of the surrounding text, inside a skipped group.
    Inline,
    /// The font table, which contains encodings.
    Fonts,
    /// The properties of the document.
    Properties,
    Property(Property),
    /// Pictures, styles, field codes and unknown destinations.
    Skipped,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Property {
    Title,
    Author,
    Subject,
    Keywords,
    Description,
    Created,
}

impl Destination {
    /// Returns the destination of a nested group that begins with the control word `name`.
    /// `is_optional` is `true` after `\*`.
    pub(super) fn enter(self, name: &str, is_optional: bool) -> Destination {
        match (self, name) {
            // A property is repeated in Unicode.
            (Destination::Properties, "upr" | "ud") => self,
            (Destination::Properties, name) => find_property(name),
            (Destination::Property(_), _) => self,
            (Destination::Skipped, "shptxt") => Destination::Block,
            (Destination::Skipped, "result" | "fldrslt") => Destination::Inline,
            (Destination::Skipped | Destination::Fonts, _) => self,
            (_, "fonttbl") => Destination::Fonts,
            (_, "info") => Destination::Properties,
            (
                _,
                "footnote" | "annotation" | "header" | "headerl" | "headerr" | "headerf" | "footer"
                | "footerl" | "footerr" | "footerf" | "shptxt",
            ) => Destination::Block,
            (_, "fldrslt") => self,
            (_, name) if is_optional || is_skipped(name) => Destination::Skipped,
            _ => self,
        }
    }
}

fn find_property(name: &str) -> Destination {
    Destination::Property(match name {
        "title" => Property::Title,
        "author" => Property::Author,
        "subject" => Property::Subject,
        "keywords" => Property::Keywords,
        "doccomm" => Property::Description,
        "creatim" => Property::Created,
        _ => return Destination::Skipped,
    })
}

/// Destinations without text that are not preceded by `\*`.
fn is_skipped(name: &str) -> bool {
    matches!(
        name,
        "pict"
            | "nonshppict"
            | "colortbl"
            | "stylesheet"
            | "listtext"
            | "pntext"
            | "object"
            | "fldinst"
            | "shprslt"
            | "shpinst"
            | "filetbl"
            | "revtbl"
            | "xe"
            | "tc"
            | "rxe"
            | "bkmkstart"
            | "bkmkend"
            | "atnid"
            | "atnauthor"
            | "ftnsep"
            | "ftnsepc"
            | "ftncn"
            | "aftnsep"
            | "aftnsepc"
            | "aftncn"
            | "private"
    )
}
