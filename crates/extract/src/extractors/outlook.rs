//! Items of Outlook: message files (`.msg`), data files (`.pst`, `.ost`), and `winmail.dat`
//! attachments of mails.

mod compressed_rtf;
mod data_file;
mod item;
mod message;
mod properties;
mod tnef;

pub(crate) use data_file::extract as extract_data_file;
#[cfg(test)]
pub(crate) use data_file::{fixture as data_file_fixture, tests as data_file_tests};
pub(crate) use message::extract as extract_message;
pub(crate) use tnef::extract as extract_tnef;
