//! Indexes store the version of the analyzers. If the tokens of an analyzer change but not the
//! version, searches in older indexes silently miss documents. This test detects changed tokens.

use windrow_text::{ANALYSIS_VERSION, Language, SearchAnalyzer, TextVersion};

/// The hash of all tokens, by the version of the analyzers.
const FINGERPRINTS: [(i32, u64); 2] = [
    (1, 12_715_564_601_996_040_639),
    (2, 16_214_617_570_768_990_066),
];

const LANGUAGES: [&str; 17] = [
    "none",
    "danish",
    "dutch",
    "english",
    "finnish",
    "french",
    "german",
    "hungarian",
    "italian",
    "norwegian",
    "portuguese",
    "romanian",
    "russian",
    "spanish",
    "swedish",
    "turkish",
    "arabic",
];

const ANALYZERS: [&str; 9] = [
    "lucene.standard",
    "lucene.simple",
    "lucene.whitespace",
    "lucene.keyword",
    "lucene.cjk",
    "windrow.words",
    "windrow.wordParts",
    "windrow.stems",
    "windrow.name",
];

const TEXTS: [&str; 12] = [
    "The lions' dens were running, generously; don't re-open e-mail at 3.14 or 1,000!",
    "notmuch_database_open HashMap::new os.path.join XMLHttpRequest2 snake_case-and-kebab C++ C#",
    "Die Häuser der Straßen, größer als Ätzendes; l'amour qu'aujourd'hui où naïveté ``virtual''",
    "Los niños corrían rápidamente, españoles; as ações e corações; città perché gli amici",
    "İstanbul ıssız kitaplarımızdan; Žluťoučký kůň; árvíztűrő tükörfúrógép; fiskarnas båtar",
    "Собаки бежали быстро, ёжики; Ελληνικά γλώσσα σας; עברית שלום עולם; العربية الكتابات والمدرسة",
    "東京都に住んでいます。中文分詞很難 한국어 문장입니다 ภาษาไทยไม่มีช่องว่าง",
    "ﬁnancial ﬂow soft\u{AD}hyphen ＦＵＬＬ ｗｉｄｔｈ Å Å e\u{301}tude ½ ² Ⅷ ™",
    "user@example.org https://example.org/a/b?c=d 192.168.0.1 2024-05-06T07:08:09Z v1.2.3-rc1",
    "emoji 👩‍👩‍👧 🇩🇪 and \u{202E}override\u{202C} tab\tnew\nline \u{0} nul",
    "हिन्दी भाषा में लिखा हुआ; தமிழ் மொழி; ქართული ენა; հայերեն լեզու",
    "",
];

/// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/.
fn add(hash: &mut u64, bytes: &[u8]) {
    for byte in bytes {
        *hash = (*hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
}

fn fingerprint() -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let lucene = LANGUAGES.map(|language| format!("lucene.{language}"));
    let names = ANALYZERS.map(str::to_owned).into_iter().chain(lucene);
    for analyzer in names.filter_map(|name| SearchAnalyzer::parse(&name)) {
        let mut tokenizer = analyzer.tokenizer();
        for language in LANGUAGES {
            let language = Language::parse(language, TextVersion::V3).ok();
            tokenizer.set_document_language(language);
            for text in TEXTS {
                add(&mut hash, b"text");
                tokenizer.tokens(text, &mut |token| {
                    add(&mut hash, token.term.as_bytes());
                    add(&mut hash, &token.position.to_le_bytes());
                    add(&mut hash, &(token.range.start as u64).to_le_bytes());
                    add(&mut hash, &(token.range.end as u64).to_le_bytes());
                });
            }
        }
    }
    hash
}

#[test]
fn changed_tokens_have_a_new_version() {
    let found = fingerprint();
    let known = FINGERPRINTS
        .iter()
        .find(|(version, _)| *version == ANALYSIS_VERSION);
    assert_eq!(
        known,
        Some(&(ANALYSIS_VERSION, found)),
        "the tokens of an analyzer have changed: increase ANALYSIS_VERSION, and add the new hash"
    );
}
