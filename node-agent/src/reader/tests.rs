use std::sync::mpsc;

use super::*;

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_mins(1);

#[tokio::test]
async fn while_one_hangs_no_other_begins_and_its_late_result_is_thrown_away() {
    let (wake, asleep) = mpsc::channel::<()>();
    let mut reader = Reader::default();
    let hangs = reader.read(SHORT, move || {
        let _ = asleep.recv();
        1
    });
    assert!(matches!(hangs.await, Err(ReaderError::Hangs(_))));
    let (begun, begins) = mpsc::channel();
    let second = reader.read(LONG, move || {
        let _ = begun.send(());
        2
    });
    assert!(matches!(second.await, Err(ReaderError::Hangs(_))));
    assert!(begins.recv().is_err(), "a second reader began");
    wake.send(()).unwrap();
    let answer = loop {
        match reader.read(LONG, || 3).await {
            Ok(answer) => break answer,
            Err(_) => tokio::time::sleep(SHORT).await,
        }
    };
    assert_eq!(answer, 3);
}
