//! Signing keys of repositories: armoured `OpenPGP` public keys (RFC 9580, 6.2). Pure.
//!
//! Only the form is checked: that it is one or more public keys and nothing else. Whose key it is, the administrator says.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
const END: &str = "-----END PGP PUBLIC KEY BLOCK-----";
/// Packet type of a public key.
const PUBLIC_KEY: u8 = 6;

/// Why a text is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Other text.
    #[error(
        "signingKey is no armoured public key: write the text from `{BEGIN}` to `{END}`, as `gpg --armor --export` prints it"
    )]
    NotArmoured,
    /// The body is damaged.
    #[error("signingKey is damaged: its body is no base64; export it again")]
    Damaged,
    /// Something else than a public key.
    #[error("signingKey holds no public key: export the public key with `gpg --armor --export`")]
    NotPublic,
}

/// The key's text, in the form in which it is written to a file.
pub fn armoured(text: &str) -> Result<String, KeyError> {
    let lines: Vec<&str> = text.trim().lines().map(str::trim).collect();
    let [first, body @ .., last] = lines.as_slice() else {
        return Err(KeyError::NotArmoured);
    };
    if *first != BEGIN || *last != END || body.iter().any(|line| line.starts_with("-----")) {
        return Err(KeyError::NotArmoured);
    }
    let data = STANDARD
        .decode(base64_of(body))
        .map_err(|_| KeyError::Damaged)?;
    let kind = data
        .first()
        .copied()
        .and_then(packet)
        .ok_or(KeyError::NotPublic)?;
    if kind != PUBLIC_KEY {
        return Err(KeyError::NotPublic);
    }
    Ok(lines.join("\n") + "\n")
}

/// Headers end with an empty line; the checksum begins with `=` and is optional.
fn base64_of(body: &[&str]) -> String {
    let after = body.iter().position(|line| line.is_empty());
    let data = body.get(after.map_or(0, |at| at + 1)..).unwrap_or_default();
    let is_checksum = |line: &str| line.len() == 5 && line.starts_with('=');
    data.iter()
        .filter(|line| !is_checksum(line))
        .copied()
        .collect()
}

/// Type of a packet, from its first byte in the new or the old form.
fn packet(byte: u8) -> Option<u8> {
    match byte >> 6 {
        0b11 => Some(byte & 0x3f),
        0b10 => Some((byte >> 2) & 0x0f),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
