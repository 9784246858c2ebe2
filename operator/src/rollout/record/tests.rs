use std::collections::BTreeMap;

use super::*;

fn annotated(text: &str) -> GpuRdmaNode {
    let mut node = GpuRdmaNode::new("n1", crds::GpuRdmaNodeSpec::default());
    let annotation = (ROLLOUT_STATE.to_owned(), text.to_owned());
    node.metadata.annotations = Some(BTreeMap::from([annotation]));
    node
}

#[test]
fn a_record_comes_back_as_it_was_written() {
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let record = Record::default()
        .begun(Some("LinkDown".into()), now)
        .next_round(now)
        .with_refusals(vec!["ml/a: budget".into()])
        .acting(now);
    let text = record.to_text().unwrap();
    assert_eq!(Record::of(&annotated(&text)), record);
    assert!(
        text.contains("\"since\":\"2027-01-15T08:00:00Z\""),
        "{text}"
    );
}

#[test]
fn nothing_to_remember_is_no_annotation() {
    assert_eq!(Record::default().to_text(), None);
    for text in ["", "{", "{\"rounds\": -1}"] {
        assert_eq!(Record::of(&annotated(text)), Record::default(), "{text}");
    }
}

#[test]
fn long_refusals_are_cut_and_few() {
    let refused = Record::default()
        .with_refusals(vec!["é".repeat(1000); 10])
        .refused;
    assert_eq!(refused.len(), 3);
    assert!(refused.iter().all(|text| text.chars().count() == 240));
}

#[test]
fn waits_grow_to_a_limit() {
    let now = Timestamp::UNIX_EPOCH;
    let mut record = Record::default();
    let mut waits = Vec::new();
    for _ in 0..6 {
        record = record.give_back("why".into(), "policy".into(), now);
        waits.push(record.later.unwrap().as_second() / 60);
    }
    assert_eq!(waits, [10, 20, 40, 80, 120, 120]);
    record.given_back = u32::MAX;
    assert!(
        record
            .give_back(String::new(), String::new(), now)
            .later
            .is_some()
    );
}
