//! The members of a zip archive, as its central directory lists them. Several members can have the
//! same name.

use std::io::Read;

use bzip2::read::BzDecoder;
use deflate64::Deflate64Decoder;
use flate2::read::DeflateDecoder;
use rawzip::extra_fields::{ExtraFieldId, ExtraFields};
use rawzip::{
    CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipFileHeaderRecord, ZipSliceArchive,
    ZipSliceEntry,
};

use crate::encoding::CODE_PAGE_437;
use crate::error::ExtractError;

/// The field of Info-ZIP with a name in UTF-8: version 1, CRC-32 of the name in the header, name.
const UNICODE_PATH: ExtraFieldId = ExtraFieldId::new(0x7075);

/// The central directory of an archive.
pub(crate) struct ZipDirectory<'a> {
    archive: ZipSliceArchive<&'a [u8]>,
    /// The members in the order of the directory.
    pub(crate) members: Vec<ZipMember>,
    /// The indexes of the members, ordered by name. Those of one name are in the order of the
    /// directory.
    by_name: Vec<usize>,
    /// The format's name in messages.
    format: &'static str,
}

/// An entry of the directory.
pub(crate) struct ZipMember {
    /// The path, with slashes. That of a folder ends with one.
    pub(crate) name: String,
    pub(crate) method: CompressionMethod,
    /// The size in the archive, in bytes.
    pub(crate) compressed_bytes: u64,
    /// The size of the content, in bytes.
    pub(crate) content_bytes: u64,
    pub(crate) is_link: bool,
    is_encrypted: bool,
    wayfinder: ZipArchiveEntryWayfinder,
}

impl<'a> ZipDirectory<'a> {
    /// Reads the directory. `format` is the name of the archive's format in messages.
    ///
    /// # Errors
    /// Fails if the directory is damaged.
    pub(crate) fn open(format: &'static str, bytes: &'a [u8]) -> Result<Self, ExtractError> {
        let convert = |error| ExtractError::malformed(format, error);
        let archive = ZipArchive::from_slice(bytes).map_err(convert)?;
        let members = archive.entries().map(|entry| entry.map(ZipMember::from));
        let members: Vec<ZipMember> = members.collect::<Result<_, _>>().map_err(convert)?;
        let name = |index: &usize| members.get(*index).map(|member| member.name.as_str());
        let mut by_name: Vec<usize> = (0..members.len()).collect();
        by_name.sort_by(|one, other| name(one).cmp(&name(other)));
        Ok(ZipDirectory {
            archive,
            by_name,
            members,
            format,
        })
    }

    /// Returns the member with this name. Of several, the last one counts, as for unzip.
    pub(crate) fn find(&self, name: &str) -> Option<&ZipMember> {
        let member = |index: &usize| self.members.get(*index);
        let is_at_or_before =
            |index: &usize| member(index).is_some_and(|it| it.name.as_str() <= name);
        let behind = self.by_name.partition_point(is_at_or_before);
        let last = self.by_name.get(behind.checked_sub(1)?).and_then(member);
        last.filter(|member| member.name == name)
    }

    /// Returns the compressed content of a member.
    ///
    /// # Errors
    /// Fails if the member is encrypted, or if its content is not in the archive.
    pub(crate) fn entry(&self, member: &ZipMember) -> Result<ZipSliceEntry<'_>, ExtractError> {
        if member.is_encrypted {
            return Err(ExtractError::Encrypted(self.format));
        }
        let entry = self.archive.get_entry(member.wayfinder);
        entry.map_err(|error| ExtractError::malformed(self.format, error))
    }

    /// Returns a reader of the content of a member that is stored, or compressed by DEFLATE,
    /// Deflate64 or bzip2. It checks the size and the checksum at the end.
    ///
    /// # Errors
    /// Fails as [`entry`](Self::entry) does, and for other methods.
    pub(crate) fn open_member(
        &self,
        member: &ZipMember,
    ) -> Result<Box<dyn Read + '_>, ExtractError> {
        let entry = self.entry(member)?;
        let data = entry.data();
        let content: Box<dyn Read + '_> = match member.method {
            CompressionMethod::STORE => Box::new(data),
            CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(data)),
            CompressionMethod::DEFLATE64 => Box::new(Deflate64Decoder::new(data)),
            CompressionMethod::BZIP2 => Box::new(BzDecoder::new(data)),
            other => {
                let reason = format!("the compression method {} is not supported", other.as_u16());
                return Err(ExtractError::malformed(self.format, reason));
            }
        };
        Ok(Box::new(entry.verifying_reader(content)))
    }
}

impl From<ZipFileHeaderRecord<'_>> for ZipMember {
    fn from(record: ZipFileHeaderRecord<'_>) -> ZipMember {
        ZipMember {
            name: read_name(record.file_path().as_bytes(), record.extra_fields()),
            method: record.compression_method(),
            compressed_bytes: record.compressed_size_hint(),
            content_bytes: record.uncompressed_size_hint(),
            is_link: record.mode().is_symlink(),
            is_encrypted: record.flags().is_encrypted(),
            wayfinder: record.wayfinder(),
        }
    }
}

/// Returns the name of a member. Valid UTF-8 is decoded as such, because many programs do not set
/// its flag. Other names are in an extra field or in the DOS code page.
fn read_name(raw: &[u8], mut fields: ExtraFields<'_>) -> String {
    let mut in_field = || {
        let (_, field) = fields.find(|(id, _)| *id == UNICODE_PATH)?;
        let (version, field) = field.split_first()?;
        let (checksum, name) = field.split_first_chunk()?;
        let is_current = *version == 1 && u32::from_le_bytes(*checksum) == rawzip::crc32(raw);
        std::str::from_utf8(name).ok().filter(|_| is_current)
    };
    let name = match std::str::from_utf8(raw) {
        Ok(name) => name.to_owned(),
        Err(_) => in_field().map_or_else(|| CODE_PAGE_437.decode(raw), str::to_owned),
    };
    // Old Windows programs use backslashes.
    if name.contains('/') {
        name
    } else {
        name.replace('\\', "/")
    }
}
