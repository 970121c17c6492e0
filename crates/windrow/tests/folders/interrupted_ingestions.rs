//! `windrow index` can be killed at any point. The next run must result in the same documents as
//! one that was not killed.

use std::time::Duration;

use super::test_folder::TestFolder;

const FILES: usize = 600;

#[test]
fn killed_ingestions_are_continued() {
    let folder = TestFolder::new();
    for number in 0..FILES {
        let filler = "some words between ".repeat(300);
        folder.write(
            format!("{}/{number}.txt", number % 7),
            format!("common{filler}token{number}x"),
        );
    }
    for delay_ms in [20, 60, 100, 150, 200] {
        let mut process = folder.start_index();
        std::thread::sleep(Duration::from_millis(delay_ms));
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let report = folder.index(&[]);
    assert!(report.contains("0 failures"), "{report}");
    let mut found = folder.search("words");
    found.sort();
    let mut expected: Vec<_> = (0..FILES)
        .map(|it| format!("{}/{it}.txt", it % 7))
        .collect();
    expected.sort();
    assert_eq!(found, expected);
    assert!(folder.index(&[]).contains(&format!("{FILES} unchanged")));
}
