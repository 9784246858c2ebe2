use std::sync::Arc;

use proptest::prelude::*;
use topology::fact::Fact;

use super::*;
use crate::resource::{Plan, Troubles};
use crate::sample;

fn resource(change: impl FnOnce(&mut topology::node_file::NodeResource)) -> Resource {
    let mut spec = sample::resource(sample::RESOURCE, 4);
    change(&mut spec);
    let troubles = Troubles::from([(sample::id(3), "cable pulled".to_owned())]);
    Resource::new(Arc::new(Plan::new(spec)), troubles)
}

fn request(containers: &[Vec<String>]) -> proto::AllocateRequest {
    let container = |ids: &Vec<String>| proto::ContainerAllocateRequest {
        device_ids: ids.clone(),
    };
    proto::AllocateRequest {
        container_requests: containers.iter().map(container).collect(),
    }
}

/// Every device node is there; nobody can tell whose it is.
const ALL_THERE: Host<'static> = Host {
    present: &|_| true,
    owner: &|_| VerbsOwner::NOBODY,
};

fn one(resource: &Resource, ids: Vec<String>) -> proto::ContainerAllocateResponse {
    allocate(resource, &request(&[ids]), &ALL_THERE)
        .unwrap()
        .container_responses
        .remove(0)
}

fn refusal(ids: Vec<String>) -> String {
    allocate(
        &resource(|_| {}),
        &request(&[sample::ids(&[0]), ids]),
        &ALL_THERE,
    )
    .unwrap_err()
    .to_string()
}

#[test]
fn refuses_by_name_and_reason() {
    assert!(refusal(Vec::new()).contains("no device id"));
    assert!(refusal(vec!["GPU-7".to_owned()]).contains("unknown device id `GPU-7`"));
    assert!(
        refusal(sample::ids(&[1, 1])).contains(&format!("`{}` was asked for twice", sample::id(1)))
    );
    assert!(refusal(sample::ids(&[3])).contains("is unhealthy: cable pulled"));
}

#[test]
fn answers_each_container_in_order() {
    let answer = allocate(
        &resource(|_| {}),
        &request(&[sample::ids(&[2]), sample::ids(&[1, 0])]),
        &ALL_THERE,
    )
    .unwrap();
    let names: Vec<Vec<String>> = answer
        .container_responses
        .into_iter()
        .map(|container| {
            container
                .cdi_devices
                .into_iter()
                .map(|cdi| cdi.name)
                .collect()
        })
        .collect();
    let gpu = |n| format!("nvidia.com/gpu={}", sample::id(n));
    let pair = |n| format!("gpurdma.dev/pair={n}");
    assert_eq!(
        names,
        [
            vec![pair(2), gpu(2)],
            vec![pair(0), pair(1), gpu(0), gpu(1)]
        ]
    );
}

#[test]
fn gives_shared_nodes_once_and_joins_their_permissions() {
    let resource = resource(|spec| spec.devices[1].device_nodes[0].permissions = "mr".to_owned());
    let nodes: Vec<(String, String)> = one(&resource, sample::ids(&[1, 0]))
        .devices
        .into_iter()
        .map(|d| (d.host_path, d.permissions))
        .collect();
    let expected = [
        ("/dev/infiniband/rdma_cm", "rwm"),
        ("/dev/infiniband/uverbs0", "rw"),
        ("/dev/infiniband/uverbs1", "rw"),
    ];
    assert_eq!(
        nodes,
        expected.map(|(path, permissions)| (path.to_owned(), permissions.to_owned()))
    );
}

#[test]
fn leaves_out_optional_nodes_that_are_not_there_and_no_others() {
    let resource = resource(|spec| {
        for path in [
            "/dev/infiniband/umad0",
            "/dev/gdrdrv",
            "/dev/nvidia0",
            "/dev/nvidia-modeset",
        ] {
            spec.devices[0].device_nodes.push(sample::node(path));
        }
    });
    let host = Host {
        present: &|node| node.host_path == "/dev/gdrdrv",
        ..ALL_THERE
    };
    let answer = allocate(&resource, &request(&[sample::ids(&[0])]), &host).unwrap();
    let paths: Vec<String> = answer.container_responses[0]
        .devices
        .iter()
        .map(|d| d.host_path.clone())
        .collect();
    assert_eq!(
        paths,
        [
            "/dev/gdrdrv",
            "/dev/infiniband/rdma_cm",
            "/dev/infiniband/uverbs0",
            "/dev/nvidia0"
        ]
    );
}

#[test]
fn describes_the_pairs_beside_the_resources_variables() {
    let envs = one(&resource(|_| {}), sample::ids(&[1])).envs;
    assert_eq!(envs["NCCL_IB_HCA"], "=mlx5_0");
    let expected = serde_json::json!([{
        "id": sample::id(1),
        "gpu": {"name": "GPU1", "uuid": sample::id(1), "pci": "0000:11:00.0"},
        "nics": [{"rdma": "mlx5_1", "distance": "PIX", "rail": 1}],
        "shared": false,
    }]);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&envs["GPURDMA_PAIRS"]).unwrap(),
        expected
    );
}

/// Pair 1's uverbs number went to the NIC of pair 2.
#[test]
fn refuses_a_nic_whose_device_node_is_another_ones_now() {
    let resource = resource(|_| {});
    let other = VerbsOwner {
        rdma: Fact::Known("mlx5_2".to_owned()),
        pci: Fact::Known("0000:42:00.0".parse().unwrap()),
    };
    let host = Host {
        owner: &|number| match number {
            1 => other.clone(),
            _ => VerbsOwner::NOBODY,
        },
        ..ALL_THERE
    };
    let ask = |ids: &[usize]| allocate(&resource, &request(&[sample::ids(ids)]), &host);
    let error = ask(&[0, 1]).unwrap_err().to_string();
    for part in [
        sample::id(1).as_str(),
        "uverbs1 belongs to mlx5_2 (0000:42:00.0) now",
        "mlx5_1 (0000:41:00.0) in the node file",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert!(ask(&[0, 2]).is_ok());
}

#[test]
fn each_kind_has_a_variable_of_its_own() {
    let kinds = [
        ResourceKind::Pair,
        ResourceKind::Gpu,
        ResourceKind::SharedNic,
    ];
    assert_eq!(
        kinds.map(variable),
        ["GPURDMA_PAIRS", "GPURDMA_GPUS", "GPURDMA_NICS"]
    );
}

#[test]
fn the_order_of_the_request_does_not_change_the_answer() {
    let resource = resource(|_| {});
    assert_eq!(
        one(&resource, sample::ids(&[2, 0, 1])),
        one(&resource, sample::ids(&[0, 1, 2]))
    );
}

fn any_id() -> impl Strategy<Value = String> {
    prop_oneof![4 => (0_usize..6).prop_map(sample::id), 1 => ".{0,12}"]
}

proptest! {
    /// Whatever is asked for: no panic, and only healthy devices of the resource, each once, are ever handed out.
    #[test]
    fn hands_out_exactly_what_may_be_handed_out(
        ids in prop::collection::vec(any_id(), 0..6),
        bad in prop::collection::btree_set(0_usize..4, 0..4),
    ) {
        let troubles: Troubles = bad.iter().map(|n| (sample::id(*n), "bad".to_owned())).collect();
        let resource = Resource::new(Arc::new(Plan::new(sample::resource(sample::RESOURCE, 4))), troubles);
        let good: BTreeSet<String> = (0..4).filter(|n| !bad.contains(n)).map(sample::id).collect();
        let asked: BTreeSet<String> = ids.iter().cloned().collect();
        let fits = !ids.is_empty() && asked.len() == ids.len() && asked.is_subset(&good);
        match allocate(&resource, &request(std::slice::from_ref(&ids)), &ALL_THERE) {
            Ok(answer) => {
                prop_assert!(fits);
                let cdi = &answer.container_responses[0].cdi_devices;
                let gpus: BTreeSet<String> =
                    cdi.iter().filter_map(|c| c.name.strip_prefix("nvidia.com/gpu=")).map(str::to_owned).collect();
                prop_assert_eq!(gpus, asked);
            }
            Err(error) => prop_assert!(!fits, "{}", error),
        }
    }
}

fn listed(change: impl FnOnce(&mut topology::node_file::NodeResource)) -> BTreeMap<String, String> {
    let lists = [("EXACT", NicListForm::Exact), ("PORTS", NicListForm::Ports)];
    let resource = resource(|spec| {
        spec.nic_lists = lists
            .map(|(name, form)| topology::node_file::NicList {
                name: name.to_owned(),
                form,
            })
            .to_vec();
        change(spec);
    });
    one(&resource, sample::ids(&[2, 0])).envs
}

#[test]
fn each_library_gets_the_nics_of_the_container_in_its_own_form() {
    let envs = listed(|_| {});
    assert_eq!(envs["EXACT"], "=mlx5_0:1,mlx5_2:1");
    assert_eq!(envs["PORTS"], "mlx5_0:1,mlx5_2:1");
}

#[test]
fn a_nic_of_two_pairs_is_listed_once_and_every_port_of_it() {
    let envs = listed(|spec| {
        spec.devices[2].nics = spec.devices[0].nics.clone();
        for device in [0, 2] {
            spec.devices[device].nics[0].ports = vec![1, 2];
        }
    });
    assert_eq!(envs["PORTS"], "mlx5_0:1,mlx5_0:2");
}

#[test]
fn without_a_known_port_there_is_no_list_that_needs_one() {
    let envs = listed(|spec| spec.devices[2].nics[0].ports.clear());
    assert_eq!(envs["EXACT"], "=mlx5_0:1,mlx5_2");
    assert!(!envs.contains_key("PORTS"));
    let none = listed(|spec| {
        for device in &mut spec.devices {
            device.nics.clear();
        }
    });
    assert!(
        !none.contains_key("EXACT"),
        "an empty list would forbid all NICs"
    );
}
