//! Authentication of API requests by HTTP Basic (RFC 7617).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, HeaderMap};
use zeroize::Zeroizing;

use crate::form::FormFields;
use crate::services::Credentials;

/// The query parameter that names the authentication database, as in connection strings.
const DATABASE: &str = "authSource";
/// The authentication database if the parameter is missing.
const DATABASE_DEFAULT: &str = "admin";

/// Returns the credentials of a request. `None` if it has none, or if they are malformed.
pub fn basic_credentials(headers: &HeaderMap, query: &FormFields) -> Option<Credentials> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = Zeroizing::new(STANDARD.decode(encoded.trim()).ok()?);
    let text = std::str::from_utf8(&decoded).ok()?;
    let (user, password) = text.split_once(':')?;
    Some(Credentials {
        user: user.to_owned(),
        database: query.get(DATABASE).unwrap_or(DATABASE_DEFAULT).to_owned(),
        password: Zeroizing::new(password.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: &str, expected: Option<(&str, &str)>) {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, header.parse().unwrap());
        let found = basic_credentials(&headers, &FormFields::default());
        let found = found
            .as_ref()
            .map(|it| (it.user.as_str(), it.password.as_str()));
        assert_eq!(found, expected, "{header}");
    }

    #[test]
    fn users_are_decoded() {
        check("Basic YWRhOmE6Yg==", Some(("ada", "a:b")));
        check("basic YWRhOg==", Some(("ada", "")));
        check("Bearer YWRhOg==", None);
        check("Basic YWRh", None);
        check("Basic ?", None);
        let query = FormFields::parse(b"authSource=files");
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, "Basic YWRhOg==".parse().unwrap());
        assert_eq!(
            basic_credentials(&headers, &query).unwrap().database,
            "files"
        );
    }
}
