//! Mails of Outlook: message files (`.msg`), and `winmail.dat`, which Outlook attaches to mails.

mod compressed_rtf;
mod message;
mod properties;
mod tnef;

pub(crate) use message::extract as extract_message;
pub(crate) use tnef::extract as extract_tnef;
