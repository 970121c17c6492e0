//! The stages of the aggregation builder.

use windrow_document::{ArrayBuf, ArrayBuilder, DocumentBuf, ValueRef};

use crate::form::FormFields;
use crate::literals::{parse_array, parse_value, shell_line, shell_text};
use crate::texts::queries as texts;

/// The maximum number of stages in the builder.
pub const STAGES_MAX: usize = 50;
/// The stages that write.
const WRITING: [&str; 2] = ["$out", "$merge"];

/// A stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The name, such as `$match`.
    pub kind: String,
    /// The argument, as text.
    pub text: String,
    /// The stage is part of the pipeline.
    pub is_enabled: bool,
}

impl Stage {
    /// Returns an example stage of a kind.
    pub fn example(kind: &str) -> Stage {
        let known = texts::KINDS.iter().find(|(name, _)| *name == kind);
        let (kind, text) = known.copied().unwrap_or(("$match", "{}"));
        Stage {
            kind: kind.to_owned(),
            text: text.to_owned(),
            is_enabled: true,
        }
    }

    /// Returns `true` if the stage writes.
    pub fn writes(&self) -> bool {
        self.is_enabled && WRITING.contains(&self.kind.as_str())
    }

    /// Parses the stage. Fails with a message.
    fn document(&self) -> Result<DocumentBuf, String> {
        let value = parse_value(&self.text).map_err(|error| error.to_string())?;
        if !self.kind.starts_with('$') || self.kind.contains('\0') {
            return Err(format!("\"{}\" is no name of a stage", self.kind));
        }
        let mut stage = DocumentBuf::new();
        stage.push(&self.kind, value);
        Ok(stage)
    }
}

/// Returns the stages of a form. Each has the fields `kind`, `stage` and `enabled`.
pub fn stages_from_form(form: &FormFields) -> Vec<Stage> {
    let kinds = form.all("kind");
    let texts = form.all("stage");
    let stages = kinds.zip(texts).enumerate().map(|(at, (kind, text))| {
        let at = at.to_string();
        Stage {
            kind: kind.to_owned(),
            text: text.to_owned(),
            is_enabled: form.all("enabled").any(|it| it == at),
        }
    });
    stages.take(STAGES_MAX).collect()
}

/// Parses an array of stages. Fails with a message.
pub fn stages_from_text(text: &str) -> Result<Vec<Stage>, String> {
    let array = parse_array(text).map_err(|error| error.to_string())?;
    if array.as_array().count() > STAGES_MAX {
        return Err(texts::STAGES_MAX.to_owned());
    }
    let stages = array.iter().enumerate().map(|(at, stage)| {
        let stage = stage.as_document().filter(|it| it.count() == 1);
        let (kind, value) = stage
            .and_then(|it| it.first())
            .ok_or_else(|| format!("stage {} is no document with one field", at + 1))?;
        Ok(Stage {
            kind: kind.to_owned(),
            text: stage_text(value),
            is_enabled: true,
        })
    });
    stages.collect()
}

/// Formats the argument of a stage on one line if it is short.
fn stage_text(value: ValueRef<'_>) -> String {
    const LINE_BYTES_MAX: usize = 60;
    let line = shell_line(value);
    if line.len() <= LINE_BYTES_MAX {
        line
    } else {
        shell_text(value)
    }
}

/// Returns the pipeline of the enabled stages. Fails with a message.
pub fn pipeline(stages: &[Stage]) -> Result<ArrayBuf, String> {
    let mut pipeline = ArrayBuilder::new();
    for (at, stage) in stages.iter().enumerate().filter(|(_, it)| it.is_enabled) {
        let document = stage.document();
        let document = document.map_err(|message| texts::stage_error(at + 1, &message))?;
        pipeline.push(ValueRef::Document(document.as_document()));
    }
    Ok(pipeline.finish())
}

/// Returns the pipeline as text. Invalid arguments are kept unchanged.
pub fn pipeline_text(stages: &[Stage]) -> String {
    match pipeline(stages) {
        Ok(pipeline) => shell_text(ValueRef::Array(pipeline.as_array())),
        Err(_) => {
            let enabled = stages.iter().filter(|it| it.is_enabled);
            let lines = enabled.map(|it| format!("  {{ {}: {} }}", it.kind, it.text));
            format!("[\n{}\n]", lines.collect::<Vec<_>>().join(",\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::array;

    fn form() -> FormFields {
        FormFields::default()
            .and("kind", "$match")
            .and("stage", "{a: 1}")
            .and("kind", "$limit")
            .and("stage", "5")
            .and("kind", "$out")
            .and("stage", "'b'")
            .and("enabled", "0")
            .and("enabled", "2")
    }

    #[test]
    fn forms_become_pipelines() {
        let stages = stages_from_form(&form());
        assert_eq!(stages.len(), 3);
        assert_eq!(
            pipeline(&stages).unwrap(),
            array![{ "$match": { "a": 1 } }, { "$out": "b" }]
        );
        assert!(stages[2].writes() && !stages[0].writes());
        let again = stages_from_text(&pipeline_text(&stages)).unwrap();
        assert_eq!(pipeline(&again).unwrap(), pipeline(&stages).unwrap());
    }

    #[test]
    fn wrong_stages_are_named() {
        let mut stages = stages_from_form(&form());
        stages[2].text = "{".to_owned();
        assert!(pipeline(&stages).unwrap_err().starts_with("Stage 3: "));
        for text in ["{}", "[1]", "[{}]", "[{$match: {}, $limit: 1}]", "["] {
            assert!(stages_from_text(text).is_err(), "{text}");
        }
        for (kind, _) in texts::KINDS {
            assert!(pipeline(&[Stage::example(kind)]).is_ok(), "{kind}");
        }
    }
}
