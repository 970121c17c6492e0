//! Tags of sound and of MPEG-4: ID3, Vorbis comments, APE, iTunes, RIFF and AIFF.

use std::io::{self, BufReader, Seek};

use lofty::config::ParseOptions;
use lofty::file::{AudioFile, TaggedFileExt};
use lofty::probe::Probe;
use lofty::tag::{ItemKey, Tag};

use super::bounded::BoundedReader;
use super::properties::{Properties, Property};
use crate::metadata_text::parse_iso_date;

/// The supported tags and their meanings.
const KEYS: [(ItemKey, Property); 22] = [
    (ItemKey::TrackTitle, Property::Title),
    (ItemKey::TrackSubtitle, Property::Other),
    (ItemKey::TrackArtist, Property::Author),
    (ItemKey::TrackArtists, Property::Other),
    (ItemKey::AlbumArtist, Property::Author),
    (ItemKey::AlbumTitle, Property::Album),
    (ItemKey::SetSubtitle, Property::Other),
    (ItemKey::ShowName, Property::Album),
    (ItemKey::ContentGroup, Property::Other),
    (ItemKey::Composer, Property::Author),
    (ItemKey::Lyricist, Property::Other),
    (ItemKey::Conductor, Property::Other),
    (ItemKey::Performer, Property::Other),
    (ItemKey::Director, Property::Author),
    (ItemKey::Publisher, Property::Other),
    (ItemKey::Label, Property::Other),
    (ItemKey::Genre, Property::Keywords),
    (ItemKey::Mood, Property::Keywords),
    (ItemKey::Description, Property::Description),
    (ItemKey::Comment, Property::Description),
    (ItemKey::CopyrightMessage, Property::Other),
    (ItemKey::UnsyncLyrics, Property::Other),
];

pub(super) fn read(
    reader: &mut BoundedReader<'_>,
    properties: &mut Properties<'_>,
) -> io::Result<()> {
    // A file without sound can have tags, but no audio properties.
    if read_with(reader, true, properties).is_err() {
        read_with(reader, false, properties)?;
    }
    Ok(())
}

fn read_with(
    reader: &mut BoundedReader<'_>,
    reads_sound: bool,
    properties: &mut Properties<'_>,
) -> io::Result<()> {
    reader.rewind()?;
    let mut options = ParseOptions::new();
    options.read_properties(reads_sound).read_cover_art(false);
    let probe = Probe::new(BufReader::new(reader)).guess_file_type()?;
    let file = probe.options(options).read().map_err(io::Error::other)?;
    let duration = file.properties().duration();
    if !duration.is_zero() {
        properties.document.metadata.duration_ms = u64::try_from(duration.as_millis()).ok();
    }
    for tag in file.primary_tag().into_iter().chain(file.tags()) {
        add_tag(tag, properties);
    }
    Ok(())
}

fn add_tag(tag: &Tag, properties: &mut Properties<'_>) {
    for (key, property) in KEYS {
        for text in tag.get_strings(key) {
            properties.add(property, text);
        }
    }
    let dates = [ItemKey::RecordingDate, ItemKey::ReleaseDate, ItemKey::Year];
    let date = dates
        .into_iter()
        .find_map(|key| parse_iso_date(tag.get_string(key)?));
    let metadata = &mut properties.document.metadata;
    metadata.date_ms = metadata.date_ms.or(date);
}
