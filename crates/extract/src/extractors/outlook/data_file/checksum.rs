//! The checksum of pages and blocks: CRC-32 with the polynomial of zip, but without inversions. Source:
//! MS-PST, section 5.3.

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = (sum >> 1) ^ (if sum & 1 == 1 { 0xedb8_8320 } else { 0 });
            bit += 1;
        }
        #[expect(clippy::indexing_slicing, reason = "a failure ends the compilation")]
        {
            table[byte] = sum;
        }
        byte += 1;
    }
    table
};

pub(super) fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| {
        let index = (sum ^ u32::from(*byte)) as u8;
        let entry = TABLE.get(usize::from(index)).copied().unwrap_or_default();
        entry ^ (sum >> 8)
    })
}
