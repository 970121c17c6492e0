use super::program::Work;

#[test]
fn both_commands_work_beside_a_server() {
    let work = Work::new();
    work.write("before.txt", "ironbasil grows");
    work.write("changes.txt", "oldwillow");
    work.write(
        "mail.mbox",
        "From a Thu Jan  1 00:00:00 2026\nSubject: One\n\nmarblefinch\n",
    );
    work.index(&[]);
    let server = work.serve();
    assert_eq!(work.search("ironbasil"), ["before.txt"]);
    assert!(work.search("nosuchword").is_empty());
    work.write("after.txt", "ironbasil too");
    work.write("changes.txt", "newcypress and more");
    work.write("cut.zip", b"PK\x03\x04 and no more");
    let report = work.index(&[]);
    assert!(report.contains("1 failures"), "{report}");
    assert!(
        report.contains("2 new, 1 changed, 2 unchanged, 0 gone"),
        "{report}"
    );
    let mut found = work.search("ironbasil");
    found.sort();
    assert_eq!(found, ["after.txt", "before.txt"]);
    assert!(work.search("oldwillow").is_empty());
    assert_eq!(work.search("newcypress"), ["changes.txt"]);
    assert!(work.index(&[]).contains("5 unchanged"));
    drop(server);
    // The server was killed and left its note behind, but the folder is not locked.
    assert_eq!(work.search("newcypress"), ["changes.txt"]);
}

#[test]
fn a_server_without_files_says_what_to_do() {
    let work = Work::new();
    let _server = work.serve();
    let ended = work.run(&["search", "word"]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.complained.contains("windrow index FOLDER"),
        "{ended:?}"
    );
}

#[test]
fn many_matches_come_over_several_batches() {
    let work = Work::new();
    for number in 0..150 {
        work.write(format!("{number}.txt"), "common ironbasil");
    }
    work.index(&[]);
    let _server = work.serve();
    assert_eq!(work.search("ironbasil").len(), 150);
}
