use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::test_api::{answering, not_found};

fn lease(holder: Option<&str>, renewed: Timestamp) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE},
           "spec": {"holderIdentity": holder, "renewTime": format!("{renewed:.6}"), "leaseDurationSeconds": DURATION}})
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn a_lease_is_ours_while_it_names_us_and_is_renewed() {
    for (holder, now, expected) in [
        (Some("us"), 100, Held::Ours),
        (Some("us"), 114, Held::Ours),
        (Some("us"), 115, Held::Expired),
        (None, 100, Held::Expired),
        (Some("them"), 100, Held::Theirs),
        (Some("them"), 200, Held::Theirs),
    ] {
        let lease = serde_json::from_value(lease(holder, at(100))).unwrap();
        assert_eq!(held(&lease, "us", at(now)), expected, "{holder:?} {now}");
    }
    assert_eq!(held(&Lease::default(), "us", at(0)), Held::Expired);
}

/// Seconds until leadership is seen to be lost; none within ten minutes.
async fn lost_after(answer: impl Fn() -> (u16, Value) + Send + 'static) -> Option<u64> {
    let (client, _log) = answering(move |_| answer());
    let leases = Api::namespaced(client, "ns");
    let start = Instant::now();
    timeout(Duration::from_mins(10), unconfirmed(&leases, "us"))
        .await
        .ok()
        .map(|()| start.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn a_renewed_lease_is_kept() {
    assert_eq!(
        lost_after(|| (200, lease(Some("us"), Timestamp::now()))).await,
        None
    );
}

#[tokio::test(start_paused = true)]
async fn another_holder_ends_leadership_at_once() {
    let theirs = || (200, lease(Some("them"), Timestamp::now()));
    assert_eq!(lost_after(theirs).await, Some(CONFIRM.as_secs()));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_nobody_renews_or_shows_is_lost_after_its_duration() {
    let old = || (200, lease(Some("us"), at(0)));
    assert_eq!(lost_after(old).await, Some(DURATION));
    assert_eq!(lost_after(not_found).await, Some(DURATION));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_ends_leadership() {
    let (service, _handle) = tower_test::mock::pair::<http::Request<Body>, http::Response<Body>>();
    let leases = Api::namespaced(Client::new(service, "default"), "ns");
    let start = Instant::now();
    unconfirmed(&leases, "us").await;
    assert!(start.elapsed() <= Duration::from_secs(DURATION) + CONFIRM);
}

#[tokio::test(start_paused = true)]
async fn giving_back_ends_although_nobody_answers() {
    let (client, _log) = answering(|_| not_found());
    let (_sender, state) = watch::channel(true);
    let leadership = Leadership {
        leases: Api::namespaced(client, "ns"),
        identity: "us".into(),
        state,
        task: tokio::spawn(std::future::pending()),
    };
    let start = Instant::now();
    leadership.give_back().await;
    assert_eq!(start.elapsed(), GIVE_BACK);
}
