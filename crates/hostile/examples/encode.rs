//! Makes seeds: for each line of hexadecimal digits, a BSON document, one with the bytes of which the
//! grammar makes the document's values, one after the other.

use std::io::{BufRead, stdin};

use windrow_document::DocumentBuf;
use windrow_hostile::{corpus, grammar};

fn main() {
    for line in stdin().lock().lines() {
        let line = line.expect("a line of text");
        for (_, bytes) in corpus::inputs(&line) {
            let document = DocumentBuf::from_bytes(bytes).expect("BSON");
            let mut input = Vec::new();
            for (_, value) in document.iter() {
                grammar::put_value(&mut input, value);
            }
            println!("{}", corpus::line(&input));
        }
    }
}
