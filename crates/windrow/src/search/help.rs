//! The output of `windrow search --help`.

pub const HELP: &str =
    "Searches the files that `windrow index` made searchable. Shows the best results first, each with
its path, score and the matching part of its text. If a server has the data folder open, the
command uses the server.

Usage: windrow search QUERY… [--data DIR] [OPTION…]

Query:
  word word           documents with all words, in any of their forms, in title, text, names of
                      files or addresses; if no document has all, those with most of them
  Word, \"word\"        this form of the word only
  word OR word        documents with one of the words; OR binds closer than the space
  -word, NOT word     only documents without it
  \"a phrase\"          the words side by side
  \"two words\"p5       the words near each other, in any order, at most 5 places apart [default: 10]
  wor*, w?rd          any letters, any one letter
  ~word               also words that are spelled like it
  ( … )               a part of the query
  @name               the saved search of this name

  title: author: from: to: list: subject: keyword: tag: path:
                                                      words in a part, as in 'from:ada title:\"a b\"'
  filename:*.pdf  ext:pdf,txt  kind:mail  lang:de     properties; a comma separates alternatives
  mime:application/pdf  mime:text/*                   the media type
  dir:/home/ada/docs  dir:src                         files in a folder or below it
  date:2024  date:2023-05..2024  date:P7D  date<2020  a year, month or day, two of them, the last 7
                                                      days; the document's own date, or the file's;
                                                      days begin at midnight in the local time zone
  size>1M  size:10k..2M                               the size of the file

Files without text (damaged, encrypted, archives themselves, of formats without text) are found by
their names and properties, too; results say why they have no text.

Options:
  --data DIR          the data folder [default: that of the configuration, see
                      `windrow config --help`]
  --limit N           the maximal number of results [default: 10]
  --skip N            leave out the first results [default: 0]
  --sort ORDER        relevance, newest, oldest or largest [default: relevance]
  --similar FILE      documents like this indexed file; a query restricts them
  --open N            open the file of the N-th result, with the program that the desktop has for it
                      (macOS: open, otherwise xdg-open or the program in BROWSER)
  -i, --interactive   search while you type, with a preview
  -l, --names-only    print only the paths, a line each
  -0, --null          print only the paths, with a zero byte behind each, for `xargs -0`
  --format TEMPLATE   print each result by a template, as '{score}\\t{path}'; see below
  --json              print a JSON object per line; the last may be a suggestion
  --color WHEN        auto, always or never; auto colours on a terminal unless NO_COLOR is set
                      [default: auto]
  --count-by FIELD    author, ext, kind, lang, dir or year (of the last change): count the documents
                      by it, in place of showing them; --limit is the number of values
  --synonyms FILE     words that count as others, a group a line with commas between the words
                      [default: synonyms.txt in the data folder, if it is there]
  --save NAME         save the query; @NAME in a query stands for it
  --saved             list the saved searches
  --history           list the last searches, the newest first; --limit is their number
  --no-history        do not write the query to the history; WINDROW_HISTORY=off does the same
  --show-pipeline     print the aggregation on files.documents that does the same, and do not search
  -h, --help          show this help

Fields of templates: {number} {score} {path} {file} {inner} {folder} {name} {title} {kind} {ext}
{lang} {author} {size} {date} {modified} {line} {page} {snippet}. {file} is the file that contains
the document, {inner} its place inside, {date} its own date or that of the file. Names of files are
in the bytes of the file system. \\t, \\n, \\0 and \\\\
are a tab, a line break, a zero byte and a backslash; {{ and }} are braces.

If a word has no or few documents, a similar word is suggested on standard error.

Exit codes: 0 there are results, 1 there are no results, 2 the search failed.

Examples:
  windrow search configuration file --data ./data
  windrow search '\"free software\" -windows ext:md' --data ./data --limit 3
  windrow search 'from:ada date:2024' --data ./data --json
  windrow search --similar report.pdf dir:work --data ./data --format '{size} {path}'
";
