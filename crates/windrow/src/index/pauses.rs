//! The pauses of `windrow index --watch`: outside of its schedule, or on battery.

use std::fs;
use std::path::Path;

use jiff::Zoned;
use jiff::civil::Time;

use crate::config::Schedule;

/// The folder in which Linux lists the power supplies.
const POWER_SUPPLIES: &str = "/sys/class/power_supply";

/// The conditions under which files are not read.
pub struct Pauses {
    pub schedule: Option<Schedule>,
    pub on_battery: bool,
}

impl Pauses {
    /// Returns `true` if files must not be read now.
    pub fn are_active(&self) -> bool {
        let time = || Zoned::now().time();
        self.schedule
            .is_some_and(|schedule| !includes(schedule, time()))
            || (self.on_battery && is_on_battery(Path::new(POWER_SUPPLIES)))
    }
}

/// Returns `true` if a schedule includes a time of day. It can span midnight.
fn includes(schedule: Schedule, time: Time) -> bool {
    let Schedule { from, to } = schedule;
    if from <= to {
        from <= time && time < to
    } else {
        from <= time || time < to
    }
}

/// Returns `true` if there are mains power supplies but none is connected. A machine without any,
/// such as a server, does not run on battery.
fn is_on_battery(power_supplies: &Path) -> bool {
    let entries = fs::read_dir(power_supplies).into_iter().flatten().flatten();
    let read = |folder: &Path, name| {
        let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
        text.trim().to_owned()
    };
    let mains = entries.map(|entry| entry.path());
    let mains: Vec<_> = mains.filter(|it| read(it, "type") == "Mains").collect();
    !mains.is_empty() && mains.iter().all(|it| read(it, "online") == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_can_go_over_midnight() {
        let check = |schedule: &str, time: &str, expected: bool| {
            let schedule = Schedule::try_from(schedule.to_owned()).unwrap();
            let time: Time = format!("{time}:00").parse().unwrap();
            assert_eq!(includes(schedule, time), expected, "{time}");
        };
        check("08:00-17:30", "08:00", true);
        check("08:00-17:30", "17:30", false);
        check("22:00-06:00", "23:59", true);
        check("22:00-06:00", "05:59", true);
        check("22:00-06:00", "12:00", false);
    }

    #[test]
    fn mains_tell_of_batteries() {
        let folder = tempfile::tempdir().unwrap();
        let supply = |name: &str, kind: &str, online: &str| {
            let supply = folder.path().join(name);
            fs::create_dir_all(&supply).unwrap();
            fs::write(supply.join("type"), format!("{kind}\n")).unwrap();
            fs::write(supply.join("online"), format!("{online}\n")).unwrap();
        };
        assert!(!is_on_battery(&folder.path().join("missing")));
        supply("BAT0", "Battery", "1");
        assert!(!is_on_battery(folder.path()));
        supply("AC", "Mains", "0");
        assert!(is_on_battery(folder.path()));
        supply("AC2", "Mains", "1");
        assert!(!is_on_battery(folder.path()));
    }
}
