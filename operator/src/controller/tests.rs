use kube::runtime::reflector::{self, store::Writer};
use kube::runtime::watcher;
use serde_json::json;

use super::*;
use crate::test_api::{Recorded, answering, not_found};
use crate::validate::tests::object;

fn filled<K>(objects: &[K]) -> reflector::Store<K>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let (store, mut writer): (_, Writer<K>) = reflector::store();
    writer.apply_watcher_event(&watcher::Event::Init);
    for object in objects {
        writer.apply_watcher_event(&watcher::Event::InitApply(object.clone()));
    }
    writer.apply_watcher_event(&watcher::Event::InitDone);
    // The reader goes on showing what was written; a dropped writer ends waits only.
    std::mem::forget(writer);
    store
}

fn node() -> k8s_openapi::api::core::v1::Node {
    let labels = json!({crate::validate::OS_LABEL: "linux"});
    serde_json::from_value(json!({"metadata": {"name": "n1", "uid": "u1", "labels": labels}}))
        .unwrap()
}

fn context(client: Client, cluster: &GpuRdmaCluster) -> Arc<Context> {
    let stores = Stores {
        clusters: filled(&[cluster.clone().into()]),
        nodes: filled(&[node()]),
        gpu_nodes: filled(&[]),
        pods: filled(&[]),
        daemon_sets: filled(&[]),
    };
    let config = serde_yaml::from_str("agent: {image: a}\nplugin: {image: p}\n").unwrap();
    let events = Events::new(client.clone(), "pod-0");
    let (metrics, backoff) = (Metrics::default(), Backoff::default());
    Arc::new(Context {
        evictions: client.clone(),
        client,
        stores,
        events,
        metrics,
        backoff,
        ledger: Ledger::default(),
        config,
        namespace: "ns".into(),
    })
}

/// The same with a `GpuRdmaNode`.
fn with(context: Arc<Context>, gpu_node: crds::GpuRdmaNode) -> Arc<Context> {
    let context = Arc::try_unwrap(context).unwrap_or_else(|_| panic!("shared"));
    let stores = Stores {
        gpu_nodes: filled(&[gpu_node.into()]),
        ..context.stores
    };
    Arc::new(Context { stores, ..context })
}

/// The object of a node whose agent has reported.
fn reported() -> crds::GpuRdmaNode {
    let mut node = crds::GpuRdmaNode::new("n1", crds::GpuRdmaNodeSpec::default());
    node.status = Some(crds::GpuRdmaNodeStatus {
        phase: crds::node::Phase::Waiting,
        ..Default::default()
    });
    node
}

/// Answers every write with what was written, and every read with nothing.
fn echo(request: &Recorded) -> (u16, serde_json::Value) {
    if request.method == "GET" {
        not_found()
    } else {
        (200, request.body_as_object())
    }
}

#[tokio::test]
async fn a_new_cluster_gets_the_finalizer_before_anything_else() {
    let cluster = object("c", &json!({}));
    let answer = serde_json::to_value(&*cluster).unwrap();
    let (client, log) = answering(move |_| (200, answer.clone()));
    reconcile(Arc::clone(&cluster), context(client, &cluster))
        .await
        .unwrap();
    let log = log.lock().unwrap();
    assert_eq!(log.len(), 1);
    assert_eq!(log[0].path, "/apis/gpurdma.dev/v1alpha1/gpurdmaclusters/c");
    assert!(log[0].body.to_string().contains(FINALIZER));
}

#[tokio::test]
async fn a_cluster_is_applied_by_its_managers_and_never_by_force_on_nodes() {
    let mut cluster = object("c", &json!({"mode": "Enforce"}));
    Arc::make_mut(&mut cluster).metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    let (client, log) = answering(echo);
    let context = with(context(client, &cluster), reported());
    reconcile(Arc::clone(&cluster), context).await.unwrap();
    let log = log.lock().unwrap();
    let find = |path: &str| {
        log.iter()
            .find(|one| one.path.ends_with(path))
            .unwrap_or_else(|| panic!("{path}: {log:?}"))
    };
    let assigned = find("/gpurdmanodes/n1");
    assert!(
        assigned.query.contains("fieldManager=gpurdma-assign")
            && !assigned.query.contains("force=true")
    );
    assert_eq!(assigned.content_type, "application/apply-patch+yaml");
    assert!(assigned.body["spec"].get("maintenance").is_none());
    let labelled = find("/nodes/n1");
    assert_eq!(
        labelled.body["metadata"]["labels"],
        json!({"gpurdma.dev/plugin": "true"})
    );
    find("/namespaces/ns/daemonsets/gpu-rdma-agent");
    find("/namespaces/ns/daemonsets/gpu-rdma-device-plugin");
    let status = find("/gpurdmaclusters/c/status");
    assert_eq!(status.body["status"]["matched"], 1);
}

#[tokio::test]
async fn unfilled_caches_write_nothing() {
    let mut cluster = object("c", &json!({}));
    Arc::make_mut(&mut cluster).metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    let (client, log) = answering(echo);
    let context = context(client, &cluster);
    let (empty, _writer) = reflector::store();
    let mut stores = context.stores.clone();
    stores.nodes = empty;
    let context = Arc::new(Context {
        stores,
        client: context.client.clone(),
        evictions: context.evictions.clone(),
        events: context.events.clone(),
        metrics: Metrics::default(),
        backoff: Backoff::default(),
        ledger: Ledger::default(),
        config: context.config.clone(),
        namespace: context.namespace.clone(),
    });
    let error = reconcile(cluster, context).await.unwrap_err();
    assert_eq!(error.category(), Category::NotSynced);
    assert!(log.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_status_that_is_already_there_is_not_written() {
    let mut cluster = object("c", &json!({}));
    let status = crds::GpuRdmaClusterStatus {
        matched: 3,
        ..Default::default()
    };
    Arc::make_mut(&mut cluster).status = Some(status.clone());
    let (client, log) = answering(echo);
    assert!(!status::write(&client, &cluster, &status).await.unwrap());
    assert!(log.lock().unwrap().is_empty());
    let other = crds::GpuRdmaClusterStatus {
        matched: 4,
        ..Default::default()
    };
    assert!(status::write(&client, &cluster, &other).await.unwrap());
    assert_eq!(log.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_deleted_cluster_keeps_its_finalizer_until_nothing_is_left() {
    let mut cluster = object("c", &json!({}));
    let meta = &mut Arc::make_mut(&mut cluster).metadata;
    meta.finalizers = Some(vec![FINALIZER.to_owned()]);
    meta.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
        "2026-01-02T00:00:00Z".parse().unwrap(),
    ));
    let answer = serde_json::to_value(&*cluster).unwrap();
    let (client, log) = answering(move |_| (200, answer.clone()));
    let mut assigned = crds::GpuRdmaNode::new(
        "n1",
        crds::GpuRdmaNodeSpec {
            cluster: "c".into(),
            ..Default::default()
        },
    );
    assigned.metadata.uid = Some("g1".into());
    let busy = with(context(client, &cluster), assigned);
    let error = reconcile(Arc::clone(&cluster), Arc::clone(&busy))
        .await
        .unwrap_err();
    assert!(error.chain().contains("lets go"), "{}", error.chain());
    let methods: Vec<_> = log
        .lock()
        .unwrap()
        .iter()
        .map(|one| format!("{} {}", one.method, one.path))
        .collect();
    assert_eq!(
        methods,
        ["DELETE /apis/gpurdma.dev/v1alpha1/gpurdmanodes/n1"]
    );
    log.lock().unwrap().clear();
    let idle = context(busy.client.clone(), &cluster);
    reconcile(cluster, idle).await.unwrap();
    let log = log.lock().unwrap();
    assert!(
        log.len() == 1 && log[0].body.to_string().contains("/metadata/finalizers/0"),
        "{log:?}"
    );
}

#[tokio::test]
async fn many_rings_are_one_burst() {
    use futures::{FutureExt, StreamExt};
    let bell = Arc::new(Notify::new());
    let mut bursts = std::pin::pin!(bursts(Arc::clone(&bell)));
    for _ in 0..1000 {
        bell.notify_one();
    }
    assert!(bursts.next().await.is_some());
    assert!(bursts.next().now_or_never().is_none());
}
