use super::*;
use crate::sample;

fn listing(spec: NodeResource, troubles: &[(usize, &str)]) -> Vec<proto::Device> {
    let troubles = troubles
        .iter()
        .map(|(n, why)| (sample::id(*n), (*why).to_owned()))
        .collect();
    Resource::new(Arc::new(Plan::new(spec)), troubles).listing()
}

#[test]
fn lists_in_the_order_of_ids_whatever_the_file_has() {
    let mut spec = sample::resource(sample::RESOURCE, 4);
    spec.devices.reverse();
    let ids: Vec<String> = listing(spec, &[])
        .into_iter()
        .map(|device| device.id)
        .collect();
    assert_eq!(ids, sample::ids(&[0, 1, 2, 3]));
}

#[test]
fn a_device_in_trouble_is_unhealthy_and_still_there() {
    let health: Vec<String> = listing(sample::resource(sample::RESOURCE, 2), &[(1, "broken")])
        .into_iter()
        .map(|d| d.health)
        .collect();
    assert_eq!(health, [proto::HEALTHY, proto::UNHEALTHY]);
}

#[test]
fn topology_is_left_out_where_unknown_and_lists_every_known_node() {
    let mut device = sample::device(0, 1);
    device.numa_nodes = vec![0, 3];
    let nodes = entry(&device, true)
        .topology
        .map(|t| t.nodes.into_iter().map(|n| n.id).collect::<Vec<_>>());
    assert_eq!(nodes, Some(vec![0, 3]));
    device.numa_nodes.clear();
    assert_eq!(entry(&device, true).topology, None);
}

#[test]
fn resources_are_equal_by_content() {
    let new = |why: &[(String, String)]| {
        let plan = Plan::new(sample::resource(sample::RESOURCE, 2));
        Resource::new(Arc::new(plan), why.iter().cloned().collect())
    };
    let trouble = [(sample::id(0), "down".to_owned())];
    assert!(new(&[]) == new(&[]));
    assert!(new(&[]) != new(&trouble));
}
