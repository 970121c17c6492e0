use std::fs;

use super::test_folder::TestFolder;

#[test]
fn results_are_ranked_and_show_matches() {
    let folder = TestFolder::new();
    folder.write("cake.txt", "Baking a cake");
    folder.write("title.md", "# Cake\n\nAbout it.");
    folder.write(
        "other.txt",
        "Long talk of bread, butter, jam, tea, and cake",
    );
    folder.index(&[]);
    assert_eq!(
        folder.search("cakes"),
        ["title.md", "cake.txt", "other.txt"]
    );
    // Names of files have words, too.
    assert_eq!(folder.search("cake -bread -title"), ["cake.txt"]);
    assert_eq!(folder.search("\"a cake\""), ["cake.txt"]);
    let shown = folder.run(&["search", "butter"]);
    assert_eq!(shown.code, Some(0));
    assert!(
        shown.stdout.contains("other.txt  0.") && shown.stdout.contains("bread, *butter*, jam")
    );
    assert_eq!(folder.run(&["search", "nosuchword"]).code, Some(1));
    assert_eq!(
        folder
            .run(&["search", "cake", "--limit", "1"])
            .stdout
            .lines()
            .count(),
        4
    );
}

#[test]
fn further_runs_read_only_changed_files() {
    let folder = TestFolder::new();
    for (name, text) in [
        ("stays", "ironbasil"),
        ("changes", "oldwillow"),
        ("goes", "lostpebble"),
    ] {
        folder.write(format!("{name}.txt"), text);
    }
    folder.write("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    assert!(
        folder
            .index(&[])
            .contains("4 new, 0 changed, 0 moved, 0 unchanged, 0 gone")
    );
    folder.write("changes.txt", "newcypress and more");
    folder.write("comes.txt", "freshclover");
    fs::remove_file(folder.files().join("goes.txt")).unwrap();
    assert!(
        folder
            .index(&[])
            .contains("1 new, 1 changed, 0 moved, 2 unchanged, 1 gone")
    );
    let found = [
        ("ironbasil", "stays.txt"),
        ("oldwillow", ""),
        ("newcypress", "changes.txt"),
        ("freshclover", "comes.txt"),
        ("lostpebble", ""),
    ];
    for (word, expected) in found {
        assert_eq!(folder.search(word).concat(), expected, "{word}");
    }
    assert!(
        folder
            .index(&[])
            .contains("0 new, 0 changed, 0 moved, 4 unchanged, 0 gone")
    );
}

#[test]
fn a_missing_folder_removes_nothing() {
    let folder = TestFolder::new();
    folder.write("a.txt", "ironbasil");
    folder.index(&[]);
    let output = folder.run(&["index", "/no/such/folder"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("/no/such/folder"), "{output:?}");
    assert_eq!(folder.search("ironbasil"), ["a.txt"]);
}

#[test]
fn the_data_folder_is_not_indexed() {
    let folder = TestFolder::new();
    folder.write("a.txt", "ironbasil");
    let whole = folder.files();
    let whole = whole.parent().unwrap().to_str().unwrap();
    for new in [1, 0] {
        let output = folder.run(&["index", whole]);
        assert!(
            output.stdout.contains(&format!("{new} new, 0 changed")),
            "{output:?}"
        );
        assert!(output.stdout.contains("0 skipped"), "{output:?}");
    }
}

#[test]
fn searching_an_unindexed_folder_fails() {
    let folder = TestFolder::new();
    let output = folder.run(&["search", "word"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("windrow index FOLDER"), "{output:?}");
    assert!(!folder.data().exists(), "a search creates no data folder");
}
