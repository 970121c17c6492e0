//! Runs the program on temporary folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_windrow");

/// A temporary folder with files and a data folder.
pub struct Work {
    folder: TempDir,
}

/// The output of a command.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub said: String,
    pub complained: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        Ended {
            code: output.status.code(),
            said: String::from_utf8_lossy(&output.stdout).into_owned(),
            complained: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Work {
    pub fn new() -> Work {
        let work = Work {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(work.files()).unwrap();
        work
    }

    pub fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Writes a file.
    pub fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.files().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).arg("--data").arg(self.data());
        command.stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.command(arguments).output().unwrap().into()
    }

    fn index_command(&self, options: &[&str]) -> Command {
        let mut command = self.command(&["index"]);
        command.arg(self.files()).args(options);
        command
    }

    /// Indexes the files and returns the report.
    pub fn index(&self, options: &[&str]) -> String {
        let ended = Ended::from(self.index_command(options).output().unwrap());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.said
    }

    pub fn start_index(&self) -> Child {
        let mut command = self.index_command(&[]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// Returns the relative paths of the results, in their order.
    pub fn search(&self, words: &str) -> Vec<String> {
        let ended = self.run(&["search", words, "--json", "--limit", "100000"]);
        let expected_code = if ended.said.is_empty() { 1 } else { 0 };
        assert_eq!(ended.code, Some(expected_code), "{ended:?}");
        let files = self.files().canonicalize().unwrap();
        let start = format!("{{\"path\":\"{}/", files.display());
        let path = |line: &str| {
            let rest = line
                .strip_prefix(&start)
                .unwrap_or_else(|| panic!("{line}"));
            rest.split('"').next().unwrap().to_owned()
        };
        ended.said.lines().map(path).collect()
    }

    /// Starts a server on the data folder and waits until it has written its note.
    pub fn serve(&self) -> Server {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let server = Server(command.spawn().unwrap());
        let until = Instant::now() + Duration::from_secs(60);
        while !self.data().join("server.json").exists() {
            assert!(Instant::now() < until, "the server does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }
}

/// A server, killed on drop.
pub struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
