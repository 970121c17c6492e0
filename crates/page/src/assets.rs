//! The static files of the page: style sheets, scripts and images. They are compiled into the
//! program.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read as _;
use std::sync::OnceLock;

use flate2::Compression;
use flate2::read::GzDecoder;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CONTENT_ENCODING, VARY};

use crate::response::{Response, compress};

/// A static file.
struct Asset {
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
    /// `bytes` is compressed by gzip.
    is_compressed: bool,
}

impl Asset {
    const EMPTY: Asset = Asset {
        name: "",
        content_type: "",
        bytes: b"",
        is_compressed: false,
    };
}

const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// All files. Pages link to them by [`asset_address`].
const ASSETS: &[Asset] = &[
    Asset {
        name: "page.css",
        content_type: CSS,
        bytes: include_bytes!("../assets/page.css"),
        ..Asset::EMPTY
    },
    Asset {
        name: "common.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../assets/common.js"),
        ..Asset::EMPTY
    },
    Asset {
        name: "page.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../assets/page.js"),
        ..Asset::EMPTY
    },
    Asset {
        name: "search.css",
        content_type: CSS,
        bytes: include_bytes!("../assets/search.css"),
        ..Asset::EMPTY
    },
    Asset {
        name: "search.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../assets/search.js"),
        ..Asset::EMPTY
    },
    Asset {
        name: "document.css",
        content_type: CSS,
        bytes: include_bytes!("../assets/document.css"),
        ..Asset::EMPTY
    },
    Asset {
        name: "document.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../assets/document.js"),
        ..Asset::EMPTY
    },
    // PDF.js. Only previews of PDF files load it.
    Asset {
        name: "pdf_pages.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../assets/pdf_pages.js"),
        ..Asset::EMPTY
    },
    Asset {
        name: "pdf.min.mjs",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../assets/pdf.min.mjs.gz"),
        is_compressed: true,
    },
    Asset {
        name: "pdf.worker.min.mjs",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../assets/pdf.worker.min.mjs.gz"),
        is_compressed: true,
    },
    Asset {
        name: "folders.css",
        content_type: CSS,
        bytes: include_bytes!("../assets/folders.css"),
        ..Asset::EMPTY
    },
    Asset {
        name: "folders.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../assets/folders.js"),
        ..Asset::EMPTY
    },
    Asset {
        name: "data.css",
        content_type: CSS,
        bytes: include_bytes!("../assets/data.css"),
        ..Asset::EMPTY
    },
    Asset {
        name: "state.css",
        content_type: CSS,
        bytes: include_bytes!("../assets/state.css"),
        ..Asset::EMPTY
    },
    Asset {
        name: "uplot.css",
        content_type: CSS,
        bytes: include_bytes!("../assets/uplot.css"),
        ..Asset::EMPTY
    },
    Asset {
        name: "uplot.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../assets/uplot.js"),
        ..Asset::EMPTY
    },
    Asset {
        name: "charts.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../assets/charts.js"),
        ..Asset::EMPTY
    },
    Asset {
        name: "confirm.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../assets/confirm.js"),
        ..Asset::EMPTY
    },
    Asset {
        name: "import.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../assets/import.js"),
        ..Asset::EMPTY
    },
    Asset {
        name: "pipeline.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../assets/pipeline.js"),
        ..Asset::EMPTY
    },
    Asset {
        name: "live_table.js",
        content_type: JAVASCRIPT,
        bytes: include_bytes!("../assets/live_table.js"),
        ..Asset::EMPTY
    },
    Asset {
        name: "icon.svg",
        content_type: SVG,
        bytes: include_bytes!("../assets/icon.svg"),
        ..Asset::EMPTY
    },
];

/// A file with the values that are computed once: its entity tag and its compressed bytes.
struct PreparedAsset {
    asset: &'static Asset,
    tag: String,
    compressed: Option<Cow<'static, [u8]>>,
}

/// `Cache-Control` of an address with a tag. The content of such an address never changes.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// `Cache-Control` of an address without a tag, which scripts use to import each other. Browsers
/// revalidate it on each use.
const REVALIDATE: &str = "public, no-cache";

fn prepared_assets() -> &'static HashMap<&'static str, PreparedAsset> {
    static PREPARED: OnceLock<HashMap<&'static str, PreparedAsset>> = OnceLock::new();
    PREPARED.get_or_init(|| {
        let prepare = |asset: &'static Asset| {
            let mut hasher = DefaultHasher::new();
            hasher.write(asset.bytes);
            let prepared = PreparedAsset {
                asset,
                tag: format!("\"{:016x}\"", hasher.finish()),
                compressed: if asset.is_compressed {
                    Some(Cow::Borrowed(asset.bytes))
                } else {
                    compress(asset.bytes, Compression::best())
                        .ok()
                        .map(Cow::Owned)
                },
            };
            (asset.name, prepared)
        };
        ASSETS.iter().map(prepare).collect()
    })
}

/// Returns the address of a file. It contains a hash of the content, so browsers can cache it for
/// ever.
pub fn asset_address(name: &str) -> String {
    let tag = prepared_assets()
        .get(name)
        .map(|asset| asset.tag.trim_matches('"'));
    debug_assert!(tag.is_some(), "{name} is not in the table of assets");
    format!("/assets/{name}?v={}", tag.unwrap_or_default())
}

/// A request for a file.
#[derive(Clone, Copy, Debug)]
pub struct AssetRequest<'r> {
    /// The name.
    pub name: &'r str,
    /// The tag in the address (`?v=`).
    pub tag: Option<&'r str>,
    /// The tag in `If-None-Match`: the version that the browser has cached.
    pub known_tag: Option<&'r str>,
    /// The browser accepts gzip.
    pub accepts_gzip: bool,
}

/// Returns a file, or 304 if the browser has cached it. `None` if there is no such file.
pub fn serve_asset(request: AssetRequest<'_>) -> Option<Response> {
    let AssetRequest {
        name,
        tag: tag_of_address,
        known_tag,
        accepts_gzip,
    } = request;
    let PreparedAsset {
        asset,
        tag,
        compressed,
    } = prepared_assets().get(name)?;
    let is_tagged = tag_of_address == Some(tag.trim_matches('"'));
    let cache_control = if is_tagged { FOR_EVER } else { REVALIDATE };
    if known_tag == Some(tag.as_str()) {
        let response = Response::bytes(asset.content_type, Bytes::new());
        let response = response.with_status(StatusCode::NOT_MODIFIED);
        return Some(response.with_tag(tag, cache_control));
    }
    let response = match compressed {
        Some(compressed) if accepts_gzip => {
            Response::bytes(asset.content_type, Bytes::from_static(compressed))
                .with_header(CONTENT_ENCODING, "gzip")
        }
        _ => Response::bytes(asset.content_type, plain_bytes(asset)?),
    };
    Some(
        response
            .with_header(VARY, "Accept-Encoding")
            .with_tag(tag, cache_control),
    )
}

/// Returns the uncompressed bytes, for clients that do not accept gzip.
fn plain_bytes(asset: &Asset) -> Option<Bytes> {
    if !asset.is_compressed {
        return Some(Bytes::from_static(asset.bytes));
    }
    let mut bytes = Vec::new();
    let read = GzDecoder::new(asset.bytes).read_to_end(&mut bytes);
    read.ok().map(|_| bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::Content;
    use hyper::header::{CACHE_CONTROL, ETAG, HeaderValue};

    /// Pages without PDF.js transfer at most 150 KB.
    #[test]
    fn files_are_small() {
        let bytes = |is_drawing: bool| -> usize {
            let all = prepared_assets().values();
            let wanted = all.filter(|it| it.asset.is_compressed == is_drawing);
            wanted
                .filter_map(|it| it.compressed.as_ref())
                .map(|it| it.len())
                .sum()
        };
        assert!(bytes(false) < 100_000, "{}", bytes(false));
        assert!(bytes(true) < 600_000, "{}", bytes(true));
    }

    #[test]
    fn compressed_files_are_sent_plain_if_need_be() {
        let request = |accepts_gzip| AssetRequest {
            name: "pdf.min.mjs",
            tag: None,
            known_tag: None,
            accepts_gzip,
        };
        let sent = |accepts_gzip| serve_asset(request(accepts_gzip)).unwrap();
        assert!(sent(true).header(&CONTENT_ENCODING).is_some());
        let plain = sent(false);
        assert!(plain.header(&CONTENT_ENCODING).is_none());
        let Content::Whole(bytes) = plain.content else {
            panic!("it is there as a whole");
        };
        assert!(bytes.starts_with(b"/**") && bytes.len() > 400_000);
    }

    #[test]
    fn files_are_kept_by_browsers() {
        let address = asset_address("page.css");
        assert!(address.starts_with("/assets/page.css?v="), "{address}");
        let request = AssetRequest {
            name: "page.css",
            tag: address.split('=').next_back(),
            known_tag: None,
            accepts_gzip: true,
        };
        let first = serve_asset(request).unwrap();
        let control = |response: &Response| response.header(&CACHE_CONTROL).cloned().unwrap();
        assert_eq!(control(&first), FOR_EVER);
        let tag = first.header(&ETAG).unwrap().to_str().unwrap();
        let known = AssetRequest {
            known_tag: Some(tag),
            tag: None,
            ..request
        };
        let again = serve_asset(known).unwrap();
        assert_eq!(
            (again.status, control(&again)),
            (
                StatusCode::NOT_MODIFIED,
                HeaderValue::from_static(REVALIDATE)
            )
        );
        let elsewhere = AssetRequest {
            name: "../Cargo.toml",
            ..request
        };
        assert!(serve_asset(elsewhere).is_none());
    }
}
