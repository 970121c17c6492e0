//! The delay of logins: passwords cannot be guessed in quick succession.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// After so many failures the next login has to wait.
const FAILURES_FREE: u32 = 3;
/// The longest wait.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// So many addresses are remembered. More count as one.
const ADDRESSES_MAX: usize = 10_000;

/// Counts the failed logins of each address.
#[derive(Debug, Default)]
pub struct LoginDelay {
    failures: Mutex<HashMap<Option<IpAddr>, Failures>>,
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Failures {
    fn wait(self) -> Duration {
        let doublings = self.count.saturating_sub(FAILURES_FREE);
        match doublings {
            0 => Duration::ZERO,
            _ => WAIT_MAX.min(Duration::from_secs(1) * 2u32.saturating_pow(doublings.min(8) - 1)),
        }
    }
}

impl LoginDelay {
    /// Returns how long the next login of an address has to wait.
    pub fn left(&self, address: IpAddr) -> Duration {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let known = failures.get(&Some(address));
        let known = known.or_else(|| failures.get(&None).filter(|_| is_full(&failures)));
        known.map_or(Duration::ZERO, |known| {
            known.wait().saturating_sub(known.last.elapsed())
        })
    }

    /// Records a failed login.
    pub fn record_failure(&self, address: IpAddr) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if is_full(&failures) {
            failures.retain(|_, it| it.last.elapsed() < WAIT_MAX);
        }
        let key = Some(address).filter(|_| !is_full(&failures));
        let known = failures.entry(key).or_insert(Failures {
            count: 0,
            last: Instant::now(),
        });
        known.count = known.count.saturating_add(1);
        known.last = Instant::now();
    }

    /// Records a login.
    pub fn record_success(&self, address: IpAddr) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.remove(&Some(address));
    }
}

fn is_full(failures: &HashMap<Option<IpAddr>, Failures>) -> bool {
    failures.len() >= ADDRESSES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_makes_the_next_login_wait_longer() {
        let delay = LoginDelay::default();
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let mut waits = Vec::new();
        for _ in 0..12 {
            delay.record_failure(address);
            waits.push(delay.left(address).as_secs_f64().ceil() as u64);
        }
        assert_eq!(waits, [0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        let other = "192.0.2.2".parse().unwrap();
        assert_eq!(delay.left(other), Duration::ZERO);
        delay.record_success(address);
        assert_eq!(delay.left(address), Duration::ZERO);
    }

    #[test]
    fn addresses_do_not_fill_the_memory() {
        let delay = LoginDelay::default();
        for number in 0..2 * ADDRESSES_MAX as u32 {
            delay.record_failure(IpAddr::from(number.to_be_bytes()));
        }
        assert!(delay.failures.lock().unwrap().len() <= ADDRESSES_MAX + 1);
        assert!(delay.left("250.0.0.1".parse().unwrap()) > Duration::ZERO);
    }
}
