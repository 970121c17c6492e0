//! Formatting of UUIDs.

/// Formats a UUID (RFC 9562): `0c5b7d5f-5c3f-4b1e-9a69-0d2f6d4a7f10`.
pub fn format_uuid(bytes: [u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(bytes));
    let mut rest = digits.as_str();
    let parts = [8, 4, 4, 4, 12].map(|length| {
        let (part, behind) = rest.split_at(length);
        rest = behind;
        part
    });
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_zeros_are_written() {
        let bytes = 0x000b_7d5f_5c3f_0b1e_9a69_0d2f_6d4a_7f10_u128.to_be_bytes();
        assert_eq!(format_uuid(bytes), "000b7d5f-5c3f-0b1e-9a69-0d2f6d4a7f10");
    }
}
