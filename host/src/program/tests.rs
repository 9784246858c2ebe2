use super::*;

fn sh(script: &str, deadline: Duration) -> Outcome {
    let arguments = [OsStr::new("-c"), OsStr::new(script)];
    run(OsStr::new("sh"), &arguments, deadline).unwrap()
}

#[test]
fn tells_success_from_failure() {
    let long = Duration::from_secs(20);
    assert_eq!(sh("exit 0", long), Outcome::Succeeded);
    let Outcome::Failed { status, stderr } = sh("echo first >&2; echo second >&2; exit 3", long)
    else {
        panic!("exit 3 is a failure");
    };
    assert_eq!(
        (status.as_str(), stderr.as_str()),
        ("exit status: 3", "first second")
    );
}

#[test]
fn a_talkative_program_does_not_stall() {
    let script = "i=0; while [ $i -lt 20000 ]; do echo 0123456789 >&2; i=$((i+1)); done; exit 1";
    let Outcome::Failed { stderr, .. } = sh(script, Duration::from_mins(1)) else {
        panic!("exit 1 is a failure");
    };
    assert!(stderr.len() <= 4096, "{}", stderr.len());
}

#[test]
fn the_deadline_holds() {
    let begin = Instant::now();
    let outcome = sh("sleep 30", Duration::from_millis(100));
    assert_eq!(
        outcome,
        Outcome::Unknown {
            waited: Duration::from_millis(100)
        }
    );
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn an_absent_program_is_named() {
    let error = run(OsStr::new("/nonexistent/tool"), &[], Duration::from_secs(1)).unwrap_err();
    assert_eq!(error.to_string(), "start `/nonexistent/tool`");
}

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

#[test]
fn a_file_that_is_just_written_is_run_when_it_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tool");
    std::fs::copy("/bin/true", &path).unwrap();
    let open = std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap();
    let closes = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(60));
        drop(open);
    });
    let outcome = run(path.as_os_str(), &[], Duration::from_mins(1));
    assert_eq!(outcome.unwrap(), Outcome::Succeeded);
    closes.join().unwrap();
}
