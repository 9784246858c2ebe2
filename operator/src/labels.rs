//! The syntax of label keys and values. Pure. Follows `IsQualifiedName` and `IsValidLabelValue` of apimachinery: the
//! API server refuses an affinity with anything else.

const LONGEST_NAME: usize = 63;
const LONGEST_PREFIX: usize = 253;

/// Whether a text may be a label's key: a name, or a DNS subdomain, a slash and a name.
#[must_use]
pub fn is_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
        None => is_name(text),
    }
}

/// Whether a text may be a label's value: a name, or nothing.
#[must_use]
pub fn is_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.len() <= LONGEST_NAME && between(text, |byte| byte.is_ascii_alphanumeric(), inner)
}

fn is_subdomain(text: &str) -> bool {
    let outer = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| outer(byte) || byte == b'-';
    text.len() <= LONGEST_PREFIX && text.split('.').all(|label| between(label, outer, inner))
}

/// Whether a text is not empty, begins and ends with one kind of character and has another between.
fn between(text: &str, outer: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.into_iter().all(|end| end.is_some_and(&outer)) && text.bytes().all(inner)
}

#[cfg(test)]
mod tests;
