//! The options of the web page.

use crate::command_line::Failure;
use crate::page::{WebAddress, WebOptions};

/// The given options of the page.
#[derive(Debug, Default)]
pub struct WebDraft {
    pub address: Option<WebAddress>,
    pub is_read_only: bool,
}

impl WebDraft {
    /// Returns the options. `None` if no page is configured.
    pub fn options(&self) -> Result<Option<WebOptions>, Failure> {
        match &self.address {
            None if self.is_read_only => Err(Failure::usage("--web-read-only needs --web ADDRESS")),
            None => Ok(None),
            Some(address) => Ok(Some(WebOptions {
                address: address.clone(),
                is_read_only: self.is_read_only,
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_alone_needs_a_page() {
        let draft = WebDraft {
            address: None,
            is_read_only: true,
        };
        assert!(draft.options().is_err());
    }
}
