//! The state of the server.

pub const NAME: &str = "State";
pub const TITLE: &str = "State of the server";
pub const TABS: &str = "Parts of the state";
pub const GRAPHS: &str = "Graphs";
pub const OPERATIONS: &str = "Running operations";
pub const SLOW: &str = "Slow operations";
pub const LOG: &str = "Log";

pub const RANGE: &str = "Time shown";
pub const MINUTES_15: &str = "15 minutes";
pub const HOUR: &str = "1 hour";
pub const HOURS_4: &str = "4 hours";
pub const NO_SAMPLES: &str =
    "Numbers are taken every two seconds from the start of the server on. The first ones follow.";
pub const NUMBERS: &str = "Numbers of the time shown";
pub const LINE: &str = "Line";
pub const NOW: &str = "Now";
pub const AVERAGE: &str = "Average";
pub const HIGHEST: &str = "Highest";
pub const ZOOM: &str = "Drag over a graph to enlarge a time, double-click to see all of it.";

/// Says why there are no new numbers.
pub fn problem(reason: &str) -> String {
    format!("There are no new numbers: {reason}")
}

pub const OPERATION: &str = "Operation";
pub const COMMAND: &str = "Command";
pub const NAMESPACE: &str = "Collection";
pub const RUNNING_FOR: &str = "Running for";
pub const CLIENT: &str = "Client";
pub const PROGRESS: &str = "Progress";
pub const ACTION: &str = "Action";
pub const KILL: &str = "Kill";
pub const NO_OPERATIONS: &str = "No operation is running.";
pub const OWN_OPERATIONS: &str =
    "Only your own operations are shown: those of others need the action inprog.";
pub const KILLED: &str = "The server was told to end the operation.";

/// Names the button that ends an operation.
pub fn kill(id: i64) -> String {
    format!("Kill operation {id}")
}

/// Asks before an operation is ended.
pub fn confirm_kill(id: i64, command: &str) -> String {
    format!("End operation {id} ({command})? Its client gets an error.")
}

pub const SLOW_LEAD: &str = "Operations that took longer than the limit, newest first. They are taken from the log of the server.";
pub const NO_SLOW: &str = "No slow operation is in the newest lines of the log.";
pub const TIME: &str = "Time";
pub const DURATION: &str = "Duration";
pub const EXAMINED: &str = "Keys / documents / results";
pub const DETAILS: &str = "Details";
pub const PROFILE: &str = "Profiles of databases";
pub const PROFILE_LEAD: &str = "A database with a profile writes its slow operations, or all of them, \
    into its collection system.profile.";
pub const PROFILE_DATABASE: &str = "Database";
pub const PROFILE_LEVEL: &str = "Profile";
pub const PROFILE_LIMIT: &str = "Limit in ms";
pub const PROFILE_SET: &str = "Set";
pub const PROFILE_SEE: &str = "Show the profile";
pub const PROFILE_LEVELS: [&str; 3] = ["off", "slow operations", "all operations"];
pub const PROFILE_LIMIT_ERROR: &str = "The limit is a number of milliseconds.";
pub const PROFILE_LEVEL_ERROR: &str = "The profile is 0, 1 or 2.";

/// Names the levels of a profile for a screen reader.
pub fn profile_of(database: &str) -> String {
    format!("Profile of {database}")
}

/// Names the limit of a profile for a screen reader.
pub fn profile_limit_of(database: &str) -> String {
    format!("Limit of {database} in milliseconds")
}

pub const LOG_LEAD: &str = "The newest lines of the log, the newest first.";
pub const LOG_TEXT: &str = "Lines with";
pub const LOG_SEVERITY: &str = "Severity";
pub const LOG_COMPONENT: &str = "Component";
pub const LOG_ALL: &str = "All";
pub const LOG_FILTER: &str = "Filter";
pub const LOG_MESSAGE: &str = "Message";
pub const NO_LINES: &str = "No line of the log matches.";
pub const SEVERITIES: [(&str, &str); 5] = [
    ("F", "Fatal"),
    ("E", "Error"),
    ("W", "Warning"),
    ("I", "Information"),
    ("D", "Debug"),
];
