//! A server for a run, with a temporary data folder and a free port.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::access::{Access, Login};
use crate::client::Connection;
use crate::error::{At, BenchError};
use crate::options::Options;

const START_SECONDS: u64 = 120;
const STOP_SECONDS: u64 = 120;
/// The unit of times in /proc (`USER_HZ`), the same on every machine that Windrow supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running server. Dropping it kills the process and removes its data.
pub struct Server {
    child: Child,
    port: u16,
    options: Options,
    access: Access,
    folder: Folder,
}

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn create(below: &Path) -> Result<Self, BenchError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = below.join(format!("windrow-bench-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).at(path.display())?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A failure is harmless: the folder is temporary.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Server {
    /// Starts an empty server and waits until it responds.
    pub fn start(options: &Options) -> Result<Self, BenchError> {
        let folder = Folder::create(&options.folder)?;
        let port = free_port()?;
        // Before the server starts: after an error nothing would end it.
        let access = Access::without_login(options)?;
        let mut server = Self {
            child: spawn(options, &folder.0, port)?,
            port,
            options: options.clone(),
            access,
            folder,
        };
        server.wait_for_answer()?;
        if let Some(login) = Login::from_options(options) {
            login.create(&mut server.connect()?)?;
            server.access = server.access.clone().with_login(options);
        }
        Ok(server)
    }

    /// Opens a connection, and logs in if the options have a user.
    pub fn connect(&self) -> Result<Connection, BenchError> {
        self.access.connect(self.port)
    }

    /// The peak resident memory of the process in bytes; 0 if the system does not report it.
    pub fn peak_bytes(&self) -> f64 {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        kilobytes.unwrap_or_default() * 1024.0
    }

    /// The processor time that the process has used, in seconds.
    pub fn processor_seconds(&self) -> Result<f64, BenchError> {
        let path = format!("/proc/{}/stat", self.child.id());
        let text = std::fs::read_to_string(&path).at(&path)?;
        processor_ticks(&text)
            .map(|ticks| ticks as f64 / TICKS_PER_SECOND)
            .ok_or_else(|| BenchError::Server(format!("{path} has no times")))
    }

    /// Sends SIGTERM and waits until the server has exited.
    pub fn stop(mut self) -> Result<(), BenchError> {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .at("kill")?;
        let until = Instant::now() + Duration::from_secs(STOP_SECONDS);
        while sent.success() && Instant::now() < until {
            if let Some(status) = self.child.try_wait().at("the server")? {
                let clean = status.success().then_some(());
                return clean.ok_or_else(|| BenchError::Server(format!("it ended with {status}")));
            }
            sleep(Duration::from_millis(5));
        }
        Err(BenchError::Server(format!(
            "it did not stop within {STOP_SECONDS} s"
        )))
    }

    /// Kills the server, restarts it on the same data folder, and returns the time until it
    /// responds.
    pub fn kill_and_restart(&mut self) -> Result<Duration, BenchError> {
        self.child.kill().at("the server")?;
        self.child.wait().at("the server")?;
        let start = Instant::now();
        self.child = spawn(&self.options, &self.folder.0, self.port)?;
        self.wait_for_answer()?;
        Ok(start.elapsed())
    }

    fn wait_for_answer(&mut self) -> Result<(), BenchError> {
        let until = Instant::now() + Duration::from_secs(START_SECONDS);
        loop {
            if let Some(status) = self.child.try_wait().at("the server")? {
                return Err(BenchError::Server(format!(
                    "ended with {status}\n{}",
                    self.log()
                )));
            }
            let answer = self.connect().and_then(|mut connection| {
                connection
                    .run("admin", |writer| writer.int32("ping", 1))
                    .map(|_| ())
            });
            match answer {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => sleep(Duration::from_millis(5)),
            }
        }
    }

    /// The last lines of the server's log.
    fn log(&self) -> String {
        let text = std::fs::read_to_string(log_path(&self.folder.0)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop`, the process has exited and both calls have no effect.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(options: &Options, folder: &Path, port: u16) -> Result<Child, BenchError> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(log_path(folder))
        .at("the server's log")?;
    let mut command = command(options);
    command.arg("serve").arg("--data").arg(folder.join("data"));
    if options.user.is_some() {
        command.arg("--auth");
    }
    if let Some(certificates) = &options.tls_folder {
        command.args(["--tls-mode", "require", "--tls-certificate-key-file"]);
        command.arg(certificates.join("server.pem"));
    }
    command
        .args([
            "--listen",
            &format!("127.0.0.1:{port}"),
            "--memory",
            &options.memory_bytes.to_string(),
        ])
        .stdin(Stdio::null())
        .stdout(log.try_clone().at("the server's log")?)
        .stderr(log)
        .spawn()
        .at(options.server.display())
}

/// The command of the server, restricted to the first cores if `--cores` is given.
fn command(options: &Options) -> Command {
    let Some(cores) = options.cores else {
        return Command::new(&options.server);
    };
    let mut command = Command::new("taskset");
    command.arg("-c").arg(format!("0-{}", cores - 1));
    command.arg(&options.server);
    command
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join("server.log")
}

fn free_port() -> Result<u16, BenchError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).at("a free port")?;
    Ok(listener.local_addr().at("a free port")?.port())
}

/// The time in user and kernel mode in the text of /proc/PID/stat. These are the fields 14 and 15;
/// the second one is a name in parentheses that may contain spaces.
fn processor_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(ticks()? + ticks()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_times_follow_the_name() {
        let stat = "24 (a (b) c) R 1 2 3 4 5 6 7 8 9 10 70 30 0 0 20 0 1";
        assert_eq!(processor_ticks(stat), Some(100));
        assert_eq!(processor_ticks("24 (cat) R 1"), None);
        let own = std::fs::read_to_string("/proc/self/stat").unwrap();
        assert!(processor_ticks(&own).is_some());
    }
}
