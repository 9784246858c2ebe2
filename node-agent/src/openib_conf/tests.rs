use super::*;

const SITE: &str = "\
# Start HCA driver upon boot
ONBOOT=yes

# Node description
NODE_DESC=$(hostname -s)
  UMAD_LOAD=\"no\"   # off since 2021
export SET_IPOIB_CM='auto'
RUN_SYSCTL=yes
VENDOR_KEY=a,b:c
UMAD_LOAD=no
";

#[test]
fn sets_the_last_assignment_and_keeps_the_rest() {
    let edited = set(SITE, "UMAD_LOAD", "yes").unwrap();
    assert_eq!(
        edited,
        SITE.replace("\nUMAD_LOAD=no\n", "\nUMAD_LOAD=yes\n")
    );
    let (last, overridden) = effective(&edited, "UMAD_LOAD").unwrap().unwrap();
    assert_eq!((last.line, last.value.as_deref()), (10, Some("yes")));
    assert_eq!(overridden, [6]);
}

#[test]
fn keeps_quotes_prefix_and_trailing_comment() {
    let edited = set(SITE, "SET_IPOIB_CM", "no").unwrap();
    assert!(edited.contains("export SET_IPOIB_CM='no'\n"), "{edited}");
    let one = "  UMAD_LOAD=\"no\"   # off\n";
    assert_eq!(
        set(one, "UMAD_LOAD", "yes").unwrap(),
        "  UMAD_LOAD=\"yes\"   # off\n"
    );
}

#[test]
fn replaces_a_computed_value() {
    assert_eq!(effective(SITE, "NODE_DESC").unwrap().unwrap().0.value, None);
    let edited = set(SITE, "NODE_DESC", "node-7").unwrap();
    assert!(edited.contains("\nNODE_DESC=node-7\n"), "{edited}");
}

#[test]
fn appends_a_missing_key_also_without_final_newline() {
    assert_eq!(set("A=1", "B", "2").unwrap(), "A=1\nB=2\n");
    assert_eq!(set("", "B", "2").unwrap(), "B=2\n");
    // A commented assignment is a comment.
    assert_eq!(set("#B=1\n", "B", "2").unwrap(), "#B=1\nB=2\n");
}

#[test]
fn same_value_is_the_same_text() {
    for key in ["UMAD_LOAD", "SET_IPOIB_CM"] {
        let value = effective(SITE, key).unwrap().unwrap().0.value.unwrap();
        assert_eq!(set(SITE, key, &value).unwrap(), SITE);
    }
}

#[test]
fn unset_undoes_an_appended_line() {
    let edited = set(SITE, "RDS_LOAD", "no").unwrap();
    assert_eq!(unset(&edited, "RDS_LOAD").unwrap(), SITE);
    assert_eq!(unset(SITE, "RDS_LOAD").unwrap(), SITE);
}

#[test]
fn a_carriage_return_is_part_of_the_shells_value_and_goes() {
    assert_eq!(set("A=1\r\nB=2\r\n", "B", "2").unwrap(), "A=1\r\nB=2\n");
}

#[test]
fn more_than_assignments_is_not_edited() {
    for line in [
        "if [ -e /x ]; then",
        "A=1; B=2",
        ". /etc/sysconfig/ib",
        "A=1 command",
        "A=\"open",
        "A=b\\",
        "A=`id`",
        "A=1 &",
        "9A=1",
        "A =1",
    ] {
        let text = format!("ONBOOT=yes\n{line}\n");
        let error = set(&text, "ONBOOT", "no").unwrap_err();
        assert!(
            matches!(error, OpenibConfError::NotPlain { line: 2, .. }),
            "{line}: {error}"
        );
    }
}

#[test]
fn refuses_what_shell_could_run() {
    for value in ["", "a b", "$(id)", "a;b", "a'b", "a\nb", "`id`", "a\\"] {
        assert!(
            matches!(set("", "A", value), Err(OpenibConfError::BadValue { .. })),
            "{value}"
        );
    }
    for key in ["", "A B", "A-B", "1A", "A=B"] {
        assert!(
            matches!(set("", key, "1"), Err(OpenibConfError::BadKey(_))),
            "{key}"
        );
    }
}

#[test]
fn a_hash_inside_a_word_is_no_comment() {
    let found = effective("A=x#y\n", "A").unwrap().unwrap().0;
    assert_eq!(found.value.as_deref(), Some("x#y"));
}
