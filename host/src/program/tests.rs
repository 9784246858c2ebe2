use super::*;

#[test]
fn an_answer_is_what_was_written() {
    assert_eq!(answer("echo", &["a", "$(b)"]).unwrap(), "a $(b)\n");
}

#[test]
fn a_tool_that_is_not_there_is_named() {
    let error = answer("no-such-tool", &["-j"]).unwrap_err();
    assert!(
        error.chain().starts_with("start `no-such-tool -j`: "),
        "{}",
        error.chain()
    );
    assert!(!error.is_unsupported());
}

#[test]
fn a_failure_says_what_the_tool_said() {
    let error = answer("ls", &["/no/such/place"]).unwrap_err();
    assert!(error.chain().contains("/no/such/place"), "{error}");
    assert!(matches!(error, ProgramError::Failed { .. }));
}
