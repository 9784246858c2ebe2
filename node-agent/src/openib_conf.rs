//! Edits `/etc/infiniband/openib.conf`, text in, text out. Pure; [`crate::apply`] reads and writes the file.
//!
//! `openibd` sources the file as shell, so the last assignment of a key wins; that one is edited and comments, order,
//! unknown keys and quoting stay. A file that is more than comments and assignments is not edited: what a condition or
//! a sourced file makes of it cannot be told without running it.

use std::fmt::Write as _;

/// One assignment `KEY=value` of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Line number, from 1.
    pub line: usize,
    /// The key.
    pub key: String,
    /// The value as the shell would see it; `None` where it is computed (`$(hostname -s)`).
    pub value: Option<String>,
    /// Bytes of the value within the line, quotes included.
    span: std::ops::Range<usize>,
}

/// Why the file is not edited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenibConfError {
    /// A line is neither blank, comment nor plain assignment.
    #[error(
        "line {line} is no plain KEY=value (`{text}`); it is shell whose effect cannot be told: simplify the line or set the key by hand"
    )]
    NotPlain {
        /// Line number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// A key that cannot be a shell variable.
    #[error("`{0}` is no shell variable name: write letters, digits and _")]
    BadKey(String),
    /// A value that shell could read as more than a word.
    #[error("value `{value}` of {key} has characters outside A-Z a-z 0-9 _ . , : / + -")]
    BadValue {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
}

/// Every assignment, in the order of the lines.
pub fn assignments(text: &str) -> Result<Vec<Assignment>, OpenibConfError> {
    // Not `lines()`: a carriage return belongs to the value that the shell sees.
    let lines = text.split('\n').enumerate();
    lines
        .filter_map(|(index, line)| assignment(index + 1, line).transpose())
        .collect()
}

/// The effective assignment of `key` (the last) and the line numbers of those it overrides.
pub fn effective(
    text: &str,
    key: &str,
) -> Result<Option<(Assignment, Vec<usize>)>, OpenibConfError> {
    let mut all: Vec<_> = assignments(text)?
        .into_iter()
        .filter(|a| a.key == key)
        .collect();
    Ok(all
        .pop()
        .map(|last| (last, all.into_iter().map(|a| a.line).collect())))
}

/// The text with `key` set to `value`: the last assignment is edited, or a line is appended.
pub fn set(text: &str, key: &str, value: &str) -> Result<String, OpenibConfError> {
    check(key, value)?;
    let Some((last, _)) = effective(text, key)? else {
        return Ok(appended(text, key, value));
    };
    if last.value.as_deref() == Some(value) {
        return Ok(text.to_owned());
    }
    Ok(edit_line(text, last.line, |line| {
        let quote = quote_of(&line[last.span.clone()]);
        let (before, after) = (&line[..last.span.start], &line[last.span.end..]);
        Some(format!("{before}{quote}{value}{quote}{after}"))
    }))
}

/// The text without the effective assignment of `key`: what undoes a line that [`set`] appended.
pub fn unset(text: &str, key: &str) -> Result<String, OpenibConfError> {
    let last = effective(text, key)?;
    Ok(last.map_or_else(
        || text.to_owned(),
        |(last, _)| edit_line(text, last.line, |_| None),
    ))
}

fn check(key: &str, value: &str) -> Result<(), OpenibConfError> {
    if !is_key(key) {
        return Err(OpenibConfError::BadKey(key.to_owned()));
    }
    if !is_value(value) {
        return Err(OpenibConfError::BadValue {
            key: key.to_owned(),
            value: value.to_owned(),
        });
    }
    Ok(())
}

/// Whether `text` may be the name of a shell variable.
#[must_use]
pub fn is_key(text: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    !text.is_empty() && text.bytes().all(word) && !text.as_bytes()[0].is_ascii_digit()
}

/// Whether `text` is a single word to every shell, quoted or not, and no option to a program that is given it.
#[must_use]
pub fn is_value(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_.,:/+-".contains(&b))
}

fn appended(text: &str, key: &str, value: &str) -> String {
    let mut out = text.to_owned();
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{key}={value}");
    out
}

fn edit_line(text: &str, number: usize, edit: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for (index, raw) in text.split_inclusive('\n').enumerate() {
        if index + 1 != number {
            out.push_str(raw);
            continue;
        }
        let line = raw.strip_suffix('\n').unwrap_or(raw);
        if let Some(edited) = edit(line) {
            out.push_str(&edited);
            out.push_str(if raw.ends_with('\n') { "\n" } else { "" });
        }
    }
    out
}

fn quote_of(raw: &str) -> &'static str {
    match raw.as_bytes() {
        [b'"', .., b'"'] => "\"",
        [b'\'', .., b'\''] => "'",
        _ => "",
    }
}

/// `None` for a blank line or a comment.
fn assignment(number: usize, line: &str) -> Result<Option<Assignment>, OpenibConfError> {
    let trimmed = line.trim_start();
    if trimmed.is_empty() || trimmed.starts_with('#') {
        return Ok(None);
    }
    parse_assignment(number, line)
        .map(Some)
        .ok_or_else(|| OpenibConfError::NotPlain {
            line: number,
            text: shorten(line),
        })
}

fn parse_assignment(number: usize, line: &str) -> Option<Assignment> {
    let indent = line.len() - line.trim_start().len();
    let rest = &line[indent..];
    let body = rest.strip_prefix("export ").map_or(rest, str::trim_start);
    let (key, _) = body.split_once('=')?;
    if !is_key(key) {
        return None;
    }
    let start = line.len() - body.len() + key.len() + 1;
    let (length, value) = shell_word(&line[start..])?;
    let after = &line[start + length..];
    let comment = after.trim_start();
    // A comment needs white space before it: `a#b` is one word.
    let ends = comment.is_empty() || (comment.starts_with('#') && comment.len() < after.len());
    ends.then(|| Assignment {
        line: number,
        key: key.to_owned(),
        value,
        span: start..start + length,
    })
}

/// Length and value of the shell word at the start of `text`; `None` where it does not end on this line or does more
/// than name a value.
fn shell_word(text: &str) -> Option<(usize, Option<String>)> {
    let mut value = Some(String::new());
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        match next {
            ' ' | '\t' => break,
            '\'' => at += quoted(&text[at..], '\'', &mut value)?,
            '"' => at += quoted(&text[at..], '"', &mut value)?,
            '$' if text[at..].starts_with("$(") => {
                at += text[at..].find(')')? + 1;
                value = None;
            }
            ';' | '&' | '|' | '<' | '>' | '(' | ')' | '`' | '\\' => return None,
            '$' | '*' | '?' | '[' | '~' => {
                at += 1;
                value = None;
            }
            c => {
                at += c.len_utf8();
                push(&mut value, c);
            }
        }
    }
    Some((at, value))
}

fn push(value: &mut Option<String>, c: char) {
    if let Some(text) = value {
        text.push(c);
    }
}

/// Length of the quoted part that starts at `text`, both quotes included.
fn quoted(text: &str, quote: char, value: &mut Option<String>) -> Option<usize> {
    let end = text[1..].find(quote)? + 1;
    let inner = &text[1..end];
    // An escape could hide the closing quote; such a line is left to a person.
    if quote == '"' && inner.contains('\\') {
        return None;
    }
    if quote == '"' && inner.contains(['$', '`']) {
        *value = None;
    }
    inner.chars().for_each(|c| push(value, c));
    Some(end + 1)
}

fn shorten(line: &str) -> String {
    line.trim().chars().take(60).collect()
}

#[cfg(test)]
mod tests;
