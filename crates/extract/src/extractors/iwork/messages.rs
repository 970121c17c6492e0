//! A schema-less reader of protocol buffers. Source:
//! <https://protobuf.dev/programming-guides/encoding/>

/// A field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field<'m> {
    /// A number.
    Number(u32, u64),
    /// A string, bytes, or a message.
    Bytes(u32, &'m [u8]),
}

/// Iterates over the fields of a message. Ends at the first malformed field.
#[derive(Debug, Clone)]
pub(super) struct Fields<'m> {
    rest: &'m [u8],
}

impl<'m> Fields<'m> {
    pub(super) fn new(message: &'m [u8]) -> Self {
        Fields { rest: message }
    }

    /// Returns the first number of a field.
    pub(super) fn find_number(self, wanted: u32) -> Option<u64> {
        let mut numbers = self.filter_map(|field| match field {
            Field::Number(number, value) if number == wanted => Some(value),
            _ => None,
        });
        numbers.next()
    }
}

impl<'m> Iterator for Fields<'m> {
    type Item = Field<'m>;

    fn next(&mut self) -> Option<Field<'m>> {
        const VARINT: u64 = 0;
        const FIXED_64: u64 = 1;
        const LENGTH: u64 = 2;
        const FIXED_32: u64 = 5;
        loop {
            let tag = read_varint(&mut self.rest)?;
            let number = u32::try_from(tag >> 3).ok()?;
            match tag & 7 {
                VARINT => return Some(Field::Number(number, read_varint(&mut self.rest)?)),
                LENGTH => {
                    let length = usize::try_from(read_varint(&mut self.rest)?).ok()?;
                    return Some(Field::Bytes(number, self.take(length)?));
                }
                FIXED_64 => self.take(8)?,
                FIXED_32 => self.take(4)?,
                _ => return None,
            };
        }
    }
}

impl<'m> Fields<'m> {
    fn take(&mut self, length: usize) -> Option<&'m [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

/// Reads a number of variable length.
pub(super) fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_up_to_damage() {
        let message = b"\x08\x96\x01\x12\x02ab\x19????????\x25????\x18\x05";
        let fields: Vec<Field<'_>> = Fields::new(message).collect();
        let expected = [
            Field::Number(1, 150),
            Field::Bytes(2, b"ab"),
            Field::Number(3, 5),
        ];
        assert_eq!(fields, expected);
        assert_eq!(Fields::new(message).find_number(3), Some(5));
        for damaged in [
            &b"\x12\x05ab"[..],
            b"\x0b",
            b"\xff",
            &[0xff; 12],
            b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ] {
            assert_eq!(Fields::new(damaged).count(), 0, "{damaged:?}");
        }
    }
}
