//! Locked memory of containers.

use host::facts::tuning::memlock::{Limit, Runtime, UnitLimit};

use super::*;

fn runtime(unit: &str, limit: Fact<Limit>, written: Option<&str>) -> Scene {
    let line = |value: &str| UnitLimit {
        file: format!("/etc/systemd/system/{unit}.service.d/memlock.conf"),
        value: value.to_owned(),
    };
    let runtime = Runtime {
        pid: 812,
        limit,
        unit_files: written.map(line).into_iter().collect(),
    };
    Scene::asks(|_| {}).tuned(|tuning| _ = tuning.runtimes.insert(unit.to_owned(), runtime))
}

#[test]
fn locked_memory() {
    // G59: Kubernetes has no field, the runtime's unit has; G58: the limit that counts is that of the daemon.
    runtime("containerd", Fact::Known(Limit::Bytes(8 << 20)), None).check("memlock_of_containerd");
    runtime("crio", Fact::Known(Limit::Bytes(64 << 20)), None).check("memlock_of_crio");
    runtime("docker", Fact::Known(Limit::Bytes(64 << 20)), None).check("memlock_of_docker");
    runtime(
        "containerd",
        Fact::Known(Limit::Bytes(8 << 20)),
        Some("infinity"),
    )
    .check("memlock_written_and_not_in_effect");
    // G61: with an unlimited lock ENOMEM has another cause; the advice is not repeated.
    runtime("containerd", Fact::Known(Limit::Unlimited), None).check("memlock_unlimited");
    runtime("containerd", Fact::Known(Limit::Bytes(8 << 20)), None)
        .with(|scene| scene.machine.nics.clear())
        .check("memlock_without_a_nic");
}
