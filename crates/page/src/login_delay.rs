//! Delays logins after failures, so that passwords cannot be guessed in quick succession.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The number of failures without a delay.
const FAILURES_FREE: u32 = 3;
/// The maximum delay.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The maximum number of users and networks that are tracked. Further ones share a single counter.
const ATTEMPTS_MAX: usize = 10_000;

/// A user and the network of a login attempt. Failures from one network do not delay logins of the
/// same user from another network.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LoginAttempt {
    network: IpAddr,
    user: String,
}

impl LoginAttempt {
    /// Creates the attempt of a browser at this address.
    pub fn new(browser: IpAddr, database: &str, user: &str) -> LoginAttempt {
        LoginAttempt {
            network: network(browser.to_canonical()),
            user: format!("{database}.{user}"),
        }
    }
}

/// Returns the network of an address: the /64 prefix of IPv6, because one host can use all its
/// addresses. All loopback addresses are equal.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) => Ipv6Addr::from(address.to_bits() >> 64 << 64).into(),
    }
}

/// Counts the failed logins of each user and network.
#[derive(Debug, Default)]
pub struct LoginDelay {
    failures: Mutex<HashMap<Option<LoginAttempt>, Failures>>,
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
    /// Returns the remaining delay before the next login of a user.
    pub fn left(&self, attempt: &LoginAttempt) -> Duration {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let known = failures.get(&Some(attempt.clone()));
        let known = known.or_else(|| failures.get(&None).filter(|_| is_full(&failures)));
        known.map_or(Duration::ZERO, |known| {
            known.wait().saturating_sub(known.last.elapsed())
        })
    }

    /// Records a failed login.
    pub fn record_failure(&self, attempt: &LoginAttempt) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if is_full(&failures) {
            failures.retain(|_, it| it.last.elapsed() < WAIT_MAX);
        }
        let key = Some(attempt.clone()).filter(|_| !is_full(&failures));
        let known = failures.entry(key).or_insert(Failures {
            count: 0,
            last: Instant::now(),
        });
        known.count = known.count.saturating_add(1);
        known.last = Instant::now();
    }

    /// Records a successful login.
    pub fn record_success(&self, attempt: &LoginAttempt) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.remove(&Some(attempt.clone()));
    }
}

fn is_full(failures: &HashMap<Option<LoginAttempt>, Failures>) -> bool {
    failures.len() >= ATTEMPTS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_makes_the_next_login_wait_longer() {
        let delay = LoginDelay::default();
        let attempt =
            |address: &str, user| LoginAttempt::new(address.parse().unwrap(), "admin", user);
        let ada = attempt("192.0.2.1", "ada");
        let mut waits = Vec::new();
        for _ in 0..12 {
            delay.record_failure(&ada);
            waits.push(delay.left(&ada).as_secs_f64().ceil() as u64);
        }
        assert_eq!(waits, [0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        for other in [attempt("192.0.2.2", "ada"), attempt("192.0.2.1", "grace")] {
            assert_eq!(delay.left(&other), Duration::ZERO);
        }
        delay.record_success(&ada);
        assert_eq!(delay.left(&ada), Duration::ZERO);
    }

    #[test]
    fn addresses_do_not_fill_the_memory() {
        let delay = LoginDelay::default();
        for number in 0..2 * ATTEMPTS_MAX as u32 {
            let address = IpAddr::from(number.to_be_bytes());
            delay.record_failure(&LoginAttempt::new(address, "admin", "ada"));
        }
        assert!(delay.failures.lock().unwrap().len() <= ATTEMPTS_MAX + 1);
        let new = LoginAttempt::new("250.0.0.1".parse().unwrap(), "admin", "ada");
        assert!(delay.left(&new) > Duration::ZERO);
    }

    #[test]
    fn one_person_has_one_network() {
        let check = |one: &str, other: &str, is_same: bool| {
            let network = |address: &str| network(address.parse().unwrap());
            assert_eq!(network(one) == network(other), is_same, "{one} {other}");
        };
        check("127.0.0.1", "127.9.9.9", true);
        check("127.0.0.1", "::1", true);
        check("2001:db8::1", "2001:db8::ffff:1", true);
        check("2001:db8::1", "2001:db8:0:1::1", false);
        check("192.0.2.1", "192.0.2.2", false);
    }
}
