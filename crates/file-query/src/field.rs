//! The fields of queries.

/// A field of a query: the name before the colon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Words in a part of a document.
    Text(TextField),
    /// A property that is compared as a whole.
    Token(TokenField),
    /// `date:`
    Date,
    /// `size:`
    Size,
    /// `mime:` a media type, or a pattern of several
    MimeType,
}

/// A part of a document that has words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextField {
    /// `title:`
    Title,
    /// `author:` or `artist:`
    Author,
    /// `album:`
    Album,
    /// `from:` the senders of a mail
    From,
    /// `to:` the recipients of a mail, also of its copies
    To,
    /// `list:` the mailing list of a mail
    List,
    /// `subject:`
    Subject,
    /// `keyword:` or `tag:`
    Keyword,
    /// `path:` the words of the path
    Path,
}

/// A property that is compared as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenField {
    /// `filename:` with or without `*`
    FileName,
    /// `ext:`
    Extension,
    /// `kind:` `text`, `mail`, `pdf` and others
    Kind,
    /// `lang:` a two-letter code
    Language,
    /// `dir:` a folder that the file is in or below
    Folder,
}

/// All names with their fields. Messages use the first name of a field.
const FIELDS: [(&str, Field); 24] = [
    ("title", Field::Text(TextField::Title)),
    ("author", Field::Text(TextField::Author)),
    ("artist", Field::Text(TextField::Author)),
    ("album", Field::Text(TextField::Album)),
    ("from", Field::Text(TextField::From)),
    ("to", Field::Text(TextField::To)),
    ("recipient", Field::Text(TextField::To)),
    ("list", Field::Text(TextField::List)),
    ("subject", Field::Text(TextField::Subject)),
    ("keyword", Field::Text(TextField::Keyword)),
    ("keywords", Field::Text(TextField::Keyword)),
    ("tag", Field::Text(TextField::Keyword)),
    ("path", Field::Text(TextField::Path)),
    ("filename", Field::Token(TokenField::FileName)),
    ("ext", Field::Token(TokenField::Extension)),
    ("kind", Field::Token(TokenField::Kind)),
    ("type", Field::Token(TokenField::Kind)),
    ("lang", Field::Token(TokenField::Language)),
    ("language", Field::Token(TokenField::Language)),
    ("dir", Field::Token(TokenField::Folder)),
    ("date", Field::Date),
    ("size", Field::Size),
    ("mime", Field::MimeType),
    ("mimetype", Field::MimeType),
];

impl Field {
    /// Returns the field with this name. Case is ignored.
    pub fn from_name(name: &str) -> Option<Field> {
        let found = FIELDS
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, field)| *field)
    }

    /// Returns the name that messages use.
    pub fn name(self) -> &'static str {
        let found = FIELDS.iter().find(|(_, field)| *field == self);
        found.map_or("", |(name, _)| *name)
    }

    /// Returns all field names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FIELDS.iter().map(|(name, _)| *name)
    }
}
