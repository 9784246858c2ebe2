use super::{SCHEMA, discovery};
use crate::distance::{Distance, DistanceSource, StatedDistances};
use crate::machine::Machine;
use crate::policy::ResourcePolicy;
use crate::test_machines::{gpu, nic};

fn machine() -> Machine {
    let cells = [
        (0, [(0, Distance::Pix), (1, Distance::Sys)].into()),
        (1, [(0, Distance::Sys)].into()),
    ]
    .into();
    let source = DistanceSource::Matrix;
    Machine {
        gpus: vec![gpu(1, None), gpu(0, None)],
        nics: vec![nic(1, None), nic(0, None)],
        stated: Some(StatedDistances {
            source,
            cells,
            gpu_cells: [].into(),
            nic_cells: [].into(),
        }),
        notes: vec!["something".to_owned()],
        ..Machine::default()
    }
}

#[test]
fn the_json_has_the_documented_fields() {
    let machine = machine();
    let discovery = discovery(&machine, &machine.paths(), &ResourcePolicy::default());
    let json = serde_json::to_value(&discovery).unwrap();
    assert_eq!(json["schema"], SCHEMA);
    assert_eq!(json["gpus"][0]["name"], "GPU0");
    assert_eq!(json["nics"][1]["rdma"], "mlx5_1");
    assert_eq!(json["distances"]["GPU0"]["mlx5_0"], "PIX");
    assert_eq!(json["distances"]["GPU1"]["mlx5_1"], "UNKNOWN");
    assert_eq!(json["pairs"][0]["nics"][0], "mlx5_0");
    assert_eq!(json["pairs"][0]["distance"], "PIX");
    assert!(
        json["pairs"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("closest")
    );
    assert_eq!(json["unpaired"][0]["gpu"], "GPU1");
    assert_eq!(json["notes"].as_array().unwrap().len(), 3);
}

#[test]
fn two_devices_of_one_name_stay_apart() {
    let mut machine = machine();
    machine.nics[0].rdma = Some("mlx5_0".to_owned());
    let discovery = discovery(&machine, &machine.paths(), &ResourcePolicy::default());
    assert_eq!(discovery.nics[1].name, "mlx5_0 (NIC1)");
    assert_eq!(discovery.distances["GPU0"].len(), 2);
}
