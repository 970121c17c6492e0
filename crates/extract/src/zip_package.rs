//! A document that is a zip archive: an Office document or a book.

use std::collections::HashSet;
use std::io::Read;

use crate::error::ExtractError;
use crate::limits::{Limits, ResourceUsage};
use crate::xml::decode_xml;
use crate::zip_directory::ZipDirectory;

/// An open archive whose members are parts of one document.
pub(crate) struct ZipPackage<'a> {
    directory: ZipDirectory<'a>,
    /// The format's name in messages.
    pub(crate) format: &'static str,
    pub(crate) limits: &'a Limits,
    usage: &'a mut ResourceUsage,
    read_members: HashSet<String>,
}

impl<'a> ZipPackage<'a> {
    pub(crate) fn open(
        format: &'static str,
        bytes: &'a [u8],
        limits: &'a Limits,
        usage: &'a mut ResourceUsage,
    ) -> Result<Self, ExtractError> {
        Ok(ZipPackage {
            directory: ZipDirectory::open(format, bytes)?,
            format,
            limits,
            usage,
            read_members: HashSet::new(),
        })
    }

    /// Returns the names of all members in the order of the archive.
    pub(crate) fn member_names(&self) -> Vec<String> {
        let members = self.directory.members.iter();
        members.map(|member| member.name.clone()).collect()
    }

    /// Returns the XML of a member, or `None` if there is no such member.
    ///
    /// # Errors
    /// Fails if the member is damaged, encrypted, or exceeds a limit.
    pub(crate) fn read_xml(&mut self, name: &str) -> Result<Option<String>, ExtractError> {
        let bytes = self.read(name)?;
        Ok(bytes.map(|bytes| decode_xml(&bytes)))
    }

    /// Like [`ZipPackage::read_xml`], but fails if there is no such member.
    pub(crate) fn read_required_xml(&mut self, name: &str) -> Result<String, ExtractError> {
        let xml = self.read_xml(name)?;
        xml.ok_or_else(|| self.malformed(format!("the part {name:?} is missing")))
    }

    /// Returns the bytes of a member, or `None` if there is no such member.
    ///
    /// # Errors
    /// See [`ZipPackage::read_xml`].
    pub(crate) fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, ExtractError> {
        let Some(member) = self.directory.find(name) else {
            return Ok(None);
        };
        self.usage.count_member(self.limits)?;
        let format = self.format;
        let budget = self
            .usage
            .expansion_budget(member.compressed_bytes, self.limits);
        let mut bytes = Vec::new();
        self.directory
            .open_member(member)?
            .take(budget.bytes_max.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| ExtractError::malformed(format, format!("{name}: {error}")))?;
        if bytes.len() as u64 > budget.bytes_max {
            return Err(budget.error);
        }
        self.usage.add_expanded(bytes.len(), self.limits)?;
        Ok(Some(bytes))
    }

    /// Returns `true` at the first call for a member. A document that refers to a part several
    /// times contains its text once.
    pub(crate) fn is_first_use(&mut self, name: &str) -> bool {
        self.read_members.insert(name.to_string())
    }

    /// Returns an error of the whole document.
    pub(crate) fn malformed(&self, reason: impl std::fmt::Display) -> ExtractError {
        ExtractError::malformed(self.format, reason)
    }
}

/// Resolves `target`, a path or URL relative to the member `source`, to the name of a member.
/// Percent escapes are decoded, and a fragment (`#…`) is removed.
pub(crate) fn resolve_target(source: &str, target: &str) -> String {
    let path = target.split('#').next().unwrap_or_default();
    let path = decode_percent(path);
    let folder = source.rsplit_once('/').map_or("", |(folder, _)| folder);
    let base = if path.starts_with('/') { "" } else { folder };
    let mut components: Vec<&str> = Vec::new();
    for component in base.split('/').chain(path.split('/')) {
        match component {
            "" | "." => {}
            ".." => {
                components.pop();
            }
            component => components.push(component),
        }
    }
    components.join("/")
}

fn decode_percent(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = (byte == b'%').then(|| after.split_at_checked(2)).flatten();
        let decoded = escaped.and_then(|(digits, after)| {
            let digits = std::str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, after))
        });
        let (byte, after) = decoded.unwrap_or((byte, after));
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::resolve_target;

    #[test]
    fn targets_are_relative_to_their_source() {
        let check = |source, target, expected: &str| {
            assert_eq!(
                resolve_target(source, target),
                expected,
                "{source} {target}"
            );
        };
        check("", "word/document.xml", "word/document.xml");
        check("word/document.xml", "header1.xml", "word/header1.xml");
        check("ppt/slides/a.xml", "../notes/b.xml", "ppt/notes/b.xml");
        check("ppt/slides/a.xml", "/x/b.xml", "x/b.xml");
        check("a/b.opf", "c%20d.xhtml#e", "a/c d.xhtml");
        check("a.opf", "../../c%zz", "c%zz");
    }
}
