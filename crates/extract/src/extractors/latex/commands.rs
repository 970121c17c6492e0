//! The effects of LaTeX commands and environments.

/// How the arguments of a command are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Command {
    /// Has this number of arguments, which are not printed.
    Drop(u32),
    /// A heading, in a paragraph of its own.
    Heading,
    /// The argument is printed between spaces.
    Aside,
    /// Prints this text.
    Prints(&'static str),
    /// Puts an accent on its argument.
    Accent(char),
    Verb,
    Link,
    Title,
    Author,
    Date,
    Definition,
    Begin,
    End,
    Item,
    LineBreak,
    Paragraph,
    Math(&'static str),
    Comment(&'static str),
    /// Any other command: its arguments are printed.
    Other,
}

/// Returns the meaning of a command by its name without the backslash.
#[rustfmt::skip]
pub(super) fn find_command(name: &str) -> Command {
    match name {
        "title" | "subtitle" => Command::Title,
        "author" => Command::Author,
        "date" => Command::Date,
        "part" | "chapter" | "section" | "subsection" | "subsubsection" | "paragraph"
        | "subparagraph" | "frametitle" | "framesubtitle" | "caption" | "chap" | "beginsection"
        | "addchap" | "addsec" => Command::Heading,
        "footnote" | "footnotetext" | "thanks" | "marginpar" | "index" | "sidenote" => {
            if name == "index" { Command::Drop(1) } else { Command::Aside }
        }
        "label" | "ref" | "eqref" | "pageref" | "autoref" | "cref" | "Cref" | "nameref" | "vref"
        | "cite" | "citep" | "citet" | "parencite" | "textcite" | "autocite" | "nocite"
        | "includegraphics" | "usepackage" | "documentclass" | "documentstyle" | "input"
        | "include" | "bibliographystyle" | "bibliography" | "addbibresource" | "vspace" | "hspace"
        | "pagestyle" | "thispagestyle" | "pagenumbering" | "usetheme" | "usecolortheme"
        | "graphicspath" | "selectlanguage" | "hypersetup" | "geometry" | "color" | "hyphenation"
        | "newcounter" | "setcaptionwidth" | "RequirePackage" | "PassOptionsToPackage"
        | "cline" | "tableofcontents" | "glsresetall" | "lstset" | "usetikzlibrary" | "tikzset"
        | "foreignlanguage" | "vskip" | "hskip" | "kern" | "fontsize" | "bibitem" => {
            match name {
                "tableofcontents" | "glsresetall" | "vskip" | "hskip" | "kern" => Command::Drop(0),
                "fontsize" => Command::Drop(2),
                _ => Command::Drop(1),
            }
        }
        "setlength" | "addtolength" | "setcounter" | "addtocounter" | "textcolor" | "colorbox"
        | "addcontentsline" | "definecolor" | "rule" | "settowidth" | "renewbibmacro"
        | "multicolumn" | "parbox" | "resizebox" | "scalebox" | "raisebox" | "numberwithin"
        | "hypertarget" | "hyperlink" => {
            match name {
                "textcolor" | "colorbox" | "parbox" | "scalebox" | "raisebox"
                | "hypertarget" | "hyperlink" => Command::Drop(1),
                "addcontentsline" | "definecolor" => Command::Drop(3),
                _ => Command::Drop(2),
            }
        }
        "newcommand" | "renewcommand" | "providecommand" | "newenvironment" | "renewenvironment"
        | "DeclareMathOperator" | "newtheorem" | "def" | "gdef" | "edef" | "let"
        | "DeclareRobustCommand" | "newif" | "newlength" | "NewDocumentCommand" => Command::Definition,
        "begin" => Command::Begin,
        "end" => Command::End,
        "item" => Command::Item,
        "\\" | "newline" | "cr" | "tabularnewline" | "linebreak" | "hline" => Command::LineBreak,
        "par" | "newpage" | "clearpage" | "bigskip" | "medskip" | "smallskip" | "maketitle"
        | "pagebreak" | "cleardoublepage" => Command::Paragraph,
        "(" => Command::Math("\\)"),
        "[" => Command::Math("\\]"),
        "iffalse" => Command::Comment("\\fi"),
        "verb" | "lstinline" | "mintinline" => Command::Verb,
        "href" => Command::Link,
        "TeX" | "LaTeX" | "BibTeX" | "LaTeXe" => Command::Prints(match name {
            "TeX" => "TeX", "BibTeX" => "BibTeX", "LaTeX" => "LaTeX", _ => "LaTeX2e",
        }),
        "'" => Command::Accent('\u{301}'), "`" => Command::Accent('\u{300}'),
        "^" => Command::Accent('\u{302}'), "~" => Command::Accent('\u{303}'),
        "\"" => Command::Accent('\u{308}'), "=" => Command::Accent('\u{304}'),
        "." => Command::Accent('\u{307}'), "u" => Command::Accent('\u{306}'),
        "v" => Command::Accent('\u{30c}'), "H" => Command::Accent('\u{30b}'),
        "c" => Command::Accent('\u{327}'), "k" => Command::Accent('\u{328}'),
        "d" => Command::Accent('\u{323}'), "b" => Command::Accent('\u{331}'),
        "r" => Command::Accent('\u{30a}'),
        _ => find_symbol(name).map_or(Command::Other, Command::Prints),
    }
}

#[rustfmt::skip]
fn find_symbol(name: &str) -> Option<&'static str> {
    Some(match name {
        "&" => "&", "%" => "%", "$" => "$", "#" => "#", "_" => "_", "{" => "{", "}" => "}",
        " " | "," | ";" | ":" | "quad" | "qquad" | "enspace" | "thinspace" | "space" => " ",
        "/" | "-" | "!" | "@" => "",
        "ss" => "ß", "SS" => "SS", "ae" => "æ", "AE" => "Æ", "oe" => "œ", "OE" => "Œ", "aa" => "å",
        "AA" => "Å", "o" => "ø", "O" => "Ø", "l" => "ł", "L" => "Ł", "i" => "ı", "j" => "ȷ",
        "dh" => "ð", "DH" => "Ð", "th" => "þ", "TH" => "Þ", "dj" => "đ", "DJ" => "Đ", "ng" => "ŋ",
        "S" => "§", "P" => "¶", "copyright" => "©", "textregistered" => "®", "pounds" => "£",
        "texttrademark" => "™", "euro" | "EUR" | "texteuro" => "€", "dots" | "ldots" | "textellipsis" => "…",
        "textbackslash" => "\\", "textasciitilde" => "~", "textasciicircum" => "^",
        "textunderscore" => "_", "textbar" => "|", "textless" => "<", "textgreater" => ">",
        "textquotesingle" => "'", "textquotedbl" => "\"", "textendash" => "–", "textemdash" => "—",
        "textquoteleft" => "‘", "textquoteright" => "’", "textquotedblleft" => "“",
        "textquotedblright" => "”", "glqq" => "„", "grqq" => "“", "flqq" | "guillemotleft" => "«",
        "frqq" | "guillemotright" => "»", "textdegree" | "degree" => "°", "textbullet" => "•",
        "textperiodcentered" => "·", "today" => "",
        _ => return None,
    })
}

/// What an environment contains.
#[derive(Debug, PartialEq)]
pub(super) enum Environment {
    Text,
    /// The text is printed unchanged.
    Verbatim,
    Math,
    Comment,
    /// Has an argument that is not printed.
    TextAfterArgument,
}

pub(super) fn find_environment(name: &str) -> Environment {
    match name.trim_end_matches('*') {
        "verbatim" | "lstlisting" | "Verbatim" | "minted" | "alltt" | "filecontents" => {
            Environment::Verbatim
        }
        "equation" | "align" | "eqnarray" | "displaymath" | "math" | "gather" | "multline"
        | "flalign" | "alignat" | "dmath" | "tikzpicture" | "pspicture" | "picture" => {
            Environment::Math
        }
        "comment" => Environment::Comment,
        "tabular" | "array" | "tabularx" | "longtable" | "minipage" | "multicols"
        | "wrapfigure" | "thebibliography" | "adjustwidth" | "otherlanguage" => {
            Environment::TextAfterArgument
        }
        _ => Environment::Text,
    }
}
