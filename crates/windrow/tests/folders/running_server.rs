use super::test_folder::TestFolder;

#[test]
fn index_and_search_use_a_running_server() {
    let folder = TestFolder::new();
    folder.write("before.txt", "ironbasil grows");
    folder.write("changes.txt", "oldwillow");
    folder.write(
        "mail.mbox",
        "From a Thu Jan  1 00:00:00 2026\nSubject: One\n\nmarblefinch\n",
    );
    folder.index(&[]);
    let server = folder.serve();
    assert_eq!(folder.search("ironbasil"), ["before.txt"]);
    assert!(folder.search("nosuchword").is_empty());
    folder.write("after.txt", "ironbasil too");
    folder.write("changes.txt", "newcypress and more");
    folder.write("cut.zip", b"PK\x03\x04 and no more");
    let report = folder.index(&[]);
    assert!(report.contains("1 failures"), "{report}");
    assert!(
        report.contains("2 new, 1 changed, 0 moved, 2 unchanged, 0 gone"),
        "{report}"
    );
    let mut found = folder.search("ironbasil");
    found.sort();
    assert_eq!(found, ["after.txt", "before.txt"]);
    assert!(folder.search("oldwillow").is_empty());
    assert_eq!(folder.search("newcypress"), ["changes.txt"]);
    assert!(folder.index(&[]).contains("5 unchanged"));
    drop(server);
    // The server was killed and left its address file behind, but the folder is not locked.
    assert_eq!(folder.search("newcypress"), ["changes.txt"]);
}

#[test]
fn searching_an_empty_server_fails() {
    let folder = TestFolder::new();
    let _server = folder.serve();
    let output = folder.run(&["search", "word"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("windrow index FOLDER"), "{output:?}");
}

#[test]
fn results_of_several_batches_are_read() {
    let folder = TestFolder::new();
    for number in 0..150 {
        folder.write(format!("{number}.txt"), "common ironbasil");
    }
    folder.index(&[]);
    let _server = folder.serve();
    assert_eq!(folder.search("ironbasil").len(), 150);
}
