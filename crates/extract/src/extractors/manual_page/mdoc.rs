//! Macros of BSD's manual pages. Source: the manual page mdoc(7).

/// The text of a macro line.
#[derive(Default)]
pub(super) struct MacroText {
    pub(super) text: String,
    /// The next word follows without a space.
    joins: bool,
    /// The prefix of each argument.
    prefix: &'static str,
}

/// The strings around the arguments of a macro.
struct Enclosure {
    open: &'static str,
    close: &'static str,
}

/// Returns the enclosure of the macro with this name.
fn enclosure(name: &str) -> Option<Enclosure> {
    let (open, close) = match name {
        "Op" | "Bq" | "Oo" => ("[", "]"),
        "Dq" | "Do" => ("“", "”"),
        "Sq" | "So" | "Ql" => ("‘", "’"),
        "Qq" | "Qo" => ("\"", "\""),
        "Pq" | "Po" => ("(", ")"),
        "Aq" | "Ao" => ("<", ">"),
        "Brq" | "Bro" => ("{", "}"),
        _ => return None,
    };
    Some(Enclosure { open, close })
}

/// Macros that print their arguments unchanged.
const PLAIN: [&str; 30] = [
    "Ar", "Pa", "Em", "Sy", "Li", "Cm", "Ic", "Ev", "Dv", "Er", "Va", "Vt", "Ft", "Fa", "Ad", "An",
    "Tn", "Ms", "No", "Nd", "Lk", "Mt", "Cd", "Ux", "St", "Lb", "In", "%T", "%A", "%D",
];

/// Returns `true` if a word is the name of a macro that can occur inside a line.
fn is_callable(word: &str) -> bool {
    enclosure(word).is_some()
        || PLAIN.contains(&word)
        || matches!(
            word,
            "Fl" | "Nm" | "Xr" | "Ns" | "Ap" | "Fn" | "Pf" | "Oc" | "Dc" | "Sc"
        )
        || matches!(word, "Qc" | "Pc" | "Ac" | "Brc")
}

/// Returns the text of a line of macros. `words` are its name and arguments, `page_name` is the
/// name that `.Nm` prints.
pub(super) fn render_line(words: &[String], page_name: &str) -> String {
    let mut line = MacroText::default();
    let mut closing = Vec::new();
    let mut words = words.iter().map(String::as_str).peekable();
    let mut is_first = true;
    while let Some(word) = words.next() {
        if !(is_first || is_callable(word)) {
            line.push(word);
            continue;
        }
        is_first = false;
        line.prefix = "";
        if let Some(Enclosure { open, close }) = enclosure(word) {
            line.push(open);
            line.joins = true;
            // Macros that end with `o` are closed by a separate macro.
            if !word.ends_with('o') {
                closing.push(close);
            }
            continue;
        }
        match word {
            "Fl" => {
                line.prefix = "-";
                if words.peek().is_none_or(|next| is_callable(next)) {
                    line.push("");
                    line.joins = true;
                }
            }
            "Nm" if words
                .peek()
                .is_none_or(|next| is_callable(next) || is_mark(next)) =>
            {
                line.push(page_name);
            }
            "Xr" => {
                line.push(words.next().unwrap_or_default());
                if let Some(section) = words.next_if(|next| next.len() <= 3 && !is_mark(next)) {
                    line.text.push_str(&format!("({section})"));
                }
            }
            "Fn" => {
                line.push(words.next().unwrap_or_default());
                line.text.push_str("()");
            }
            "Ns" => line.joins = true,
            "Ap" => {
                line.text.push('\'');
                line.joins = true;
            }
            "Pf" => {
                line.push(words.next().unwrap_or_default());
                line.joins = true;
            }
            "Oc" => line.close("]"),
            "Dc" => line.close("”"),
            "Sc" => line.close("’"),
            "Qc" => line.close("\""),
            "Pc" => line.close(")"),
            "Ac" => line.close(">"),
            "Brc" => line.close("}"),
            _ => {}
        }
    }
    while let Some(close) = closing.pop() {
        line.close(close);
    }
    line.text
}

/// Returns `true` for punctuation, which follows the preceding word without a space.
fn is_mark(word: &str) -> bool {
    matches!(word, "." | "," | ":" | ";" | ")" | "]" | "?" | "!")
}

impl MacroText {
    fn push(&mut self, word: &str) {
        if !(self.text.is_empty() || self.joins || is_mark(word)) {
            self.text.push(' ');
        }
        self.joins = matches!(word, "(" | "[");
        if !is_mark(word) && !self.joins {
            self.text.push_str(self.prefix);
        }
        self.text.push_str(word);
    }

    fn close(&mut self, mark: &str) {
        self.text.push_str(mark);
        self.joins = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_are_rendered() {
        let check = |line: &str, text: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(render_line(&words, "ls"), text, "{line}");
        };
        check("Nm", "ls");
        check("Nm grep ,", "grep,");
        check("Nm ,", "ls,");
        check("Op Fl l Ar file", "[-l file]");
        check("Fl a b , c", "-a -b, -c");
        check("Xr mount 8 .", "mount(8).");
        check("Pq Em x", "(x)");
        check("Fl x Ns Ar y", "-x y".replace(' ', "").as_str());
        check("Fn open path", "open() path");
        check("Xr", "");
    }
}
