use super::super::key::tests::KEY;
use super::*;

fn asked() -> PackageRepository {
    PackageRepository {
        url: "https://example.org/doca/ubuntu24.04".to_owned(),
        signing_key: KEY.to_owned(),
        suite: None,
        components: Vec::new(),
    }
}

fn shown(repository: &Repository, manager: Manager) -> String {
    let file = |file: RepositoryFile| format!("{}\n{}", file.path, file.text);
    repository
        .files(manager)
        .into_iter()
        .map(file)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_key_comes_first_and_the_description_names_it() {
    let repository = Repository::new(&asked()).unwrap();
    insta::assert_snapshot!("flat_apt", shown(&repository, Manager::Apt));
    insta::assert_snapshot!("dnf", shown(&repository, Manager::Dnf));
    insta::assert_snapshot!("zypper", shown(&repository, Manager::Zypper));
    let suite = PackageRepository {
        suite: Some("noble".to_owned()),
        components: vec!["main".to_owned(), "extra".to_owned()],
        ..asked()
    };
    let suite = Repository::new(&suite).unwrap();
    assert!(shown(&suite, Manager::Apt).contains("Suites: noble\nComponents: main extra\n"));
    assert_ne!(suite.id(), repository.id());
}

#[test]
fn a_key_by_url_is_for_those_who_fetch_it() {
    let by_url = PackageRepository {
        signing_key: "https://example.org/key.asc".to_owned(),
        ..asked()
    };
    let repository = Repository::new(&by_url).unwrap();
    assert_eq!(
        repository.usable(Manager::Apt),
        Err(RepositoryError::KeyUrl)
    );
    assert_eq!(repository.usable(Manager::Dnf), Ok(()));
    assert_eq!(repository.files(Manager::Dnf).len(), 1);
}

#[test]
fn nothing_becomes_a_second_line_of_a_file() {
    for url in [
        "http://example.org/x",
        "https://",
        "https://user:pass@example.org/x",
        "https://example.org:x/y",
        "https://example.org/x y",
        "https://example.org/x\nTrusted: yes",
        "https://example.org/$(id)",
        "https://example.org/x?y",
        "https://example.org/[trusted=yes]",
    ] {
        let asked = PackageRepository {
            url: url.to_owned(),
            ..asked()
        };
        assert!(
            matches!(Repository::new(&asked), Err(RepositoryError::Url { .. })),
            "{url}"
        );
    }
    for suite in ["", "-x", "a b", "a\nTrusted: yes", "[x]"] {
        let asked = PackageRepository {
            suite: Some(suite.to_owned()),
            ..asked()
        };
        assert!(
            matches!(Repository::new(&asked), Err(RepositoryError::Word { .. })),
            "{suite}"
        );
    }
}
