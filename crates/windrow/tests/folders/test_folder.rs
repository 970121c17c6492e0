//! Runs the program on temporary folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_windrow");

/// A temporary folder with files and a data folder.
pub struct TestFolder {
    root: TempDir,
}

/// The output of a command.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> CommandOutput {
        CommandOutput {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl TestFolder {
    pub fn new() -> TestFolder {
        let folder = TestFolder {
            root: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(folder.files()).unwrap();
        folder
    }

    pub fn files(&self) -> PathBuf {
        self.root.path().join("files")
    }

    pub fn data(&self) -> PathBuf {
        self.root.path().join("data")
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

    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.command(arguments).output().unwrap().into()
    }

    fn index_command(&self, options: &[&str]) -> Command {
        let mut command = self.command(&["index"]);
        command.arg(self.files()).args(options);
        command
    }

    /// Indexes the files and returns the report.
    pub fn index(&self, options: &[&str]) -> String {
        let output = CommandOutput::from(self.index_command(options).output().unwrap());
        assert_eq!(output.code, Some(0), "{output:?}");
        output.stdout
    }

    pub fn start_index(&self) -> Child {
        let mut command = self.index_command(&[]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// Returns the relative paths of the results, in their order.
    pub fn search(&self, words: &str) -> Vec<String> {
        let output = self.run(&["search", words, "--json", "--limit", "100000"]);
        let expected_code = if output.stdout.is_empty() { 1 } else { 0 };
        assert_eq!(output.code, Some(expected_code), "{output:?}");
        let files = self.files().canonicalize().unwrap();
        let start = format!("{{\"path\":\"{}/", files.display());
        let path = |line: &str| {
            let rest = line
                .strip_prefix(&start)
                .unwrap_or_else(|| panic!("{line}"));
            rest.split('"').next().unwrap().to_owned()
        };
        output.stdout.lines().map(path).collect()
    }

    /// Starts a server on the data folder and waits until it has written its address file.
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
