use super::*;

/// The shape of a key: one packet of a public key, too short to be one.
pub(crate) const KEY: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----\nComment: test\n\nxgQEYAAAAA==\n=abcd\n-----END PGP PUBLIC KEY BLOCK-----\n";

#[test]
fn an_armoured_public_key_is_kept_as_it_is() {
    assert_eq!(armoured(KEY).unwrap(), KEY);
    let windows = KEY.replace('\n', "\r\n");
    assert_eq!(armoured(&windows).unwrap(), KEY, "line ends do not matter");
}

#[test]
fn anything_else_is_refused_with_its_reason() {
    let secret = KEY.replace("xgQEYAAAAA==", "xQQEYAAAAA==");
    let cases = [
        ("", KeyError::NotArmoured),
        ("ssh-ed25519 AAAA", KeyError::NotArmoured),
        (&KEY.replace("PUBLIC", "PRIVATE"), KeyError::NotArmoured),
        (&format!("{KEY}{KEY}"), KeyError::NotArmoured),
        (&format!("{KEY}Trusted: yes"), KeyError::NotArmoured),
        (&KEY.replace("xgQEYAAAAA==", "$(reboot)"), KeyError::Damaged),
        (&secret, KeyError::NotPublic),
        (&KEY.replace("xgQEYAAAAA==", ""), KeyError::NotPublic),
    ];
    for (text, error) in cases {
        assert_eq!(armoured(text), Err(error), "{text}");
    }
}
