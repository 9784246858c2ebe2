use super::*;

/// Texts of apt 2.6, dnf 4.14 and zypper 1.14, most as they were met, some shortened.
const SAID: &[(&str, FailureKind)] = &[
    (
        "E: The repository 'https://example.org/repo ./ Release' is not signed.",
        FailureKind::Unsigned,
    ),
    (
        "W: GPG error: https://example.org ./ InRelease: The following signatures couldn't be verified because the public key is not available: NO_PUBKEY 0123456789ABCDEF\nE: The repository 'https://example.org ./ InRelease' is not signed.",
        FailureKind::UnknownKey,
    ),
    (
        "E: Failed to fetch https://example.org/a.deb  Hash Sum mismatch\nE: Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?",
        FailureKind::Altered,
    ),
    (
        "E: Failed to fetch https://127.0.0.1:9/x/./InRelease  Could not connect to 127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused)\nE: Some index files failed to download. They have been ignored, or old ones used instead.",
        FailureKind::ConnectionRefused,
    ),
    (
        "E: Failed to fetch https://nowhere.invalid/InRelease  Temporary failure resolving 'nowhere.invalid'",
        FailureKind::NameNotResolved,
    ),
    (
        "E: Failed to fetch https://example.org/InRelease  Certificate verification failed: The certificate is NOT trusted.",
        FailureKind::Tls,
    ),
    (
        "E: Failed to fetch https://example.org/InRelease  401  Unauthorized [IP: 192.0.2.1 443]",
        FailureKind::Unauthorised,
    ),
    (
        "E: The repository 'https://example.org noble Release' does not have a Release file.",
        FailureKind::RepositoryNotFound,
    ),
    (
        "E: Unable to locate package doca-ofed",
        FailureKind::PackageNotFound,
    ),
    (
        "E: Version '9' for 'mydriver' was not found",
        FailureKind::PackageNotFound,
    ),
    (
        "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 811 (unattended-upgr)\nE: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?",
        FailureKind::LockHeld,
    ),
    (
        "dpkg: error processing archive /x.deb (--unpack):\n cannot copy extracted data: failed to write (No space left on device)",
        FailureKind::DiskFull,
    ),
    (
        "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.",
        FailureKind::Interrupted,
    ),
    (
        "E: Held packages were changed and -y was used without --allow-change-held-packages.",
        FailureKind::Held,
    ),
    (
        "E: Packages were downgraded and -y was used without --allow-downgrades.",
        FailureKind::Downgrade,
    ),
    (
        "E: Packages need to be removed but remove is disabled.",
        FailureKind::WouldRemove,
    ),
    (
        "The following packages have unmet dependencies:\n doca-ofed : Depends: x but it is not installable\nE: Unable to correct problems, you have held broken packages.",
        FailureKind::UnmetDependencies,
    ),
    (
        "Error! Bad return status for module build on kernel: 6.8.0-101-generic (x86_64)\nE: Sub-process /usr/bin/dpkg returned an error code (1)",
        FailureKind::ModuleBuild,
    ),
    (
        "Error: GPG check FAILED\nPublic key for doca-ofed-3.2.2-1.el9.x86_64.rpm is not installed",
        FailureKind::UnknownKey,
    ),
    (
        "Package doca-ofed-3.2.2-1.el9.x86_64.rpm is not signed\nError: GPG check FAILED",
        FailureKind::Unsigned,
    ),
    (
        "Curl error (7): Couldn't connect to server for https://example.org/repodata/repomd.xml [Failed to connect to example.org port 443: Connection refused]\nError: Failed to download metadata for repo 'gpurdma-1'",
        FailureKind::ConnectionRefused,
    ),
    (
        "Curl error (60): SSL peer certificate or SSH remote key was not OK [SSL certificate problem: self-signed certificate]",
        FailureKind::Tls,
    ),
    (
        "No match for argument: doca-ofed-9\nError: Unable to find a match: doca-ofed-9",
        FailureKind::PackageNotFound,
    ),
    (
        "System management is locked by the application with pid 4711 (zypper).",
        FailureKind::LockHeld,
    ),
    (
        "GPG key at file:///etc/pki/rpm-gpg/site.asc (0xB9498DB8) is already installed\nThe GPG keys listed for the \"site\" repository are already installed but they are not correct for this package.\nCheck that the correct key URLs are configured for this repository.. Failing package is: mydriver-1.0-1.noarch\nError: GPG check FAILED",
        FailureKind::UnknownKey,
    ),
    (
        "[MIRROR] mydriver-1.0-1.noarch.rpm: Downloading successful, but checksum doesn't match. Calculated: db5a(sha256)  Expected: 54fe(sha256)\nError: Error downloading packages:\n  mydriver-1.0-1.noarch: Cannot download, all mirrors were already tried without success",
        FailureKind::Altered,
    ),
    (
        "Error: Failed to download metadata for repo 'site': repomd.xml parser error: Parse error at line: 1 (Document is empty",
        FailureKind::RepositoryNotFound,
    ),
    (
        "Warning: File 'repomd.xml' from repository 'site' is signed with an unknown key '846890EAC1BDA6C9'.",
        FailureKind::UnknownKey,
    ),
    (
        "Warning: File 'repomd.xml' from repository 'site' is unsigned.",
        FailureKind::Unsigned,
    ),
    (
        "Signature verification failed for file 'repomd.xml' from repository 'site'. Continue? [yes/no] (no): no",
        FailureKind::Altered,
    ),
    (
        "mydriver-1.0-1.noarch.rpm (Plain RPM files cache): Signature verification failed [4-Signatures public key is not available]",
        FailureKind::UnknownKey,
    ),
    (
        "Warning: Digest verification failed for file 'mydriver-1.0-1.noarch.rpm'",
        FailureKind::Altered,
    ),
    (
        "'mydriver=9.9' not found in package names. Trying capabilities.\nNo provider of 'mydriver = 9.9' found.",
        FailureKind::PackageNotFound,
    ),
    (
        "Repository 'site' is invalid.\n[site|https://example.org/nowhere] Valid metadata not found at specified URL",
        FailureKind::RepositoryNotFound,
    ),
    (
        "Problem: nothing provides 'kernel = 5.14' needed by the to be installed kmod-x",
        FailureKind::UnmetDependencies,
    ),
];

#[test]
fn the_first_cause_is_named_and_not_what_follows_from_it() {
    for (said, kind) in SAID {
        assert_eq!(classify(said).kind, *kind, "{said}");
    }
}

#[test]
fn a_run_that_was_cut_off_tells_of_no_failure() {
    for said in [
        "",
        "Unpacking mydriver (1.0) ...\nSetting up mydriver (1.0) ...\n",
        "W: Some warning\nSetting up mydriver (1.0) ...\nE: Sub-process /usr/bin/dpkg exited unexpectedly\n",
        "  Installing       : mydriver-1.0-1.el9.x86_64          1/2\n",
        "(1/2) Installing: mydriver-1.0-1.x86_64 [...",
    ] {
        assert_eq!(verdict(said), None, "{said}");
    }
    let unknown = [
        "E: Something new",
        "dpkg: error processing package mydriver (--configure):\n something new",
        "Error: Transaction failed",
        "Installation of mydriver-1.0-1.x86_64 failed:",
    ];
    for said in SAID.iter().map(|(said, _)| *said).chain(unknown) {
        assert_eq!(verdict(said), Some(classify(said)), "{said}");
    }
}

#[test]
fn what_matches_nothing_keeps_its_own_words() {
    let failure = classify("Reading package lists...\nE: Something new\nmore\n");
    assert_eq!(failure.kind, FailureKind::Other);
    assert_eq!(failure.evidence, "E: Something new");
    assert_eq!(classify("").evidence, "");
}

#[test]
fn each_failure_says_what_was_seen_and_what_helps() {
    let text = classify(SAID[4].0).to_string();
    assert!(
        text.starts_with("the repository's name has no address (`E: Failed to fetch"),
        "{text}"
    );
    assert!(
        text.ends_with("check the host's DNS, or mirror the repository"),
        "{text}"
    );
}
