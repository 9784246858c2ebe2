use super::*;

const NEVER: Duration = Duration::from_hours(1);
const DEADLINE: Duration = Duration::from_secs(30);

async fn beats(pulses: &mut watch::Receiver<u64>) -> bool {
    tokio::time::timeout(DEADLINE, pulses.changed())
        .await
        .is_ok_and(|changed| changed.is_ok())
}

/// Touches the directory until a pulse comes: the watch may be set up after the first file.
async fn touch_until_beat(dir: &Path, pulses: &mut watch::Receiver<u64>) -> bool {
    for count in 0..300 {
        std::fs::write(dir.join(format!("f{count}")), "").unwrap();
        if tokio::time::timeout(Duration::from_millis(100), pulses.changed())
            .await
            .is_ok()
        {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn a_new_file_wakes_long_before_the_period() {
    let dir = tempfile::tempdir().unwrap();
    let mut pulses = pulse(dir.path().to_owned(), NEVER);
    assert!(touch_until_beat(dir.path(), &mut pulses).await);
}

#[tokio::test]
async fn without_events_the_period_wakes() {
    let mut pulses = pulse(PathBuf::from("/nonexistent"), Duration::from_millis(5));
    assert!(beats(&mut pulses).await);
    assert!(beats(&mut pulses).await);
}

#[test]
fn the_watch_follows_a_directory_that_is_made_anew() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let base = tempfile::tempdir().unwrap();
        let (dir, old) = (base.path().join("dir"), base.path().join("old"));
        std::fs::create_dir(&dir).unwrap();
        let mut eye = Eye::open(&dir);
        let first = eye.watched.unwrap();
        std::fs::rename(&dir, old).unwrap();
        eye.follow(&dir);
        assert_eq!(eye.watched, None);
        std::fs::create_dir(&dir).unwrap();
        eye.follow(&dir);
        assert!(eye.watched.is_some_and(|id| id != first));
    });
}
