//! The entries of documents whose keys have numbers are those of each document by itself.

use std::collections::HashMap;

use windrow_document::{DocumentBuf, doc};
use windrow_index::search::SearchDefinition;
use windrow_index::{Definition, EntrySink, KeyNumber, Scratch};

type Entry = (Vec<u8>, Vec<u8>);

/// A receiver that knows each key whose number it has received.
#[derive(Default)]
struct Receiver {
    keys: HashMap<(u64, u32), Vec<u8>>,
    entries: Vec<Entry>,
    /// The number of entries that came without their keys.
    known: usize,
}

impl EntrySink for Receiver {
    fn entry(&mut self, key: &[u8], payload: &[u8]) {
        self.entries.push((key.to_vec(), payload.to_vec()));
    }

    fn known_entry(&mut self, number: KeyNumber, payload: &[u8]) -> bool {
        let key = self.keys.get(&(number.generation.number(), number.number));
        let entry = key.map(|key| (key.clone(), payload.to_vec()));
        let is_known = entry.is_some();
        self.known += usize::from(is_known);
        self.entries.extend(entry);
        is_known
    }

    fn numbered_entry(&mut self, number: KeyNumber, key: &[u8], payload: &[u8]) {
        let number = (number.generation.number(), number.number);
        assert_eq!(self.keys.insert(number, key.to_vec()), None);
        self.entry(key, payload);
    }
}

/// Documents with words that occur again, in several languages, and with more words than are kept.
fn documents() -> Vec<DocumentBuf> {
    let many: Vec<String> = (0..40_000).map(|number| format!("w{number}")).collect();
    // Numbers are used once words were repeated.
    let repeated = many[..3_000].join(" ").repeat(10);
    let many = many.join(" ");
    let long = "x".repeat(2 << 20);
    let texts = [
        "The houses of running foxes, HashMap and C++",
        "A house, the HOUSE and a fox's café 東京都 house",
        "Die Häuser und der Fuchs",
        "",
        "fox fox w1 w2 東京 café",
    ];
    let languages = ["en", "de", "none", "fr"];
    (0..40)
        .map(|number| {
            let text = |step: usize| match number {
                5 => &repeated,
                20 => &many,
                30 => &long,
                _ => texts[number * step % texts.len()],
            };
            let list = windrow_document::array![text(3), "fox", text(2)];
            let language = languages[number % languages.len()];
            doc! { "language": language, "p": (number as i32 % 3), "t": (text(1)), "list": list }
        })
        .collect()
}

/// Returns how many entries came without their keys.
#[track_caller]
fn check(definitions: &[Definition]) -> usize {
    let mut scratch = Scratch::default();
    let mut receivers: Vec<Receiver> = Vec::new();
    receivers.resize_with(definitions.len(), Receiver::default);
    for (number, document) in documents().iter().enumerate() {
        for (definition, receiver) in definitions.iter().zip(&mut receivers) {
            let document = document.as_document();
            let (mut expected, mut again) = (Vec::new(), Vec::new());
            let mut emit =
                |key: &[u8], payload: &[u8]| expected.push((key.to_vec(), payload.to_vec()));
            let fresh = &mut Scratch::default();
            definition.entries(document, fresh, &mut emit).unwrap();
            receiver.entries.clear();
            definition
                .numbered_entries(document, &mut scratch, receiver)
                .unwrap();
            let name = &definition.name;
            assert!(receiver.entries == expected, "document {number} in {name}");
            let mut emit =
                |key: &[u8], payload: &[u8]| again.push((key.to_vec(), payload.to_vec()));
            definition
                .entries(document, &mut scratch, &mut emit)
                .unwrap();
            assert!(again == expected, "document {number} again in {name}");
        }
    }
    receivers.iter().map(|receiver| receiver.known).sum()
}

fn text_index(specification: DocumentBuf) -> Definition {
    Definition::parse(specification.as_document()).unwrap()
}

fn search_index(definition: DocumentBuf) -> Definition {
    let id = windrow_document::ObjectId([7; 12]);
    let search = SearchDefinition::parse("s", id, 1, 0, definition.as_document()).unwrap();
    Definition::from_search(search)
}

#[test]
fn text_indexes_number_their_terms() {
    let key = || doc! { "t": "text", "list": "text" };
    assert!(check(&[text_index(doc! { "key": (key()), "name": "plain" })]) > 100);
    // Keys with more than a term have no numbers.
    let prefixed = doc! { "p": 1, "t": "text" };
    let others = [
        doc! { "key": prefixed, "name": "prefixed" },
        doc! { "key": (key()), "name": "unique", "unique": true },
        doc! { "key": { "p": 1 }, "name": "no text" },
    ];
    assert_eq!(check(&others.map(text_index)), 0);
}

#[test]
fn search_indexes_number_the_terms_of_each_path() {
    let stems = doc! { "type": "string", "analyzer": "windrow.stems" };
    let files = doc! { "type": "string", "analyzer": "windrow.words", "multi": { "stems": stems } };
    let english = doc! { "type": "string", "analyzer": "lucene.english" };
    let standard = doc! { "type": "string" };
    let grams = windrow_document::array![standard.clone(), doc! { "type": "autocomplete" }];
    let cjk = doc! { "type": "string", "analyzer": "lucene.cjk" };
    // One buffer serves several indexes on the same fields.
    let definitions = [
        doc! { "mappings": { "fields": { "t": files, "list": english } } },
        doc! { "mappings": { "fields": { "t": standard, "list": grams } } },
        doc! { "mappings": { "dynamic": true, "fields": { "t": cjk } } },
    ];
    assert!(check(&definitions.map(search_index)) > 100);
}
