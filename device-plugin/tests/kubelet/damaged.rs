//! Node files, requests and bytes that nobody meant. No panic, no hang, and nothing handed out that is not of the file.
//!
//! `PROPTEST_CASES` sets the budget, 256 by default: `PROPTEST_CASES=100000 cargo test -p device-plugin --test kubelet
//! damaged`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use device_plugin::accept::{Reading, judge};
use device_plugin::allocate::{Host, allocate};
use device_plugin::knowledge::Knowledge;
use device_plugin::kubelet::connect;
use device_plugin::prefer::prefer;
use device_plugin::proto::{
    AllocateRequest, AllocateResponse, ContainerAllocateRequest,
    ContainerPreferredAllocationRequest, HEALTHY, PreferredAllocationRequest,
};
use device_plugin::resource::{Plan, Resource, Troubles};
use host::machine::verbs::VerbsOwner;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::damage::{apply, damages};
use crate::fake::Kubelet;
use crate::junk::{self, Junk};
use crate::node::Node;
use crate::sample::{self, RESOURCE};

const QUIET: Duration = Duration::from_mins(5);

fn request(ids: &[String]) -> AllocateRequest {
    let container = ContainerAllocateRequest {
        device_ids: ids.to_vec(),
    };
    AllocateRequest {
        container_requests: vec![container],
    }
}

/// Asks for everything that is listed as healthy, one by one and together.
fn use_of(knowledge: &Knowledge) {
    let host = Host {
        present: &|_| true,
        owner: &|_| VerbsOwner::NOBODY,
    };
    for known in knowledge.resources.values() {
        let devices = known.spec.devices.iter();
        let troubles: Troubles = devices
            .filter_map(|device| Some((device.id.clone(), knowledge.trouble(known, device)?)))
            .collect();
        let resource = Resource::new(Arc::new(Plan::new(known.spec.clone())), troubles);
        let listing = resource.listing().into_iter();
        let healthy = listing.filter(|device| device.health == HEALTHY);
        let healthy: Vec<String> = healthy.map(|device| device.id).collect();
        for id in &healthy {
            let answer = allocate(&resource, &request(std::slice::from_ref(id)), &host).unwrap();
            assert_own(&answer, &resource, std::slice::from_ref(id));
        }
        let container = ContainerPreferredAllocationRequest {
            available_device_ids: healthy.clone(),
            must_include_device_ids: Vec::new(),
            allocation_size: i32::try_from(healthy.len().min(2)).unwrap(),
        };
        let preferred = PreferredAllocationRequest {
            container_requests: vec![container],
        };
        let chosen = prefer(Some(&resource), &preferred)
            .container_responses
            .remove(0);
        assert!(chosen.device_ids.iter().all(|id| healthy.contains(id)));
    }
}

/// Nothing but what the file gives to these devices.
fn assert_own(answer: &AllocateResponse, resource: &Resource, ids: &[String]) {
    let devices: Vec<_> = ids
        .iter()
        .filter_map(|id| resource.plan().device(id))
        .collect();
    assert_eq!(devices.len(), ids.len());
    for container in &answer.container_responses {
        for node in &container.devices {
            let own = devices.iter().flat_map(|device| &device.device_nodes);
            assert!(
                own.map(|own| &own.host_path)
                    .any(|path| *path == node.host_path)
            );
        }
        for cdi in &container.cdi_devices {
            assert!(
                devices
                    .iter()
                    .any(|device| device.cdi_devices.contains(&cdi.name))
            );
        }
        assert!(container.mounts.is_empty() && container.annotations.is_empty());
    }
}

proptest! {
    #[test]
    fn a_damaged_node_file_is_refused_or_used_as_it_is(damages in damages()) {
        let good = Reading::Good(Box::new(sample::node_file(4)));
        let damaged = judge(&apply(&sample::node_file(4).to_json(), &damages), sample::BOOT);
        let first = Knowledge::default().learn(damaged.clone(), Duration::ZERO, QUIET);
        use_of(&first);
        let after_good = Knowledge::default().learn(good, Duration::ZERO, QUIET);
        let after_good = after_good.learn(damaged, Duration::from_secs(1), QUIET);
        use_of(&after_good);
        use_of(&after_good.forget(Duration::from_hours(1), QUIET));
    }

    /// Every value in the place of every other: valid JSON of the wrong kind.
    #[test]
    fn a_node_file_with_two_values_exchanged_is_refused_or_used_as_it_is(
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
    ) {
        let mut file = serde_json::to_value(sample::node_file(3)).unwrap();
        let mut places = Vec::new();
        pointers(&file, "", &mut places);
        let value = file.pointer(from.get::<String>(&places)).unwrap().clone();
        *file.pointer_mut(to.get::<String>(&places)).unwrap() = value;
        let reading = judge(&file.to_string(), sample::BOOT);
        use_of(&Knowledge::default().learn(reading, Duration::ZERO, QUIET));
    }
}

fn pointers(value: &serde_json::Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                pointers(value, &format!("{at}/{key}"), out);
            }
        }
        serde_json::Value::Array(items) => {
            for (key, value) in items.iter().enumerate() {
                pointers(value, &format!("{at}/{key}"), out);
            }
        }
        _ => {}
    }
}

const METHODS: [&str; 4] = [
    "/v1beta1.DevicePlugin/Allocate",
    "/v1beta1.DevicePlugin/GetPreferredAllocation",
    "/v1beta1.DevicePlugin/PreStartContainer",
    "/v1beta1.DevicePlugin/GetDevicePluginOptions",
];

/// What comes over a socket: bytes of no protocol, with or without the beginning of HTTP/2, and messages of no kind.
#[derive(Clone, Debug)]
enum Wire {
    Bytes { preface: bool, bytes: Vec<u8> },
    Message { method: usize, bytes: Vec<u8> },
}

fn wire() -> impl Strategy<Value = Wire> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..300);
    let ids = proptest::collection::vec(0..6_usize, 0..6);
    let real = ids.prop_map(|ids| prost::Message::encode_to_vec(&request(&sample::ids(&ids))));
    prop_oneof![
        (any::<bool>(), bytes()).prop_map(|(preface, bytes)| Wire::Bytes { preface, bytes }),
        (0..METHODS.len(), prop_oneof![bytes(), real])
            .prop_map(|(method, bytes)| Wire::Message { method, bytes }),
    ]
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

async fn send(socket: &std::path::Path, preface: bool, bytes: &[u8]) {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    let begin = if preface { PREFACE } else { b"" };
    // The plugin may hang up in the middle of it.
    let _ = stream.write_all(&[begin, bytes].concat()).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let _ = tokio::time::timeout(Duration::from_mins(1), read)
        .await
        .expect("the plugin holds on to a connection that said its last");
}

/// An answer to Allocate has only what belongs to the ids that were asked for, if they were ids at all.
fn assert_answer(answer: &Junk, asked: &[u8]) {
    let answer: AllocateResponse = prost::Message::decode(answer.0.as_slice()).unwrap();
    let asked: AllocateRequest = prost::Message::decode(asked).unwrap();
    let resource = Plan::new(sample::resource(RESOURCE, 4));
    let resource = Resource::new(Arc::new(resource), Troubles::new());
    assert_eq!(
        answer.container_responses.len(),
        asked.container_requests.len()
    );
    for (one, request) in answer
        .container_responses
        .iter()
        .zip(&asked.container_requests)
    {
        let distinct: BTreeSet<&String> = request.device_ids.iter().collect();
        assert!(!distinct.is_empty() && distinct.len() == request.device_ids.len());
        let one = AllocateResponse {
            container_responses: vec![one.clone()],
        };
        assert_own(&one, &resource, &request.device_ids);
    }
}

async fn survive(wires: Vec<Wire>) {
    let node = Node::with(&sample::node_file(4));
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    kubelet.until_devices(RESOURCE, 4).await;
    let socket = node.kubelet_dir().join(&node.sockets()[0]);
    for wire in wires {
        match wire {
            Wire::Bytes { preface, bytes } => send(&socket, preface, &bytes).await,
            Wire::Message { method, bytes } => {
                let channel = connect(socket.clone()).await.unwrap();
                let answer = junk::call(channel, METHODS[method], bytes.clone()).await;
                if let (0, Ok(answer)) = (method, answer) {
                    assert_answer(&answer, &bytes);
                }
            }
        }
    }
    let ask = request(&sample::ids(&[0, 1, 2, 3]));
    kubelet.api(RESOURCE).allocate(ask).await.unwrap();
    assert_eq!(kubelet.health(RESOURCE).unwrap(), [HEALTHY; 4]);
    plugin.stop().await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 8))]

    #[test]
    fn whatever_comes_over_the_socket_the_next_kubelet_is_served(
        wires in proptest::collection::vec(wire(), 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(survive(wires));
    }
}
