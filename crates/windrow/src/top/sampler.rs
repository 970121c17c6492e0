//! The thread that samples the server. It reconnects if the connection is lost.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::client::{Client, ClientError};
use crate::command_line::Failure;
use crate::server_report::{Report, Sample};
use crate::server_target::ResolvedTarget;

/// A report, or an error message.
pub type SampleResult = Result<Box<Report>, String>;

/// The sampling thread. It ends with the process.
pub struct Sampler {
    reports: Receiver<SampleResult>,
}

impl Sampler {
    pub fn start(
        target: ResolvedTarget,
        client: Client,
        interval: Duration,
    ) -> Result<Sampler, Failure> {
        let (sender, reports) = sync_channel(1);
        let thread = thread::Builder::new().name("sampler".into());
        let spawned = thread.spawn(move || run(&target, client, interval, &sender));
        spawned.map_err(Failure::runtime)?;
        Ok(Sampler { reports })
    }

    /// Returns the next report, if any.
    pub fn next_report(&self) -> Option<SampleResult> {
        self.reports.try_recv().ok()
    }
}

/// The first report has a short interval, so that the screen is filled soon.
const FIRST_INTERVAL: Duration = Duration::from_millis(200);

fn run(
    target: &ResolvedTarget,
    client: Client,
    interval: Duration,
    reports: &SyncSender<SampleResult>,
) {
    let mut client = Some(client);
    let mut before = None;
    loop {
        let sampled = sample(target, &mut client);
        let report = match sampled {
            Err(error) => {
                (client, before) = (None, None);
                Some(Err(error.to_string()))
            }
            Ok(sample) => {
                let report = before
                    .as_ref()
                    .map(|old| Report::from_samples(old, &sample));
                before = Some(sample);
                report.map(|report| Ok(Box::new(report)))
            }
        };
        let pause = if report.is_some() {
            interval
        } else {
            interval.min(FIRST_INTERVAL)
        };
        // The receiver exists until the process ends.
        if report.is_some_and(|report| reports.send(report).is_err()) {
            return;
        }
        thread::sleep(pause);
    }
}

fn sample(target: &ResolvedTarget, client: &mut Option<Client>) -> Result<Sample, ClientError> {
    let connected = match client {
        Some(client) => client,
        None => client.insert(target.connect()?),
    };
    Sample::take(connected)
}
