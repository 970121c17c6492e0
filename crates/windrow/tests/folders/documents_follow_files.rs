use std::fs;

use super::program::Work;

#[test]
fn the_best_comes_first_with_its_place() {
    let work = Work::new();
    work.write("cake.txt", "Baking a cake");
    work.write("title.md", "# Cake\n\nAbout it.");
    work.write(
        "other.txt",
        "Long talk of bread, butter, jam, tea, and cake",
    );
    work.index(&[]);
    assert_eq!(work.search("cakes"), ["title.md", "cake.txt", "other.txt"]);
    assert_eq!(work.search("cake -bread -title"), ["title.md", "cake.txt"]);
    assert_eq!(work.search("\"a cake\""), ["cake.txt"]);
    let shown = work.run(&["search", "butter"]);
    assert_eq!(shown.code, Some(0));
    assert!(shown.said.contains("other.txt  0.") && shown.said.contains("bread, *butter*, jam"));
    assert_eq!(work.run(&["search", "nosuchword"]).code, Some(1));
    assert_eq!(
        work.run(&["search", "cake", "--limit", "1"])
            .said
            .lines()
            .count(),
        4
    );
}

#[test]
fn a_second_run_takes_what_changed() {
    let work = Work::new();
    for (name, text) in [
        ("stays", "ironbasil"),
        ("changes", "oldwillow"),
        ("goes", "lostpebble"),
    ] {
        work.write(format!("{name}.txt"), text);
    }
    work.write("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    assert!(
        work.index(&[])
            .contains("3 new, 0 changed, 0 unchanged, 0 gone")
    );
    work.write("changes.txt", "newcypress and more");
    work.write("comes.txt", "freshclover");
    fs::remove_file(work.files().join("goes.txt")).unwrap();
    assert!(
        work.index(&[])
            .contains("1 new, 1 changed, 1 unchanged, 1 gone")
    );
    let found = [
        ("ironbasil", "stays.txt"),
        ("oldwillow", ""),
        ("newcypress", "changes.txt"),
        ("freshclover", "comes.txt"),
        ("lostpebble", ""),
    ];
    for (word, expected) in found {
        assert_eq!(work.search(word).concat(), expected, "{word}");
    }
    assert!(
        work.index(&[])
            .contains("0 new, 0 changed, 3 unchanged, 0 gone")
    );
}

#[test]
fn a_folder_that_is_not_there_is_a_slip() {
    let work = Work::new();
    work.write("a.txt", "ironbasil");
    work.index(&[]);
    let ended = work.run(&["index", "/no/such/folder"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.complained.contains("/no/such/folder"), "{ended:?}");
    assert_eq!(work.search("ironbasil"), ["a.txt"]);
}

#[test]
fn a_database_does_not_feed_on_itself() {
    let work = Work::new();
    work.write("a.txt", "ironbasil");
    let whole = work.files();
    let whole = whole.parent().unwrap().to_str().unwrap();
    for new in [1, 0] {
        let ended = work.run(&["index", whole]);
        assert!(
            ended.said.contains(&format!("{new} new, 0 changed")),
            "{ended:?}"
        );
        assert!(ended.said.contains("0 skipped"), "{ended:?}");
    }
}

#[test]
fn what_was_never_indexed_cannot_be_searched() {
    let work = Work::new();
    let ended = work.run(&["search", "word"]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.complained.contains("windrow index FOLDER"),
        "{ended:?}"
    );
    assert!(!work.data().exists(), "a search makes no data folder");
}
