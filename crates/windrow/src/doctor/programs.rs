//! Checks of the converters and of text recognition.

use rustix::fs::{Access, access};
use windrow_converters::{ProgramSettings, SandboxMode, probe};

use super::check::Check;

const CONVERTERS: &str = "converters";

pub fn check(programs: &ProgramSettings, checks: &mut Vec<Check>) {
    checks.push(check_sandbox(programs));
    if programs.is_empty() {
        checks.push(Check::skipped(CONVERTERS, "none are configured"));
        return;
    }
    let missing = programs.missing_programs();
    for program in &missing {
        let message = format!("{} for {}", program.program, program.media_type);
        let advice = "install it; the next run reads its files";
        checks.push(Check::problem("missing program", message, advice));
    }
    if missing.is_empty() {
        let message = format!("{} and their programs", programs.converters.len());
        checks.push(Check::ok(CONVERTERS, message));
    }
    let temporary = std::env::temp_dir();
    if let Err(error) = access(&temporary, Access::WRITE_OK | Access::EXEC_OK) {
        let message = format!("{}: {error}", temporary.display());
        checks.push(Check::problem(
            "temporary files",
            message,
            "set TMPDIR to a folder of this user",
        ));
    }
    if let Some(recognition) = &programs.recognition {
        check_languages(&recognition.missing_languages(), checks);
    }
}

/// `missing` are the languages that Tesseract has not installed, or the error of asking it.
fn check_languages(missing: &Result<Vec<String>, String>, checks: &mut Vec<Check>) {
    const NAME: &str = "ocr languages";
    checks.push(match missing {
        Ok(missing) if missing.is_empty() => Check::ok(NAME, "all are installed"),
        Ok(missing) => {
            let message = format!("{} are missing", missing.join(", "));
            Check::problem(NAME, message, "install the packages tesseract-ocr-LANGUAGE")
        }
        // The missing program is reported by another check.
        Err(reason) => Check::skipped(NAME, reason),
    });
}

fn check_sandbox(programs: &ProgramSettings) -> Check {
    const NAME: &str = "sandbox";
    let status = probe();
    match (status.is_complete(), programs.sandbox) {
        (true, _) => Check::ok(NAME, status),
        (false, SandboxMode::BestEffort) => {
            let advice = "converters run with less protection; Linux 5.13 or later has all of it";
            Check::warning(NAME, status, advice)
        }
        (false, SandboxMode::Required) => {
            let advice =
                "sandbox = \"required\", so converters do not run; Linux 5.13 or later has it";
            Check::problem(NAME, status, advice)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Level;
    use super::*;
    use windrow_converters::Converter;

    #[test]
    fn missing_programs_are_problems() {
        let mut checks = Vec::new();
        let converter = Converter::new("a/b", &["no-such-program", "%f"]).unwrap();
        let programs = ProgramSettings {
            converters: vec![converter],
            ..ProgramSettings::default()
        };
        check(&programs, &mut checks);
        let problem = checks
            .iter()
            .find(|check| check.level == Level::Problem)
            .unwrap();
        assert_eq!(problem.message, "no-such-program for a/b");
    }

    #[test]
    fn missing_languages_are_problems() {
        for (missing, expected) in [
            (Ok(Vec::new()), Level::Good),
            (Ok(vec!["tlh".to_owned()]), Level::Problem),
            (Err("no".to_owned()), Level::Skipped),
        ] {
            let mut checks = Vec::new();
            check_languages(&missing, &mut checks);
            assert_eq!(checks[0].level, expected);
        }
    }
}
