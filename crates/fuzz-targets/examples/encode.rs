//! Creates seeds: reads BSON documents as lines of hexadecimal digits, and prints for each the
//! encoding of its values.

use std::io::{BufRead, stdin};

use windrow_document::DocumentBuf;
use windrow_fuzz_targets::{corpus, value_encoding};

fn main() {
    for line in stdin().lock().lines() {
        let line = line.expect("a line of text");
        for (_, bytes) in corpus::parse_inputs(&line) {
            let document = DocumentBuf::from_bytes(bytes).expect("BSON");
            let mut input = Vec::new();
            for (_, value) in document.iter() {
                value_encoding::encode_value(&mut input, value);
            }
            println!("{}", corpus::format_input(&input));
        }
    }
}
