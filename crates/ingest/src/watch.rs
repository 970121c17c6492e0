//! Keeps the documents of a store up to date while files change.
//!
//! The system reports changed paths. Reports in short succession form a round, which walks these
//! paths, compares the files with the stored state, and reads the changed files. If the system
//! cannot watch all folders, or loses reports, the folders are walked completely.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use windrow_collection::Interrupt;

use crate::changes::{StoredFiles, UnavailableFolder};
use crate::ingestion::{IngestError, IngestOptions, IngestedFolders, ingest_folders, update};
use crate::progress::Progress;
use crate::store::Store;
use crate::summary::IngestSummary;
use crate::walk::{WalkRoot, canonical_roots, walk, walk_changed};

/// The timing of a watch.
#[derive(Debug, Clone, Copy)]
pub struct WatchOptions {
    /// A round begins when no change was reported for this time …
    pub quiet: Duration,
    /// … or this time after its first change.
    pub delay_max: Duration,
    /// The interval of complete walks.
    pub rescan: Duration,
    /// The interval of complete walks if the system cannot watch the folders.
    pub rescan_unwatched: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        WatchOptions {
            quiet: Duration::from_millis(100),
            delay_max: Duration::from_millis(400),
            rescan: Duration::from_secs(3600),
            rescan_unwatched: Duration::from_secs(30),
        }
    }
}

/// The callbacks of [`watch`].
pub struct WatchControl<'c> {
    /// Ends the watch, which then returns `Ok`. Checked several times a second.
    pub interrupt: &'c dyn Interrupt,
    /// Returns `true` while no files must be read, neither in the first ingestion nor in a round.
    /// Changes are collected meanwhile.
    pub is_paused: &'c dyn Fn() -> bool,
    /// Receives the summary of the first ingestion and of each round.
    pub on_round: &'c dyn Fn(&IngestSummary),
    /// Receives warnings, as sentences.
    pub on_problem: &'c dyn Fn(&str),
    /// The progress of the first ingestion.
    pub progress: &'c Progress,
}

/// With more changed paths, the folders are walked completely.
const PATHS_MAX: usize = 20_000;
/// The interval at which the watch checks for an interrupt.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The interval at which the watch checks whether its folders were replaced.
const REPLACED_INTERVAL: Duration = Duration::from_secs(1);

/// Ingests the folders, then keeps their documents up to date until it is interrupted.
///
/// # Errors
/// As [`ingest`](crate::ingest()).
pub fn watch(
    store: &dyn Store,
    folders: &[WalkRoot],
    options: &IngestOptions,
    watch_options: &WatchOptions,
    control: &WatchControl<'_>,
) -> Result<(), IngestError> {
    // The watcher starts before the first ingestion, so that changes during it are reported.
    let mut changes = ReportedChanges::start(folders, control.on_problem);
    if !wait_while_paused(&mut changes, control) {
        return Ok(store.finish()?);
    }
    let IngestedFolders { summary, stored } =
        ingest_folders(store, folders, options, control.progress)?;
    (control.on_round)(&summary);
    let mut watch = Watch {
        store,
        folders,
        options,
        stored,
        last_scan: Instant::now(),
        unavailable: summary.folders_unavailable,
        missing: summary.folders_missing,
    };
    while control.interrupt.check().is_ok() {
        changes.wait(CHECK_INTERVAL);
        changes.watch_replaced(folders);
        let rescan = if changes.is_watching() && watch.unavailable.is_empty() {
            watch_options.rescan
        } else {
            watch_options.rescan_unwatched
        };
        if watch.last_scan.elapsed() >= rescan {
            changes.rescan();
        }
        if changes.are_due(watch_options) && !(control.is_paused)() {
            let summary = watch.round(changes.take())?;
            if watch.folders_changed(&summary) || summary.has_changes() {
                (control.on_round)(&summary);
            }
        }
    }
    Ok(store.finish()?)
}

/// Waits while reading is paused. Returns `false` if the watch is interrupted.
fn wait_while_paused(changes: &mut ReportedChanges<'_>, control: &WatchControl<'_>) -> bool {
    if (control.is_paused)() {
        (control.on_problem)("files are not read now, because the configuration does not allow it");
    }
    while control.interrupt.check().is_ok() {
        if !(control.is_paused)() {
            return true;
        }
        changes.wait(CHECK_INTERVAL);
    }
    false
}

struct Watch<'w> {
    store: &'w dyn Store,
    folders: &'w [WalkRoot],
    options: &'w IngestOptions,
    stored: StoredFiles,
    last_scan: Instant,
    /// The folders that were missing or empty in the last complete walk, and whose documents are
    /// kept.
    unavailable: Vec<UnavailableFolder>,
    /// The folders that were missing in the last complete walk, and have no documents.
    missing: Vec<PathBuf>,
}

impl Watch<'_> {
    fn round(&mut self, changed: ChangeSet) -> Result<IngestSummary, IngestError> {
        let (mut unavailable, mut missing) = (Vec::new(), Vec::new());
        let walked = match changed {
            ChangeSet::Everything => {
                self.last_scan = Instant::now();
                walk(self.folders)
            }
            ChangeSet::Paths(paths) => {
                unavailable.clone_from(&self.unavailable);
                missing.clone_from(&self.missing);
                let mut roots = canonical_roots(self.folders).roots;
                // Skips the files of folders that are empty now: their disk was probably
                // disconnected.
                roots.retain(|root| !is_empty_folder(&root.path));
                walk_changed(&roots, paths)
            }
        };
        let (stored, progress) = (&mut self.stored, Progress::default());
        let mut summary = update(self.store, stored, &walked, self.options, &progress)?;
        // Only a complete walk detects missing folders.
        summary.folders_unavailable.extend(unavailable);
        summary.folders_missing.extend(missing);
        Ok(summary)
    }

    /// Returns `true` if the set of missing or empty folders has changed.
    fn folders_changed(&mut self, summary: &IngestSummary) -> bool {
        if summary.folders_unavailable == self.unavailable
            && summary.folders_missing == self.missing
        {
            return false;
        }
        self.unavailable.clone_from(&summary.folders_unavailable);
        self.missing.clone_from(&summary.folders_missing);
        true
    }
}

fn is_empty_folder(path: &Path) -> bool {
    let entries = path.read_dir();
    entries.is_ok_and(|mut entries| entries.next().is_none())
}

/// The changes since the last round.
enum ChangeSet {
    Paths(BTreeSet<PathBuf>),
    /// The folders must be walked completely.
    Everything,
}

/// A report of the system.
enum Report {
    Paths(Vec<PathBuf>),
    /// Reports were lost.
    Lost,
    /// The system cannot watch any more folders.
    Limit,
}

/// Collects the changes that the system reports.
struct ReportedChanges<'c> {
    reports: Receiver<Report>,
    /// The watcher. Dropping it ends the reports.
    watcher: Option<RecommendedWatcher>,
    /// The watched folders.
    watched: Vec<Option<FolderIdentity>>,
    replaced_checked: Instant,
    changed: ChangeSet,
    first: Option<Instant>,
    last: Option<Instant>,
    on_problem: &'c dyn Fn(&str),
}

impl<'c> ReportedChanges<'c> {
    fn new(reports: Receiver<Report>, on_problem: &'c dyn Fn(&str)) -> Self {
        ReportedChanges {
            reports,
            watcher: None,
            watched: Vec::new(),
            replaced_checked: Instant::now(),
            changed: ChangeSet::Paths(BTreeSet::new()),
            first: None,
            last: None,
            on_problem,
        }
    }

    fn start(folders: &[WalkRoot], on_problem: &'c dyn Fn(&str)) -> Self {
        let (sender, reports) = channel();
        let mut changes = ReportedChanges::new(reports, on_problem);
        changes.start_watcher(folders, sender);
        changes
    }

    /// Restarts the watcher if a folder was replaced, disappeared or appeared.
    fn watch_replaced(&mut self, folders: &[WalkRoot]) {
        if self.replaced_checked.elapsed() < REPLACED_INTERVAL {
            return;
        }
        self.replaced_checked = Instant::now();
        if folder_identities(folders) == self.watched {
            return;
        }
        let (sender, reports) = channel();
        self.reports = reports;
        self.start_watcher(folders, sender);
        // Changes before the restart were not reported.
        self.rescan();
    }

    fn start_watcher(&mut self, folders: &[WalkRoot], sender: Sender<Report>) {
        self.watched = folder_identities(folders);
        match start_watcher(folders, sender) {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => self.stop_watching(&error.to_string()),
        }
    }

    fn is_watching(&self) -> bool {
        self.watcher.is_some()
    }

    fn stop_watching(&mut self, reason: &str) {
        self.watcher = None;
        (self.on_problem)(&format!(
            "the system does not report changes of all folders ({reason}), so they are scanned \
             regularly; a higher fs.inotify.max_user_watches may help"
        ));
    }

    /// Waits for reports, at most `timeout`.
    fn wait(&mut self, timeout: Duration) {
        let first = self.reports.recv_timeout(timeout);
        match first {
            Ok(report) => self.add(report),
            Err(RecvTimeoutError::Timeout) => {}
            // The channel is closed: there is no watcher.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(timeout),
        }
        while let Ok(report) = self.reports.try_recv() {
            self.add(report);
        }
    }

    fn add(&mut self, report: Report) {
        match report {
            Report::Limit => {
                if self.is_watching() {
                    self.stop_watching("too many folders");
                }
                return;
            }
            Report::Lost => self.changed = ChangeSet::Everything,
            Report::Paths(paths) => {
                if let ChangeSet::Paths(changed) = &mut self.changed {
                    changed.extend(paths);
                    if changed.len() > PATHS_MAX {
                        self.changed = ChangeSet::Everything;
                    }
                }
            }
        }
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    /// Makes the next round a complete walk.
    fn rescan(&mut self) {
        self.changed = ChangeSet::Everything;
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last.get_or_insert(now);
    }

    /// Returns `true` if a round should begin.
    fn are_due(&self, options: &WatchOptions) -> bool {
        let since = |time: Option<Instant>| time.map(|time| time.elapsed());
        since(self.last).is_some_and(|time| time >= options.quiet)
            || since(self.first).is_some_and(|time| time >= options.delay_max)
    }

    fn take(&mut self) -> ChangeSet {
        (self.first, self.last) = (None, None);
        std::mem::replace(&mut self.changed, ChangeSet::Paths(BTreeSet::new()))
    }
}

/// Identifies a folder independently of its path.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FolderIdentity {
    device: u64,
    inode: u64,
}

/// Returns the identities of the folders that currently have these paths.
fn folder_identities(folders: &[WalkRoot]) -> Vec<Option<FolderIdentity>> {
    let identity = |folder: &WalkRoot| {
        let metadata = fs::metadata(&folder.path).ok()?;
        Some(FolderIdentity {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    };
    folders.iter().map(identity).collect()
}

fn start_watcher(
    folders: &[WalkRoot],
    reports: Sender<Report>,
) -> notify::Result<RecommendedWatcher> {
    let roots = canonical_roots(folders).roots;
    let follow_links = roots.iter().any(|root| root.options.follow_links);
    let excluded: Vec<PathBuf> = roots
        .iter()
        .flat_map(|it| it.options.exclude.clone())
        .collect();
    let handler = move |result: notify::Result<Event>| {
        let report = match result {
            Ok(event) if event.need_rescan() => Report::Lost,
            Ok(event) if is_change(&event.kind) => {
                let mut paths = event.paths;
                // The watch itself changes the data folder.
                paths.retain(|path| !excluded.iter().any(|folder| path.starts_with(folder)));
                if paths.is_empty() {
                    return;
                }
                Report::Paths(paths)
            }
            Ok(_) => return,
            Err(error) if matches!(error.kind, notify::ErrorKind::MaxFilesWatch) => Report::Limit,
            Err(_) => Report::Lost,
        };
        // Fails after the watch has ended.
        let _ = reports.send(report);
    };
    let config = Config::default().with_follow_symlinks(follow_links);
    let mut watcher = RecommendedWatcher::new(handler, config)?;
    for root in &roots {
        watcher.watch(&root.path, RecursiveMode::Recursive)?;
    }
    Ok(watcher)
}

fn is_change(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Access(_))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use windrow_collection::{Interrupted, Uninterrupted};

    use super::*;
    use crate::path_text::path_to_text;

    /// Reports of paths, added one after the other.
    fn changes(on_problem: &dyn Fn(&str)) -> (Sender<Report>, ReportedChanges<'_>) {
        let (sender, reports) = channel();
        (sender, ReportedChanges::new(reports, on_problem))
    }

    #[test]
    fn reports_are_collected_into_rounds() {
        let (sender, mut changes) = changes(&|_| ());
        let options = WatchOptions {
            quiet: Duration::from_millis(30),
            delay_max: Duration::from_secs(60),
            ..WatchOptions::default()
        };
        assert!(!changes.are_due(&options));
        for path in ["/b", "/a", "/b"] {
            sender.send(Report::Paths(vec![path.into()])).unwrap();
        }
        changes.wait(Duration::from_secs(5));
        assert!(!changes.are_due(&options));
        std::thread::sleep(options.quiet);
        assert!(changes.are_due(&options));
        let ChangeSet::Paths(paths) = changes.take() else {
            panic!("there are two paths");
        };
        let paths: Vec<String> = paths.iter().map(|path| path_to_text(path)).collect();
        assert_eq!(paths, ["/a", "/b"]);
        assert!(!changes.are_due(&options));
    }

    #[test]
    fn nothing_is_read_during_a_pause() {
        let (pauses, problems) = (Cell::new(3), Cell::new(0));
        let count_problem = |_: &str| problems.set(problems.get() + 1);
        let is_paused = || {
            pauses.set(pauses.get() - 1);
            pauses.get() > 0
        };
        let progress = Progress::default();
        let mut control = WatchControl {
            interrupt: &Uninterrupted,
            is_paused: &is_paused,
            on_round: &|_| (),
            on_problem: &count_problem,
            progress: &progress,
        };
        let (_sender, mut changes) = changes(&|_| ());
        assert!(wait_while_paused(&mut changes, &control));
        assert_eq!((pauses.get(), problems.get()), (0, 1));
        assert!(wait_while_paused(&mut changes, &control));
        assert_eq!(problems.get(), 1);
        pauses.set(i32::MAX);
        control.interrupt = &|| Err(Interrupted::new("stopped"));
        assert!(!wait_while_paused(&mut changes, &control));
    }

    #[test]
    fn lost_reports_and_too_many_paths_need_a_whole_walk() {
        let (sender, mut changes) = changes(&|_| ());
        let many = (0..=PATHS_MAX).map(|number| format!("/{number}").into());
        for report in [Report::Lost, Report::Paths(many.collect())] {
            sender.send(report).unwrap();
            changes.wait(Duration::from_secs(5));
            assert!(matches!(changes.take(), ChangeSet::Everything));
        }
    }

    #[test]
    fn a_busy_folder_is_read_after_the_longest_delay() {
        let (sender, mut changes) = changes(&|_| ());
        let options = WatchOptions {
            quiet: Duration::from_secs(60),
            delay_max: Duration::from_millis(30),
            ..WatchOptions::default()
        };
        sender.send(Report::Paths(vec!["/a".into()])).unwrap();
        changes.wait(Duration::from_secs(5));
        assert!(!changes.are_due(&options));
        std::thread::sleep(options.delay_max);
        assert!(changes.are_due(&options));
    }
}
